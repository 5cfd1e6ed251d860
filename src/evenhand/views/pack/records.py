"""Measured runs as records that others collect: Every Eval Ever (schema 0.3.0), and the
`.eval_results/*.yaml` of a model page of the Hugging Face Hub."""

import hashlib
import math
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import yaml

from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.pack_manifest import PackManifest, Stamp
from evenhand.findings.report import ALL, Report
from evenhand.runs.store.folder import as_file_name
from evenhand.views import catalog, numbers
from evenhand.views.files import plain, printed
from evenhand.views.visible import visible

SCHEMA = "0.3.0"
_CONFIDENCE = 0.95
_NO_SIDE = {
    "zero": "best at 0, from either side: lower_is_better has no meaning here",
    "fifty": "best at 50, from either side: lower_is_better has no meaning here",
    "none": "no value is better than another: lower_is_better has no meaning here",
}


def eee_files(dossier: CombinedReport, about: PackManifest) -> dict[str, bytes]:
    """Write a record for each measured run, under the name that its run gives it."""
    files = {}
    for report in dossier.reports:
        if report.instrument.of_people:  # a record is about a model
            continue
        run = next(packed for packed in about.runs if packed.run == report.side.run)
        files[f"eee/{eee_name(run.run, run.sha256)}"] = eee_file(report, about)
    return files


def eee_name(run: str, sha256: Mapping[str, str]) -> str:
    """Name the record of a run as that project does, by a UUID: here one that follows from it."""
    digests = [digest for _, digest in sorted(sha256.items())]
    basis = hashlib.sha256("\n".join((run, *digests)).encode()).digest()
    return f"{uuid.UUID(bytes=basis[:16], version=4)}.json"


def eee_file(report: Report, about: Stamp) -> bytes:
    """Write the record of one run."""
    return printed(plain(eee_record(report, about))).encode()


def eee_record(report: Report, about: Stamp) -> dict[str, Any]:
    """Give the record of one run as plain data. A number that is not known has no place in the
    schema, so it is named among the details of the source."""
    seconds = str(int(datetime.fromisoformat(about.newest_run).timestamp()))
    every = list(_estimates(report))
    unknown = [f"{estimate.name} ({group}): {estimate.undefined}" for group, estimate in every
               if estimate.value is None]  # fmt: skip
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
                "verdict": f"{report.verdict.state}: {_said(report)}",
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
            _result(report, group, estimate)
            for group, estimate in every
            if estimate.value is not None
        ],
    }


def _estimates(report: Report) -> Iterator[tuple[str, Estimate]]:
    yield from ((ALL, estimate) for estimate in report.estimates)
    for column, values in report.groups.items():
        for value, estimates in values.items():
            yield from ((f"{column}: {value}", estimate) for estimate in estimates)


def _result(report: Report, group: str, estimate: Estimate) -> dict[str, Any]:
    name, measure = report.instrument.name, report.instrument.measure(estimate.name)
    low, high = measure.range
    uncertainty: dict[str, Any] = {"num_samples": estimate.n}
    if estimate.low is not None and estimate.high is not None:
        uncertainty["confidence_interval"] = {
            "lower": estimate.low,
            "upper": estimate.high,
            "confidence_level": _CONFIDENCE,
            "method": f"over {estimate.clusters} {report.instrument.clusters}",
        }
    details = {
        "clusters": str(estimate.clusters),
        "missing": str(estimate.bounds.missing if estimate.bounds is not None else 0),
    }
    if not estimate.has_interval:
        details["no_interval"] = estimate.undefined or "none was computed"
    elif estimate.undefined is not None:
        details["interval"] = estimate.undefined
    return {
        "evaluation_result_id": f"{report.side.run}/{group}/{estimate.name}",
        "evaluation_name": name if group == ALL else f"{name} ({group})",
        "source_data": {
            "dataset_name": report.instrument.title,
            "source_type": "other",
            "additional_details": {"version": str(report.source.get("version", "not stated"))},
        },
        "metric_config": {
            "evaluation_description": measure.source or measure.label,
            "metric_id": f"evenhand.{name}.{estimate.name}",
            "metric_name": measure.label,
            "metric_unit": measure.unit,
            "lower_is_better": measure.better == "lower",
            "score_type": "continuous",
            "min_score": _end(low),
            "max_score": _end(high),
            **_direction(measure),
        },
        "score_details": {"score": estimate.value, "details": details, "uncertainty": uncertainty},
    }


def _direction(measure: Measure) -> dict[str, Any]:
    direction = _NO_SIDE.get(measure.better)
    return {"additional_details": {"direction": direction}} if direction else {}


def _end(value: float) -> float | str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _said(report: Report) -> str:
    return " · ".join(catalog.texts(report.verdict.says))


HUB_FILE = ".eval_results/evenhand.yaml"
_HEAD = """\
# Put this folder into the repository of the model. The Hub shows results of benchmarks that are
# registered there: evenhand has registered none, so set each `dataset.id` to the one that you use.
# The format has no field for an interval. The notes contain it.
"""


def hub_files(dossier: CombinedReport, about: PackManifest) -> dict[str, bytes]:
    """Write the file of each model that was measured."""
    by_model: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for report in dossier.reports:
        if report.instrument.of_people:  # it belongs to no model's repository
            continue
        by_model[report.side.model] += hub_entries(report, about)
    files = {}
    for number, (model, results) in enumerate(by_model.items()):
        folder = "hf" if len(by_model) == 1 else f"hf/{number}-{as_file_name(model)}"
        files[f"{folder}/{HUB_FILE}"] = hub_file(results)
    return files


def hub_file(results: list[dict[str, Any]]) -> bytes:
    """Write the entries of one model."""
    text = yaml.safe_dump(plain(results), sort_keys=False, allow_unicode=False, width=100)
    return f"{_HEAD}{text}".encode()


def hub_entries(report: Report, about: Stamp) -> list[dict[str, Any]]:
    """Give the primary numbers of a run, or all of an instrument that has no primary ones. A
    number that is not known has no entry."""
    results = []
    for measure in report.instrument.primary() or report.instrument.measures:
        estimate = report[measure.name]
        if estimate.value is None:
            continue
        ends = numbers.interval(estimate, measure, full=True) or "no interval"
        unfinished = f"; NOT FINISHED: {report.not_run} items not run" if report.not_run else ""
        notes = (
            f"{measure.label}; 95% CI {ends}, over {estimate.clusters} "
            f"{report.instrument.clusters}; {report.coverage.scored} of {report.coverage.n} "
            f"answers scored; method {report.side.method['name']}; "
            f"evenhand {about.evenhand}{unfinished}"
        )
        name, method = report.instrument.name, report.side.method["name"]
        under = "" if method == "default" else f".{method}"  # a remedy is another system
        results.append(
            {
                "dataset": {"id": f"evenhand/{name}", "task_id": f"{name}.{estimate.name}{under}"},
                "value": estimate.value,
                "date": report.created,
                "notes": visible(notes),
            }
        )
    return results
