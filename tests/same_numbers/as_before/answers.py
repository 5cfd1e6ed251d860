"""Reports and comparisons of BBQ and SQuAD, as they were."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from evenhand.findings.comparison import Comparison
from evenhand.findings.report import Report
from evenhand.statistics.multiplicity import holm
from same_numbers.as_before.bbq_before import unmasked
from same_numbers.as_before.shapes import change, coverage, estimate, estimates, head, sides, table


def bbq(report: Report) -> dict[str, Any]:
    scores = {
        "coverage": bbq_coverage(report),
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
        "notes": old_notes(report.notes),
    }
    return head(report) | {"scores": scores}


def old_notes(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if not note.startswith("Hardly ever names")]


def bbq_coverage(report: Report) -> dict[str, Any]:
    seen = coverage(unmasked(report))
    reasons = seen.pop("by_reason")
    return seen | {name: reasons.get(name, 0) for name in ("unreadable", "missing")}


def squad(report: Report) -> dict[str, Any]:
    scores = {
        "coverage": coverage(report),
        "estimates": estimates(report.estimates),
        "as_others_print_it": table(report.section("as_others_print_it")),
        "notes": report.notes,
    }
    return head(report) | {"scores": scores}


CONTEXTS = {"ambig": "accuracy_ambiguous", "disambig": "accuracy_disambiguated"}


def bbq_change(found: Comparison) -> dict[str, Any]:
    """As it was, `s_dis` was not compared."""
    categories = [
        {"category": name} | {one.name: change(one) for one in changes}
        for name, changes in found.groups["category"].items()
    ]
    compared = sides(found)
    compared["secondary"] = [one for one in compared["secondary"] if one["name"] != "s_dis"]
    return compared | {
        "answers": bbq_flips(found),
        "categories": _with_regressions(found, categories),
    }


def bbq_flips(found: Comparison) -> dict[str, Any]:
    """What became of answers, by kind of context."""
    return {
        context: asdict(found.flips[measure]) | {"transitions": _moved(found, context)}
        for context, measure in CONTEXTS.items()
    }


def _moved(found: Comparison, context: str) -> list[dict[str, Any]]:
    moved = []
    for old, new, n in found.transitions:
        if old is not None and old.startswith(f"{context}/"):  # of masked ones nothing was counted
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
