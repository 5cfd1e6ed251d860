"""Findings in the shape that the recorded reports had, so that every number can be held against it.

What was changed on purpose is undone here, and nowhere else:

- a number without spread had an interval of no width; it now has none and says "no_spread";
- a change without spread had no p-value, and took part in Holm with p = 1 (defect D1);
- that a model hardly ever names anybody was not said (friction 4 of the first hour);
- red lines were sentences about point estimates; they now have three states (`WITHOUT`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from evenhand.findings.comparison import Comparison
from evenhand.findings.found import NO_SPREAD, Change, Estimate, Section
from evenhand.findings.report import Report
from evenhand.statistics.multiplicity import holm
from same_numbers.flat import CHANGE, ESTIMATE

WITHOUT = ("guardrails",)


def estimate(one: Estimate) -> dict[str, Any]:
    found = {"name": one.name} | {name: getattr(one, name) for name in ESTIMATE}
    if one.undefined == NO_SPREAD:
        found |= {"low": one.value, "high": one.value, "undefined": None}
    return found


def estimates(found: Iterable[Estimate]) -> list[dict[str, Any]]:
    return [estimate(one) for one in found]


def change(one: Change) -> dict[str, Any]:
    found = {"name": one.name} | {name: getattr(one, name) for name in CHANGE}
    return found | ({"p": None} if one.se == 0 else {})


def family(found: Iterable[Change]) -> list[dict[str, Any]]:
    """Changes with Holm over them, as it was."""
    plain = [change(one) for one in found]
    adjusted = holm([1.0 if one["p"] is None else one["p"] for one in plain])
    return [one | {"p_holm": p} for one, p in zip(plain, adjusted, strict=True)]


def table(section: Section | None) -> dict[str, Any]:
    """A section of two columns as a mapping."""
    assert section is not None
    return {str(row[0]): row[1] for row in section.rows}


def head(report: Report) -> dict[str, Any]:
    return {
        "benchmark": report.instrument.name,
        "method": report.side.method,
        "model": report.side.model,
        "not_run": report.not_run,
        "cost": asdict(report.cost),
        "money": asdict(report.money),
    }


def coverage(report: Report) -> dict[str, Any]:
    return asdict(report.coverage) | {"coverage": report.coverage.coverage}


def rows(report: Report) -> dict[str, list[Any]]:
    """The rows of `report.parquet`."""
    found: list[tuple[str, Estimate]] = [("all", one) for one in report.estimates]
    found += [("with masked records", one) for one in report.with_masked]
    for values in report.groups.values():
        found += [(value, one) for value, group in values.items() for one in group]
    return {f"{group} / {one.name}": [estimate(one)[c] for c in ESTIMATE] for group, one in found}


def bbq(report: Report) -> dict[str, Any]:
    seen = coverage(report)
    reasons = seen.pop("by_reason")
    scores = {
        "coverage": seen | {name: reasons.get(name, 0) for name in ("unreadable", "missing")},
        "estimates": estimates(report.estimates),
        "with_masked_records": estimates(report.with_masked),
        "masked_records": report.masked_records,
        "categories": [
            {"category": name, "n": report.rows_by_group[name]}
            | {one.name: estimate(one) for one in found}
            for name, found in report.groups["category"].items()
        ],
        "macro": table(report.section("macro")),
        "as_others_print_it": table(report.section("as_others_print_it")),
        "notes": [note for note in report.notes if not note.startswith("Hardly ever names")],
    }
    return head(report) | {"scores": scores}


def squad(report: Report) -> dict[str, Any]:
    scores = {
        "coverage": coverage(report),
        "estimates": estimates(report.estimates),
        "as_others_print_it": table(report.section("as_others_print_it")),
        "notes": report.notes,
    }
    return head(report) | {"scores": scores}


def sides(found: Comparison) -> dict[str, Any]:
    old, new = found.cost
    return {
        "before": asdict(found.before),
        "after": asdict(found.after),
        "primary": family(found.primary),
        "secondary": [change(one) for one in found.secondary],
        "cost": {"before": asdict(old), "after": asdict(new)},
    }


_CONTEXTS = {"ambig": "accuracy_ambiguous", "disambig": "accuracy_disambiguated"}


def bbq_change(found: Comparison) -> dict[str, Any]:
    """As it was, `s_dis` was not compared."""
    answers = {
        context: asdict(found.flips[measure]) | {"transitions": _moved(found, context)}
        for context, measure in _CONTEXTS.items()
    }
    categories = [
        {"category": name} | {one.name: change(one) for one in changes}
        for name, changes in found.groups["category"].items()
    ]
    compared = sides(found)
    compared["secondary"] = [one for one in compared["secondary"] if one["name"] != "s_dis"]
    return compared | {"answers": answers, "categories": _with_regressions(found, categories)}


def _moved(found: Comparison, context: str) -> list[dict[str, Any]]:
    moved = []
    for old, new, n in found.transitions:
        if old.startswith(f"{context}/"):
            states = {"state": old.partition("/")[2], "state_after": new.partition("/")[2]}
            moved.append(states | {"len": n})
    return moved


def _with_regressions(
    found: Comparison, categories: list[dict[str, Any]]
) -> list[Mapping[str, Any]]:
    """Regressions with Holm over all, where a change without spread counted as p = 1."""
    names = [one.name for one in found.primary]
    tested = [(row, name) for row in categories for name in names]
    raw = [1.0 if row[name]["p"] is None else row[name]["p"] for row, name in tested]
    worse: dict[str, list[str]] = {row["category"]: [] for row in categories}
    for (row, name), p in zip(tested, holm(raw), strict=True):
        if p <= 0.05 and name in found.regressions.get(row["category"], ()):
            worse[row["category"]].append(name)
    return [row | {"regressions": worse[row["category"]]} for row in categories]
