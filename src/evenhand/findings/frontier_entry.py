"""An entry is one method of a frontier: what it scored, what it cost, how it compares, what it is
worth."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import polars as pl

from evenhand.findings import item_cost
from evenhand.findings.comparison import Comparison
from evenhand.findings.cost_effectiveness import Worth, shown_measures
from evenhand.findings.estimates import Change, Estimate
from evenhand.findings.item_cost import ItemCost, PerPrevented
from evenhand.findings.remarks import Remark
from evenhand.findings.report import Report

Role = Literal["method", "reference", "vote"]
ROW_SCHEMA = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstDefault:
    """The changes from the plain prompt's run to a method's."""

    comparison: Comparison
    harm: Change  # with Holm over all methods that somebody named
    regressions: tuple[Remark, ...]
    per_prevented: Mapping[item_cost.CostKind, PerPrevented]

    def changes(self) -> dict[str, Change]:
        """The measures that a frontier shows, by name. Harm is adjusted over the methods, the
        others over the family of their comparison."""
        names = [m.name for m in shown_measures(self.comparison.instrument)]
        return {**{name: self.comparison[name] for name in names}, self.harm.name: self.harm}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierEntry:
    """An entry is one method of a frontier. A method is judged; a reference is one that it is held
    against; a vote is self-consistency with fewer calls than it may have."""

    name: str
    role: Role
    report: Report
    cost: Mapping[item_cost.CostKind, ItemCost]
    equal_calls: str | None
    against_default: AgainstDefault | None  # None of the plain prompt itself
    harm_against: Mapping[str, Change]  # by the reference's name; empty where none is judged
    worth: Worth | None  # of a method
    pareto: bool = False

    def estimates(self) -> dict[str, Estimate]:
        return {m.name: self.report[m.name] for m in shown_measures(self.report.instrument)}


def plain_of(entry: FrontierEntry) -> dict[str, Any]:
    """The method as plain data, for JSON."""
    compared = entry.against_default
    coverage = entry.report.coverage
    return {
        "name": entry.name,
        "run": entry.report.side.run,
        "method": entry.report.side.method,
        "role": entry.role,
        "not_run": entry.report.not_run,
        "coverage": {
            "n": coverage.n,
            "scored": coverage.scored,
            "by_reason": coverage.by_reason,
            "coverage": coverage.coverage,
        },
        "estimates": entry.estimates(),
        "cost": entry.cost,
        "notes": entry.report.notes,
        "against_default": compared
        and {
            "regressions": compared.regressions,
            "red_lines": compared.comparison.red_lines,
            "changes": compared.changes(),
            "answers": compared.comparison.flips,
            "transitions": compared.comparison.transitions,
            "per_prevented": compared.per_prevented,
        },
        "equal_calls": entry.equal_calls,
        "harm_against": entry.harm_against,
        "verdict": entry.worth,
        "pareto": entry.pareto,
    }


def rows_of(entry: FrontierEntry) -> list[dict[str, Any]]:
    """Give one row per number: what it is of, what it is, and how sure it is."""
    rows = [_row(entry, "estimate", asdict(estimate)) for estimate in entry.estimates().values()]
    for kind, cost in entry.cost.items():
        rows.append(_row(entry, "cost, mean", {**asdict(cost), "name": kind, "value": cost.mean}))
        rows.append(_row(entry, "cost, p95", {"name": kind, "value": cost.p95}))
    if entry.against_default is not None:
        rows += _compared(entry, entry.against_default)
    for other, change in entry.harm_against.items():
        rows.append(_row(entry, f"change from {other}", _changed(change)))
    return rows


def _compared(entry: FrontierEntry, compared: AgainstDefault) -> list[dict[str, Any]]:
    rows = [_row(entry, "change from default", _changed(c)) for c in compared.changes().values()]
    for kind, cost in compared.per_prevented.items():
        value = {**asdict(cost), "name": kind, "value": cost.estimate}
        rows.append(_row(entry, "cost of one harm prevented", value))
    for name, moved in compared.comparison.flips.items():
        for what, count in (("fixed", moved.fixed), ("broken", moved.broken)):
            value = {"name": f"{what}, {name}", "value": count, "p": moved.p}
            rows.append(_row(entry, "answers against default", value))
    return rows


def _changed(change: Change) -> dict[str, Any]:
    return {**change.values(), "value": change.effect}


def _row(entry: FrontierEntry, group: str, values: dict[str, Any]) -> dict[str, Any]:
    columns = {name: values.get(name) for name in ROW_SCHEMA}
    return {**columns, "method": entry.name, "group": group}
