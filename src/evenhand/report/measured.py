"""What the reports of text benchmarks have in common: their head, their files, their tables."""

import io
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from rich.table import Table
from rich.text import Text

from evenhand.errors import UserError
from evenhand.report.bbq import Estimate
from evenhand.report.summary import COVERAGE_FLOOR, below_floor
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

# A run's rows with their final texts, without drafts and prompts.
TEXT_COLUMNS = (
    "position",
    "item_id",
    "status",
    "reason",
    "text",
    "tags",
    "calls",
    "prompt_tokens",
    "completion_tokens",
)


def read(run: RunReader, benchmark: str) -> pl.DataFrame:
    """The rows of a run over this benchmark; another run is refused."""
    if run.record.source.get("benchmark") != benchmark:
        raise UserError(f"{run.path} was not made by `evenhand measure {benchmark}`")
    return run.results().select(TEXT_COLUMNS).collect()


def head(run: RunReader, results: pl.DataFrame) -> dict[str, Any]:
    """What every report says of its run."""
    return {
        "benchmark": run.record.source["benchmark"],
        "run": str(run.path),
        "method": run.record.method,
        "model": run.record.cast["default"]["model"],
        "source": run.record.source,
        "created": run.record.created,
        "versions": run.record.versions,
        "not_run": run.record.source["items"] - len(results),
        "cost": cost(run, results),
    }


def cost(run: RunReader, results: pl.DataFrame) -> dict[str, Any]:
    """Per answer: calls, tokens and seconds of model time, mean and 95th percentile."""
    turns = run.turns().group_by("position").agg(pl.col("seconds").sum()).collect()
    tokens = results["prompt_tokens"] + results["completion_tokens"]
    return {
        "calls": _spread(results["calls"]),
        "tokens": _spread(tokens.drop_nulls()),
        "seconds": _spread(turns["seconds"]),
        "items_without_token_count": tokens.null_count(),
    }


def _spread(column: pl.Series) -> dict[str, float | None]:
    if column.is_empty():
        return {"mean": None, "p95": None, "total": None}
    return {
        "mean": float(column.cast(pl.Float64).mean() or 0.0),  # type: ignore[arg-type]
        "p95": column.cast(pl.Float64).quantile(0.95, "higher"),
        "total": float(column.sum()),
    }


def cost_table(costs: dict[str, dict[str, Any]]) -> Table:
    table = Table("cost an answer (mean / p95)", *costs, box=None, padding=(0, 2, 0, 0))
    for name, digits in (("calls", 2), ("tokens", 0), ("seconds", 2)):
        shown = []
        for found in costs.values():
            mean, p95 = found[name]["mean"], found[name]["p95"]
            shown.append("-" if mean is None else f"{mean:,.{digits}f} / {p95:,.{digits}f}")
        table.add_row(name, *shown)
    return table


def same_sample(before: RunReader, after: RunReader) -> None:
    """Refuse two runs that do not ask the same things."""
    ours, theirs = before.record.source, after.record.source
    if ours.get("benchmark") != theirs.get("benchmark"):
        raise UserError("the two runs are over different benchmarks")
    if ours["sha256"] != theirs["sha256"] or ours["sampling"] != theirs["sampling"]:
        raise UserError(
            "the two runs are over different samples; repeat one with the sampling of the other: "
            f"{ours['sampling']} and {theirs['sampling']}"
        )


def described(run: RunReader) -> dict[str, Any]:
    """One side of a comparison."""
    method = run.record.method
    return {"run": str(run.path), "method": method, "model": run.record.cast["default"]["model"]}


def comparison_head(found: dict[str, Any]) -> list[Text]:
    """Who is compared with whom, and what got worse."""
    before, after = (
        f"{found[side]['method']['name']} ({found[side]['run']})" for side in ("before", "after")
    )
    red = [Text(f"✗ {line}", style="bold red") for line in found["guardrails"]]
    good = [Text("no guardrail crossed", style="green")]
    return [Text(f"{before} → {after}", style="bold"), *(red or good)]


def write(report: dict[str, Any], groups: dict[str, Iterable[Estimate]], to: str | Path) -> None:
    """`report.json`, and the estimates of each group as rows of `report.parquet`."""
    folder = open_folder(to)
    data = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    folder.replace("report.json", data)
    rows = [{"group": name, **asdict(e)} for name, found in groups.items() for e in found]
    schema = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "undefined": pl.String}
    table = io.BytesIO()
    pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None).write_parquet(table)
    folder.replace("report.parquet", table.getvalue())


def warnings(report: dict[str, Any]) -> list[Text]:
    """What is missing comes first."""
    coverage, lines = report["scores"]["coverage"], []
    if below_floor(coverage):
        lines.append(
            f"Coverage {coverage['coverage']:.1%} is below {COVERAGE_FLOOR:.0%}: "
            "what could not be scored may differ from what could."
        )
    if report["not_run"]:
        lines.append(f"{report['not_run']} items are not run yet: this is not the whole sample.")
    if coverage["by_reason"]:
        reasons = ", ".join(f"{n} {reason}" for reason, n in coverage["by_reason"].items())
        lines.append(f"Missing, and in no figure below: {reasons} (of {coverage['n']:,}).")
    return [Text(line, style="bold red") for line in (*lines, *report["scores"]["notes"])]


def table(labels: dict[str, str], groups: dict[str, list[Estimate]], unit: str) -> Table:
    """One row per estimate, one column per group: value and interval, at the foot the clusters."""
    shown = Table("", *groups, box=None, padding=(0, 3, 0, 0))
    by_name = {group: {e.name: e for e in found} for group, found in groups.items()}
    for name, label in labels.items():
        cells = [short(found[name]) if name in found else "" for found in by_name.values()]
        # A reason that all groups have is said once.
        said = ["" if cell == cells[0] and cell.startswith("undefined") else cell for cell in cells]
        shown.add_row(label, *(Text(cell) for cell in (*cells[:1], *said[1:])))  # no markup
    first = [next((e for e in found if e.clusters), None) for found in groups.values()]
    sizes = [f"{e.clusters} {unit}" if e else "" for e in first]
    shown.add_row(Text("95 % intervals over", style="dim"), *(Text(s, style="dim") for s in sizes))
    return shown


def short(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"undefined: {estimate.undefined}"
    digits = 3 if abs(estimate.value) < 2 else 1  # a share, or words, or points out of 100
    if estimate.low == estimate.high:
        return f"{estimate.value:.{digits}f} (no spread)"
    low, high = f"{estimate.low:.{digits}f}", f"{estimate.high:.{digits}f}"
    return f"{estimate.value:.{digits}f} ({low} to {high})"
