"""What a frontier leaves behind: `frontier.json`, its numbers as rows, and the plot."""

import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.report.frontier_plot import plot
from evenhand.store.folder import open_folder

_SCHEMA = {
    "method": pl.String,
    "group": pl.String,
    "name": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "n": pl.Int64,
    "clusters": pl.Int64,
    "undefined": pl.String,
}


def write(report: dict[str, Any], location: str | Path) -> None:
    folder = open_folder(location)
    data = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    folder.replace("frontier.json", data)
    table = io.BytesIO()
    pl.DataFrame(rows(report), schema=_SCHEMA).write_parquet(table)
    folder.replace("frontier.parquet", table.getvalue())
    folder.replace("frontier.svg", plot(report).encode())


def rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    """One per number: what it is of, what it is, and how sure it is."""
    found = []
    for entry in report["methods"]:
        found += [_row(entry, "estimate", asdict(e)) for e in entry["estimates"].values()]
        for kind, cost in entry["cost"].items():
            mean = {**cost, "value": cost["mean"]}
            found.append(_row(entry, "cost, mean", {**mean, "name": kind}))
            found.append(_row(entry, "cost, p95", {"name": kind, "value": cost["p95"]}))
        if entry["against_default"] is not None:
            found += _compared(entry)
        for other, change in (entry["harm_against"] or {}).items():
            found.append(_row(entry, f"change from {other}", _changed(change)))
    return found


def _compared(entry: dict[str, Any]) -> list[dict[str, Any]]:
    compared = entry["against_default"]
    found = [_row(entry, "change from default", _changed(c)) for c in compared["changes"].values()]
    for kind, cost in compared["per_prevented"].items():
        value = {**cost, "name": kind, "value": cost.get("estimate")}
        found.append(_row(entry, "cost of a prevented stereotyped answer", value))
    for condition, moved in compared["answers"].items():
        for name in ("fixed", "broken"):
            value = {"name": f"{name}, {condition}", "value": moved[name], "p": moved["p_mcnemar"]}
            found.append(_row(entry, "answers against default", value))
    return found


def _changed(change: Any) -> dict[str, Any]:
    return {**asdict(change), "value": change.difference}


def _row(entry: dict[str, Any], group: str, values: dict[str, Any]) -> dict[str, Any]:
    kept = {name: values.get(name) for name in _SCHEMA}
    return {**kept, "method": entry["name"], "group": group}
