"""This view shows the main numbers of measured runs as a model page of the Hugging Face Hub reads
them: `.eval_results/*.yaml`, one file for each model."""

from collections import defaultdict
from typing import Any

import yaml

from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.pack_manifest import PackManifest, Stamp
from evenhand.findings.report import Report
from evenhand.runs.store.folder import as_file_name
from evenhand.views import numbers
from evenhand.views.files import plain
from evenhand.views.visible import visible

FILE = ".eval_results/evenhand.yaml"
_HEAD = """\
# Put this folder into the repository of the model. The Hub shows results of benchmarks that are
# registered there: evenhand has registered none, so set each `dataset.id` to the one that you use.
# There is no field for an interval: it stands in the notes, and belongs to the value.
"""


def written(dossier: CombinedReport, about: PackManifest) -> dict[str, bytes]:
    """Write the file of each model that was measured."""
    by_model: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for report in dossier.reports:
        if report.instrument.of_people:  # there is no model whose repository it belongs to
            continue
        by_model[report.side.model] += entries(report, about)
    files = {}
    for number, (model, results) in enumerate(by_model.items()):
        folder = "hf" if len(by_model) == 1 else f"hf/{number}-{as_file_name(model)}"
        files[f"{folder}/{FILE}"] = one_file(results)
    return files


def one_file(results: list[dict[str, Any]]) -> bytes:
    """Write the entries of one model."""
    text = yaml.safe_dump(plain(results), sort_keys=False, allow_unicode=False, width=100)
    return f"{_HEAD}{text}".encode()


def entries(report: Report, about: Stamp) -> list[dict[str, Any]]:
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
            f"{measure.label}; 95 %: {ends}, over {estimate.clusters} "
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
