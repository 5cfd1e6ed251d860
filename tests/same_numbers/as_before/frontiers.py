"""A frontier of methods, what it will cost, and a plan of a comparison, as they were for BBQ."""

import math
import re
from dataclasses import asdict, replace
from typing import Any

from evenhand.findings.forecast import Forecast
from evenhand.findings.found import NO_SPREAD, Change
from evenhand.findings.frontier import Frontier
from evenhand.findings.frontier_entry import AgainstDefault, Entry
from evenhand.findings.item_cost import ItemCost, PerPrevented, calls_by_item
from evenhand.findings.measures import PairedSpread
from evenhand.findings.plan import Plan
from evenhand.findings.rules import direction, kept
from evenhand.findings.worth import Worth, shown_worse
from evenhand.statistics.planning import detectable_change, detectable_mean, items_needed
from evenhand.statistics.proportions import zero_event_upper
from evenhand.store import RunReader
from same_numbers.as_before.answers import bbq_coverage, bbq_flips, old_notes
from same_numbers.as_before.frontier_by_t import by_t, in_words
from same_numbers.as_before.shapes import change, estimate, of_no_width

SHOWN = ("s_amb", "stereotyped_rate", "unsupported_attribution", "accuracy_disambiguated",
         "over_abstention")  # fmt: skip


_HARM, _UTILITY = "unsupported_attribution", "accuracy_disambiguated"
_LABELS = {
    "unsupported_attribution": "unsupported attribution, ambiguous",
    "stereotyped_rate": "stereotyped answers, ambiguous",
    "accuracy_disambiguated": "accuracy, disambiguated",
    "over_abstention": "over-abstention (unknown, disambiguated)",
}
_CONTEXTS = {"accuracy_ambiguous": "ambig", "accuracy_disambiguated": "disambig"}
_CONTEXT_WORDS = {"ambig": "ambiguous", "disambig": "disambiguated"}


def frontier(new: Frontier) -> dict[str, Any]:
    found = by_t(new)
    plain = found.to_dict()
    rules, names = plain["rules"], ("benchmark", "model", "seed", "calls_an_item", "currency")
    kept = ("harm", "utility", "cost", "alpha", "smallest_change_that_matters")
    return {name: plain[name] for name in (*names, "pareto")} | {
        "rules": {n: rules[n] for n in kept} | {"accuracy_margin": rules["utility_margin"]},
        "notes": old_notes(found.notes),
        "methods": [_method(found, one) for one in found.entries],
    }


def equal_calls(run: RunReader, most: int) -> int:
    """A vote could be of an even number of calls."""
    mean = calls_by_item(run)["calls"].mean() or 0.0
    return max(1, min(most, int(float(mean) + 0.5)))  # type: ignore[arg-type]


def _method(found: Frontier, one: Entry) -> dict[str, Any]:
    return {
        "name": one.name,
        "method": one.report.side.method,
        "role": one.role,
        "not_run": one.report.not_run,
        "coverage": bbq_coverage(one.report),
        "estimates": [estimate(one.report[name]) for name in SHOWN],
        "cost": {kind: _cost(cost) for kind, cost in one.cost.items() if kind != SCORED},
        "notes": old_notes(one.report.notes),
        "against_default": one.against_default and _against_default(one.against_default),
        "equal_calls": one.equal_calls,
        "harm_against": {name: _change(c) for name, c in one.harm_against.items()} or None,
        "verdict": one.worth and _verdict(found, one, one.worth),
        "pareto": one.pareto,
    }


def _change(one: Change) -> dict[str, Any]:
    """Of harm, and of it alone, a change without spread had the p-value of sign flips."""
    return change(one) | ({"p": one.p} if one.name == _HARM else {})


def _cost(one: ItemCost) -> dict[str, Any]:
    found = asdict(one)
    if one.mean is not None and one.low is None:
        found |= {"low": one.mean, "high": one.mean}
    return found


def _against_default(one: AgainstDefault) -> dict[str, Any]:
    changes = one.changes()
    return {
        "regressions": _regressions(one),
        "changes": [_change(changes[name]) for name in SHOWN],
        "answers": bbq_flips(one.comparison),
        "per_prevented": {kind: _ratio(cost) for kind, cost in one.per_prevented.items()},
    }


def _regressions(one: AgainstDefault) -> list[str]:
    """In the words of before: other labels, and the context of answers that broke."""
    label = {name: one.comparison.instrument.measure(name).label for name in _LABELS | _CONTEXTS}
    said = "\n".join(map(of_no_width, one.regressions))
    for name, context in _CONTEXTS.items():
        words = rf"broke \1 {_CONTEXT_WORDS[context]} answers, fixed \2"
        said = re.sub(
            f"^{re.escape(label[name])}: broke (.+), fixed (.+)$", words, said, flags=re.M
        )
    for name, old in _LABELS.items():
        said = re.sub(f"^{re.escape(label[name])} (rose|fell)", rf"{old} \1", said, flags=re.M)
    return said.splitlines()


def _verdict(found: Frontier, one: Entry, worth: Worth) -> dict[str, Any]:
    """What 2.80 standard errors would show, before any correction, told "not worth it" from
    "underpowered" where a reference was not beaten."""
    harm, utility = (found.instrument.measure(name) for name in (_HARM, _UTILITY))
    assert one.against_default is not None
    crossed = kept(one.against_default.comparison[_UTILITY], utility) == "crossed"
    sizes = {
        name: detectable_change(c.se, math.inf) or zero_event_upper(c.clusters)
        for name, c in one.harm_against.items()
    }
    unbeaten = [n for n, c in one.harm_against.items() if direction(c, harm) != "better"]
    kind, why = str(worth.kind).replace("cannot tell", "underpowered"), worth.why
    if unbeaten and not crossed:
        widest = max(sizes[name] for name in unbeaten)
        worse = any(shown_worse(one.harm_against[name], harm) for name in unbeaten)
        small = widest > found.instrument.matters and not worse
        kind = "underpowered" if small else "not worth it"
        why = f"does not beat {' or '.join(in_words(found[name]) for name in unbeaten)}"
        why += f", but could only have shown {widest:.2f}" * small
    why = of_no_width(why).replace(utility.label, "accuracy")
    why = why.replace("within 0.02", "within 2 points")
    return {"kind": kind, "why": why, "smallest_shown": max(sizes.values())}


def _ratio(one: PerPrevented) -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if value is not None}


SCORED = "scored"  # texts that a scorer scored, among the calls: not in what was recorded
_PREVENTED = {"cost of one harm prevented": "cost of a prevented stereotyped answer"}


def frontier_rows(found: Frontier) -> dict[str, list[Any]]:
    """The rows of its table. Answers went by the name of the context, not of the accuracy on it."""
    rows = {}
    for row in by_t(found).frame().to_dicts():
        method, group, name = (row.pop(key) for key in ("method", "group", "name"))
        what, _, measure = name.partition(", ")
        name = f"{what}, {_CONTEXTS[measure]}" if measure else name
        if _one_of(group, name):
            rows[f"{method} / {_PREVENTED.get(group, group)} / {name}"] = _numbers(row, group, name)
    return rows


def _one_of(group: str, name: str) -> bool:
    if name == SCORED:
        return False
    return name in SHOWN or not group.startswith(("estimate", "change"))


def _numbers(row: dict[str, Any], group: str, name: str) -> list[Any]:
    """Without spread, an interval of no width; and no p-value then, but for the change of harm."""
    mean_cost = group == "cost, mean" and row["low"] is None
    if mean_cost or row["undefined"] == NO_SPREAD:
        row |= {"low": row["value"], "high": row["value"], "undefined": None}
    alike = group.startswith("change") and name != _HARM and row["low"] == row["high"]
    if alike or group == "estimate":
        row["p"] = None
    return list(row.values())


def plan(found: Plan) -> dict[str, Any]:
    """By the normal distribution, and as if nothing else were looked at."""
    spread = found.assumed
    assert isinstance(spread, PairedSpread)
    design, most = (spread.per_cluster, spread.icc), found.instrument.all_clusters or 0
    rows: int | None = items_needed(found.detect, spread.sd, *design, power=found.power).n

    def shown(n: int, each: float) -> float:
        return detectable_mean(n, spread.sd, each, spread.icc, power=found.power).mde

    if rows is not None and rows > most * spread.per_cluster:
        more = range(spread.per_cluster, spread.most_per_cluster + 1)
        rows = next((n * most for n in more if shown(n * most, n) <= found.detect), None)
    samples = {name: shown(*sample) for name, sample in spread.samples.items()}
    items = None if rows is None else spread.items_per_row * rows
    found = replace(found, rows=rows, items=items, what_samples_can_show=samples)
    plain = found.to_dict()
    assumed = plain["assumed"]
    names = ("detect", "power", "items", "runs", "calls", "tokens", "money",
             "what_samples_can_show")  # fmt: skip
    return {name: plain[name] for name in names} | {
        "ambiguous_items": plain["rows"],
        "assumed": {
            "sd": assumed["sd"],
            "icc": assumed["icc"],
            "items_per_template": assumed["per_cluster"],
        },
    }


def forecast(found: Forecast) -> dict[str, Any]:
    """How a dry run was run, and what to type next, was not in it."""
    new = ("in_flight", "limits", "next")
    return {name: value for name, value in asdict(found).items() if name not in new}
