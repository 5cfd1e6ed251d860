"""The report of one SQuAD v2 run: what is missing first, then the scores, then cost."""

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.instruments.squad.outcomes import outcomes
from evenhand.report import measured, squad
from evenhand.report.measured import cost_table
from evenhand.store import RunReader


def measure(run: RunReader) -> dict[str, Any]:
    """Everything that may be said of a run, as plain data."""
    results = measured.read(run, "squad")
    return {**measured.head(run, results), "scores": squad.scores(outcomes(results))}


def write(report: dict[str, Any], to: str | Path) -> None:
    measured.write(report, {"all": report["scores"]["estimates"]}, to)


def render(report: dict[str, Any]) -> RenderableType:
    scores, method = report["scores"], report["method"]["name"]
    head = f"SQuAD {report['source']['version']} · {report['model']} · {method} · {report['run']}"
    return Group(
        Text(head, style="bold"),
        *measured.warnings(report),
        measured.table(
            squad.LABELS, {f"n = {scores['coverage']['scored']:,}": scores["estimates"]}, "articles"
        ),
        Text(""),
        cost_table({method: report["cost"]}),
        Text(""),
        _official(scores["as_others_print_it"]),
    )


def _official(found: dict[str, float | int | None]) -> Table:
    table = Table("as evaluate-v2.0.py prints it", "", box=None, padding=(0, 2, 0, 0), style="dim")
    for name, value in found.items():
        shown = f"{value:.3f}" if isinstance(value, float) else str(value)
        table.add_row(name, "undefined" if value is None else shown)
    return table
