"""The report of one RealToxicityPrompts run: circular scoring and what is missing first, then the
scores of all prompts and of each bucket, bounds, curves, cost."""

from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.domain.prices import Prices
from evenhand.instruments.realtoxicityprompts import scores as stored
from evenhand.metrics import refusal
from evenhand.report import measured, rtp, rtp_quality
from evenhand.report.cost import money
from evenhand.report.measured import cost_table
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

CIRCULAR = (
    "CIRCULAR: {scorer} steered the method and scores it here. A method can please its own scorer "
    "without being less toxic: do not quote this as a result."
)


def measure(run: RunReader, scorer: str, prices: Prices | None = None) -> dict[str, Any]:
    """Everything that may be said of a run by the scores of one scorer, as plain data."""
    results = measured.read(run, "rtp")
    rows = stored.outcomes(results, stored.read(open_folder(run.path)), scorer)
    return {
        **measured.head(run, results),
        "scorer": scorer,
        "circular": steered_by(run, scorer),
        "refusal_rules": refusal.VERSION,
        "scores": rtp.scores(rows, run.record.source),
        "quality": rtp_quality.quality(run, prices),
    }


def steered_by(run: RunReader, scorer: str) -> bool:
    """Whether this very scorer was asked while the texts were written."""
    return not run.turns().filter(pl.col("model") == scorer).head(1).collect().is_empty()


def write(report: dict[str, Any], to: str | Path) -> None:
    groups = dict(report["scores"]["estimates"])
    if report["quality"]:
        judged = report["quality"]["estimates"]
        groups = {name: [*found, *judged.get(name, [])] for name, found in groups.items()}
    measured.write(report, groups, to)


def render(report: dict[str, Any]) -> RenderableType:
    scores, source, method = report["scores"], report["source"], report["method"]["name"]
    head = (
        f"RealToxicityPrompts {source['version']} · {report['model']} · {method} · "
        f"scored by {report['scorer']} · {report['run']}"
    )
    circular = CIRCULAR.format(scorer=report["scorer"])
    drawn = ", ".join(f"{n} {name}" for name, n in source["buckets"].items())
    times = source["sampling"]["continuations"]
    return Group(
        *([Text(circular, style="bold red")] if report["circular"] else []),
        Text(head, style="bold"),
        Text(f"{drawn} prompts × {times} continuations; prompts: {source['set']}", style="dim"),
        *measured.warnings(report),
        measured.table(rtp.LABELS, scores["estimates"], "prompts"),
        *_quality(report["quality"]),
        Text(""),
        _bounds(scores),
        Text(""),
        _curves(scores["max_of_n"]),
        Text(""),
        cost_table({method: report["cost"]}),
        *_footnotes(report),
    )


def _quality(found: dict[str, Any] | None) -> list[RenderableType]:
    if found is None:
        return [Text("quality: not judged (--quality N)", style="dim")]
    failed = f", {found['failed']} failed" if found["failed"] else ""
    paid = found["money"]
    cost = "" if paid["cost"] is None else f", {money(paid['cost'], paid['currency'])}"
    asked = f"{found['judged']} judged{failed}; {found['calls']} calls{cost}"
    head = f"quality by {found['judge']}: {asked}"
    notes = [Text(note, style="bold red") for note in found["notes"]]
    table = measured.table(rtp_quality.LABELS, found["estimates"], "prompts")
    return [Text(""), Text(head), *notes, table]


def _bounds(scores: dict[str, Any]) -> RenderableType:
    """Only where something is missing: else both ends are the figure itself."""
    if scores["coverage"]["scored"] == scores["coverage"]["n"]:
        return Text("every continuation has a score", style="dim")
    groups = scores["if_missing_were"]
    table = Table("if all missing were harmless … toxic", *groups, box=None, padding=(0, 3, 0, 0))
    for name in rtp.PRIMARY:
        ends = [(one["harmless"][name], one["toxic"][name]) for one in groups.values()]
        table.add_row(rtp.LABELS[name], *(f"{low:.3f} … {high:.3f}" for low, high in ends))
    return table


def _curves(found: dict[str, list[dict[str, Any]]]) -> Table:
    table = Table("maximum of n (the authors' estimate)", *found, box=None, padding=(0, 3, 0, 0))
    curves = {name: {row["n"]: row for row in rows} for name, rows in found.items()}
    for n in sorted({n for rows in curves.values() for n in rows}):
        cells = [_point(rows[n]) if n in rows else "" for rows in curves.values()]
        table.add_row(f"n = {n}", *cells)
    return table


def _point(row: dict[str, Any]) -> str:
    return f"{row['without_replacement']:.3f} ({row['with_replacement']:.3f})"


def _footnotes(report: dict[str, Any]) -> list[Text]:
    lines = [f"refusals and moralising by word rules, version {report['refusal_rules']}"]
    if report["scores"]["echoed"]:
        lines.append(
            f"{report['scores']['echoed']} continuations repeated their prompt; it was cut off "
            "before scoring"
        )
    return [Text(line, style="dim") for line in lines]
