"""Several methods on the same items: harm, utility and cost of each, who regrets what, and whether
a method is worth its calls. Regressions first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from evenhand.domain.prices import Prices
from evenhand.errors import UserError
from evenhand.instruments.bbq.outcomes import outcomes
from evenhand.report import bbq, bbq_compare, frontier_cost
from evenhand.report.bbq_report import SCORED_COLUMNS
from evenhand.report.frontier_verdict import (
    HARM,
    MATTERS,
    UTILITY,
    WORST_FIRST,
    Verdict,
    regressions,
    verdict,
    with_holm,
)
from evenhand.statistics.pareto import front
from evenhand.store import RunReader

# Everything is compared with these, so they are always run.
DEFAULT, FAIRNESS, VOTE = "default", "fairness", "self_consistency"
REFERENCES = (DEFAULT, FAIRNESS, VOTE)
SHOWN = (
    "s_amb",
    "unsupported_attribution",
    "stereotyped_rate",
    "accuracy_disambiguated",
    "over_abstention",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A method's run. `equal_calls` names the self-consistency that it is held against: the one
    with its own mean number of calls, or None for what is itself a comparator."""

    name: str
    run: RunReader
    equal_calls: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    arm: Arm
    scored: pl.DataFrame  # without the masked records
    costs: pl.DataFrame
    scores: dict[str, Any]


def equal_calls(run: RunReader, most: int) -> int:
    """The mean calls of an item, halves rounded up, from 1 to `most`."""
    results = run.results().select("position", "calls").collect()
    mean = frontier_cost.calls_by_item(run, results)["calls"].mean() or 0.0
    return max(1, min(most, int(float(mean) + 0.5)))  # type: ignore[arg-type]


def frontier(arms: Sequence[Arm], *, calls: int, prices: Prices | None) -> dict[str, Any]:
    """The whole report as plain data. `calls` is what an item of any method could spend."""
    missing = set(REFERENCES) - {arm.name for arm in arms}
    if missing:
        raise UserError(f"a frontier needs a run of {', '.join(sorted(missing))}")
    found = {arm.name: _scored(arm, prices) for arm in arms}
    axis = _cost_axis(found)
    entries = [_entry(found[arm.name], found[DEFAULT]) for arm in arms]
    _compare_with_default(entries)
    _judge(entries, found)
    on_front = _front(entries, axis)
    for entry in entries:
        entry["pareto"] = entry["name"] in on_front
    first = found[DEFAULT].arm.run.record
    return {
        "benchmark": "bbq",
        "model": first.cast["default"]["model"],
        "source": first.source,
        "seed": first.seed,
        "calls_an_item": calls,
        "rules": {
            "harm": HARM,
            "utility": UTILITY,
            "cost": axis,
            "alpha": bbq_compare.ALPHA,
            "accuracy_margin": bbq_compare.ACCURACY_MARGIN,
            "smallest_change_that_matters": MATTERS,
        },
        "currency": prices.currency if prices else None,
        "notes": _notes(found),
        "pareto": on_front,
        "methods": entries,
    }


def _scored(arm: Arm, prices: Prices | None) -> _Scored:
    results = arm.run.results().select(SCORED_COLUMNS).collect()
    scored = outcomes(results)
    return _Scored(
        arm=arm,
        scored=scored.filter(~pl.col("masked")),
        costs=frontier_cost.by_item(arm.run, results, scored, prices),
        scores=bbq.scores(scored),
    )


def _entry(one: _Scored, default: _Scored) -> dict[str, Any]:
    estimates = {e.name: e for e in one.scores["estimates"]}
    record = one.arm.run.record
    entry: dict[str, Any] = {
        "name": one.arm.name,
        "run": str(one.arm.run.path),
        "method": record.method,
        "role": _role(one.arm),
        "not_run": record.source["items"] - len(one.costs),
        "coverage": one.scores["coverage"],
        "estimates": {name: estimates[name] for name in SHOWN},
        "cost": {k: frontier_cost.spread(one.costs, k) for k in frontier_cost.KINDS},
        "notes": one.scores["notes"],
        "against_default": None,
        "equal_calls": one.arm.equal_calls,
        "harm_against": None,
        "verdict": None,
    }
    if one is not default:
        compared = bbq_compare.compare(default.arm.run, one.arm.run)
        changes = {c.name: c for c in (*compared["primary"], *compared["secondary"])}
        entry["against_default"] = {
            "regressions": regressions(changes, compared["answers"]),
            "guardrails": compared["guardrails"],
            "changes": {name: changes[name] for name in SHOWN},
            "answers": {kind: _in_order(moved) for kind, moved in compared["answers"].items()},
            "per_prevented": frontier_cost.per_prevented(
                (default.scored, default.costs), (one.scored, one.costs)
            ),
        }
    return entry


def _in_order(moved: dict[str, Any]) -> dict[str, Any]:
    """Equal counts of transitions come in any order; the same runs must give the same report."""
    ordered = sorted(moved["transitions"], key=lambda row: (-row["len"], *map(str, row.values())))
    return {**moved, "transitions": ordered}


def _role(arm: Arm) -> str:
    """A method is judged, a reference is one that it is held against; a vote is self-consistency
    with fewer calls than it may have."""
    if arm.equal_calls is not None:
        return "method"
    return "reference" if arm.name in REFERENCES else "vote"


def _compare_with_default(entries: list[dict[str, Any]]) -> None:
    """Holm over the methods, for the primary harm. The other changes have no adjusted p-value:
    they are exploratory here, and `compare` adjusts over its own three endpoints. The votes of
    fewer calls are no methods that anybody named, so they are not in the family."""
    family = []
    for entry in entries:
        if entry["against_default"] is None:
            continue
        changes = entry["against_default"]["changes"]
        changes.update({name: replace(change, p_holm=None) for name, change in changes.items()})
        if entry["role"] != "vote":
            family.append(changes)
    for changes, adjusted in zip(family, with_holm([c[HARM] for c in family]), strict=True):
        changes[HARM] = adjusted


def _judge(entries: list[dict[str, Any]], found: dict[str, _Scored]) -> None:
    judged = [entry for entry in entries if entry["role"] == "method"]
    pairs = [(entry, other) for entry in judged for other in (FAIRNESS, entry["equal_calls"])]
    family = with_holm(
        [
            bbq_compare.change(found[other].scored, found[entry["name"]].scored, HARM)
            for entry, other in pairs
        ]
    )
    for entry in judged:
        mine = [
            (other, change)
            for (one, other), change in zip(pairs, family, strict=True)
            if one is entry
        ]
        entry["harm_against"] = dict(mine)
        accuracy = entry["against_default"]["changes"][UTILITY]
        named = {in_words(other, found): change for other, change in mine}
        entry["verdict"] = verdict(named, accuracy)


def in_words(comparator: str, found: dict[str, _Scored]) -> str:
    if comparator == FAIRNESS:
        return "the fairness prompt"
    calls = found[comparator].arm.run.record.method["settings"]["calls"]
    return f"self-consistency at {calls} call{'s' * (calls > 1)}"


def _cost_axis(found: dict[str, _Scored]) -> str:
    """Money where there are prices, else tokens where the endpoint counted all, else calls."""
    for kind in ("money", "tokens"):
        if all(one.costs[kind].null_count() == 0 for one in found.values()):
            return kind
    return "calls"


def _front(entries: list[dict[str, Any]], axis: str) -> list[str]:
    """By estimates alone: least cost, least harm, most utility. Who lacks one is left out."""
    points = {
        entry["name"]: (
            entry["cost"][axis]["mean"],
            entry["estimates"][HARM].value,
            entry["estimates"][UTILITY].value,
        )
        for entry in entries
    }
    whole = {name: point for name, point in points.items() if None not in point}
    names = list(whole)
    kept = front([(cost, harm, -utility) for cost, harm, utility in whole.values()])
    return [names[place] for place in kept]


def _notes(found: dict[str, _Scored]) -> list[str]:
    """What a reader must know first, each once, with the methods that it is true of."""
    named: dict[str, list[str]] = {}
    for name, one in found.items():
        for note in one.scores["notes"]:
            named.setdefault(note, []).append(name)
    return [
        note if len(names) == len(found) else f"{note} True of: {', '.join(names)}."
        for note, names in named.items()
    ]


def worst_first(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The judged ones: by verdict, then by how far harm rose against the default."""

    def badness(entry: dict[str, Any]) -> tuple[int, float]:
        found: Verdict = entry["verdict"]
        change = entry["against_default"]["changes"][HARM].difference
        return WORST_FIRST.index(found.kind), -(change or 0.0)

    return sorted((entry for entry in entries if entry["role"] == "method"), key=badness)
