"""Reports of written texts, as they were: RealToxicityPrompts and over-correction."""

from typing import Any

import polars as pl

from evenhand.findings.comparison import Comparison
from evenhand.findings.found import Change, Estimate
from evenhand.findings.report import Report
from evenhand.findings.sweep import Arm, Sweep
from evenhand.metrics.overcorrection import WORSE
from same_numbers.as_before.shapes import (
    change,
    coverage,
    estimate,
    estimates,
    head,
    rows,
    sides,
    table,
)

TRAITS = ("fluency", "coherence", "relevance")
_OF_JUDGE = "The judge "  # how a note on the judge of quality begins
_EXAMPLES = 3  # of each way to make a text worse


def rtp(report: Report) -> dict[str, Any]:
    """The figures of all continuations and of each bucket; those of a judge apart."""
    scoring, written = (table(report.section(name)) for name in ("scoring", "continuations"))
    groups = {"all": report.estimates, **report.groups["bucket"]}
    prompts = {name: written[name] for name in ("prompts", "prompts_without_score")}
    scores = {
        "coverage": coverage(report) | prompts,
        "estimates": {name: estimates(_scored(found)) for name, found in groups.items()},
        "if_missing_were": _bounds(report),
        "max_of_n": _curves(report),
        "echoed": written["repeated_their_prompt"],
        "notes": [note for note in report.notes if not note.startswith(("CIRCULAR", _OF_JUDGE))],
    }
    return head(report) | {
        "scorer": scoring["scorer"],
        "circular": scoring["circular"] == "yes",
        "refusal_rules": scoring["word_rules_of_refusals"],
        "scores": scores,
        "quality": _quality(report, groups),
    }


def rtp_rows(report: Report) -> dict[str, list[Any]]:
    """Without a judge there were no rows of quality."""
    judged = report.section("quality") is not None
    every = rows(report)
    return {key: row for key, row in every.items() if judged or not key.endswith(TRAITS)}


def _scored(found: tuple[Estimate, ...]) -> list[Estimate]:
    return [one for one in found if one.name not in TRAITS]


def _quality(report: Report, groups: dict[str, Any]) -> dict[str, Any] | None:
    section = report.section("quality")
    if section is None:
        return None
    spent = report.further["quality"]
    marks = {
        name: estimates(one for one in found if one.name in TRAITS)
        for name, found in groups.items()
    }
    money = {"cost": spent.money.cost, "currency": spent.money.currency}
    said = {"calls": spent.calls, "money": money, "estimates": marks}
    notes = [note for note in report.notes if note.startswith(_OF_JUDGE)]
    return table(section) | said | {"notes": notes}


def _bounds(report: Report) -> dict[str, Any]:
    section = report.section("if_missing_were")
    assert section is not None
    found: dict[str, Any] = {}
    for group, name, harmless, toxic in section.rows:
        ends = found.setdefault(str(group), {"harmless": {}, "toxic": {}})
        ends["harmless"][name], ends["toxic"][name] = harmless, toxic
    return found


def _curves(report: Report) -> dict[str, list[dict[str, Any]]]:
    section = report.section("max_of_n")
    assert section is not None
    found: dict[str, list[dict[str, Any]]] = {}
    for group, *point in section.rows:
        found.setdefault(str(group), []).append(dict(zip(section.columns[1:], point, strict=True)))
    return found


def rtp_change(found: Comparison) -> dict[str, Any]:
    compared, scoring = sides(found), table(found.sections[0])
    judged = [one for one in compared["secondary"] if one["name"] in TRAITS]
    known = all(one["undefined"] is None for one in judged)
    return compared | {
        "scorer": scoring["scorer"],
        "circular": scoring["circular"] == "yes",
        "secondary": [one for one in compared["secondary"] if one["name"] not in TRAITS],
        "buckets": {
            name: [change(one) for one in changes]
            for name, changes in found.groups["bucket"].items()
        },
        "quality": judged if known else "quality was not judged in both runs (--quality N)",
    }


def overcorrection(found: Sweep, outcomes: pl.DataFrame) -> dict[str, Any]:
    rules = table(found.arms[0].report.section("rules"))
    methods = [_method(arm, outcomes.filter(pl.col("method") == arm.name)) for arm in found.arms]
    return {
        "benchmark": found.instrument.name,
        "rules": rules["rules on words"],
        "methods": methods,
    }


def _method(arm: Arm, outcomes: pl.DataFrame) -> dict[str, Any]:
    report, compared = arm.report, arm.comparison
    return {
        "name": arm.name,
        "method": report.side.method,
        "model": report.side.model,
        "coverage": coverage(report),
        "made_worse": estimate(report["made_worse"]),
        "more_than_default": compared and _more(compared["made_worse"]),
        "outcomes": [estimate(one) for one in report.estimates if one.name != "made_worse"],
        "families": [
            {"family": family} | {one.name: estimate(one) for one in one_family}
            for family, one_family in report.groups["family"].items()
        ],
        "examples": _examples(outcomes),
    }


def _more(one: Change) -> dict[str, Any]:
    """The change as an estimate, which it was."""
    numbers = {name: getattr(one, name) for name in ("low", "high", "n", "clusters", "undefined")}
    return {"name": "more_than_default", "value": one.difference, **numbers}


def _examples(outcomes: pl.DataFrame) -> list[dict[str, Any]]:
    """Three of each way stood in the report; the report has one now, the table has all."""
    ordered = outcomes.sort("position").select("item_id", "outcome", "before", "after")
    of_each = [ordered.filter(pl.col("outcome") == name).head(_EXAMPLES) for name in WORSE]
    return [row for found in of_each for row in found.to_dicts()]
