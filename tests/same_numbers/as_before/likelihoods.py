"""Reports and comparisons of likelihood sets, as they were: one for all sets of a folder."""

from collections.abc import Sequence
from typing import Any

from evenhand.findings.comparison import Comparison
from evenhand.findings.report import Report
from same_numbers.as_before.shapes import change, coverage, estimates, family
from same_numbers.flat import ESTIMATE


def likelihood(reports: Sequence[Report], model: dict[str, Any]) -> dict[str, Any]:
    """All sets of a folder together."""
    n, scored = (sum(getattr(r.coverage, name) for r in reports) for name in ("n", "scored"))
    return {
        "benchmark": "likelihood",
        "model": model,
        "coverage": {"n": n, "scored": scored, "coverage": scored / n if n else None},
        "sets": [_set(one) for one in reports],
    }


def likelihood_rows(reports: Sequence[Report]) -> dict[str, list[Any]]:
    found = [(one.instrument.name, _over_all(estimates(one.estimates))) for one in reports]
    found += [
        (f"{one.instrument.name}/{value}", estimates(inner))
        for one in reports
        for values in one.groups.values()
        for value, inner in values.items()
    ]
    return {
        f"{group} / {one['name']}": [one[column] for column in ESTIMATE]
        for group, inner in found
        for one in inner
    }


def _over_all(numbers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A slope over occupations counted all items, as `neutral_gap` does; it rests on those whose
    pronoun stands for the occupation."""
    all_items = {one["name"]: one["n"] for one in numbers}.get("neutral_gap")
    return [one | ({"n": all_items} if one["name"] == "women_slope" else {}) for one in numbers]


def _set(report: Report) -> dict[str, Any]:
    groups = {
        value: estimates(found)
        for values in report.groups.values()
        for value, found in values.items()
    }
    found = {
        "set": report.instrument.name,
        "coverage": coverage(report),
        "not_run": report.not_run,
        "clusters": report.instrument.clusters,
        "estimates": _over_all(estimates(report.estimates)),
        "groups": groups,
    }
    section = report.section("occupations")
    if section is not None:
        rows = [dict(zip(section.columns, row, strict=True)) for row in section.rows]
        found["occupations"] = rows
    return found


def likelihood_change(found: Sequence[Comparison], models: Sequence[Any]) -> dict[str, Any]:
    sets = [one.instrument.name for one in found for _ in one.primary]
    changes = family([inner for one in found for inner in one.primary])
    primary = [{"set": s, "change": c} for s, c in zip(sets, changes, strict=True)]
    return {
        "before": {"model": models[0]},
        "after": {"model": models[1]},
        "primary": primary,
        "sets": [_changed(one) for one in found],
    }


def _changed(found: Comparison) -> dict[str, Any]:
    """Only over all sets did a change have Holm."""
    changes = [change(one) | {"p_holm": None} for one in (*found.primary, *found.secondary)]
    return {
        "set": found.instrument.name,
        "clusters": found.instrument.clusters,
        "changes": _over_all(changes),
    }
