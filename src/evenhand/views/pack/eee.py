"""This view shows each measured run as a record of Every Eval Ever, schema 0.3.0."""

import hashlib
import math
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from evenhand.findings.combined_report import Dossier
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.pack_manifest import Evidence, Stamp
from evenhand.findings.report import ALL, Report
from evenhand.views.files import plain, printed

SCHEMA = "0.3.0"
_CONFIDENCE = 0.95
_NO_SIDE = {
    "zero": "best at 0, from either side: lower_is_better has no meaning here",
    "fifty": "best at 50, from either side: lower_is_better has no meaning here",
    "none": "no value is better than another: lower_is_better has no meaning here",
}


def written(found: Dossier, about: Evidence) -> dict[str, bytes]:
    """Write a record for each measured run, under the name that its run gives it."""
    made = {}
    for report in found.reports:
        if report.instrument.of_people:  # a record is about a model
            continue
        run = next(one for one in about.runs if one.run == report.side.run)
        made[f"eee/{file_name(run.run, run.sha256)}"] = one_file(report, about)
    return made


def file_name(run: str, sha256: Mapping[str, str]) -> str:
    """Name the record of a run as that project does, by a UUID: here one that follows from it."""
    digests = [digest for _, digest in sorted(sha256.items())]
    basis = hashlib.sha256("\n".join((run, *digests)).encode()).digest()
    return f"{uuid.UUID(bytes=basis[:16], version=4)}.json"


def one_file(report: Report, about: Stamp) -> bytes:
    """Write the record of one run."""
    return printed(plain(record(report, about))).encode()


def record(report: Report, about: Stamp) -> dict[str, Any]:
    """Give the record of one run as plain data. A number that is not known has no place in the
    schema, so it is named among the details of the source."""
    seconds = str(int(datetime.fromisoformat(about.newest_run).timestamp()))
    every = list(_estimates(report))
    unknown = [f"{one.name} ({group}): {one.undefined}" for group, one in every
               if one.value is None]  # fmt: skip
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{report.instrument.name}/{report.side.model}/{seconds}",
        "evaluation_timestamp": report.created,
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_name": about.title,
            "source_type": "evaluation_run",
            "source_organization_name": "not stated",
            "evaluator_relationship": "other",
            "additional_details": {
                "run": report.side.run,
                "items_not_run": str(report.not_run),
                "scored": f"{report.coverage.scored} of {report.coverage.n}",
                "verdict": f"{report.verdict.state}: {' · '.join(report.verdict.says)}",
                "not_known": "; ".join(unknown),
            },
        },
        "eval_library": {"name": "evenhand", "version": about.evenhand},
        "model_info": {
            "name": report.side.model,
            "id": report.side.model,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "method": report.side.method["name"],
            },
        },
        "evaluation_results": [
            _result(report, group, one) for group, one in every if one.value is not None
        ],
    }


def _estimates(report: Report) -> Iterator[tuple[str, Estimate]]:
    yield from ((ALL, one) for one in report.estimates)
    for column, values in report.groups.items():
        for value, estimates in values.items():
            yield from ((f"{column}: {value}", one) for one in estimates)


def _result(report: Report, group: str, one: Estimate) -> dict[str, Any]:
    name, measure = report.instrument.name, report.instrument.measure(one.name)
    low, high = measure.range
    uncertainty: dict[str, Any] = {"num_samples": one.n}
    if one.low is not None and one.high is not None:
        uncertainty["confidence_interval"] = {
            "lower": one.low,
            "upper": one.high,
            "confidence_level": _CONFIDENCE,
            "method": f"over {one.clusters} {report.instrument.clusters}",
        }
    details = {"clusters": str(one.clusters), "missing": str(_missing(one))}
    if not one.has_interval:
        details["no_interval"] = one.undefined or "none was computed"
    elif one.undefined is not None:
        details["interval"] = one.undefined
    return {
        "evaluation_result_id": f"{report.side.run}/{group}/{one.name}",
        "evaluation_name": name if group == ALL else f"{name} ({group})",
        "source_data": {
            "dataset_name": report.instrument.title,
            "source_type": "other",
            "additional_details": {"version": str(report.source.get("version", "not stated"))},
        },
        "metric_config": {
            "evaluation_description": measure.source or measure.label,
            "metric_id": f"evenhand.{name}.{one.name}",
            "metric_name": measure.label,
            "metric_unit": measure.unit,
            "lower_is_better": measure.better == "lower",
            "score_type": "continuous",
            "min_score": _end(low),
            "max_score": _end(high),
            **_direction(measure),
        },
        "score_details": {"score": one.value, "details": details, "uncertainty": uncertainty},
    }


def _missing(one: Estimate) -> int:
    return one.bounds.missing if one.bounds is not None else 0


def _direction(measure: Measure) -> dict[str, Any]:
    said = _NO_SIDE.get(measure.better)
    return {"additional_details": {"direction": said}} if said else {}


def _end(value: float) -> float | str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
