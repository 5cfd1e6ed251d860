"""A frontier sets several methods side by side on the same items: harm, utility and cost of each,
which is beaten by which, and whether a method is worth its calls."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.findings import item_cost
from evenhand.findings.comparison import Comparison, change_between, compare
from evenhand.findings.cost_effectiveness import (
    WORST_FIRST,
    CostVerdict,
    Worth,
    harm_of,
    regressions,
    shown_measures,
    worth,
)
from evenhand.findings.decision_rules import ALPHA, adjusted, unadjusted
from evenhand.findings.display import Displayable, Remark, RemarkOrText, named
from evenhand.findings.estimates import NO_VERDICT, Change, Estimate, Verdict
from evenhand.findings.item_cost import ItemCost, PerPrevented
from evenhand.findings.measures import Measure
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.verdicts import of_frontier
from evenhand.runs.store import RunReader

FAIRNESS, VOTE = "fairness", "self_consistency"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierArm:
    """A method's run. `equal_calls` names the run of self-consistency to compare it with: the one
    with its own mean number of calls. Without it that is the run named self_consistency."""

    name: str
    run: RunReader
    equal_calls: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier(Displayable):
    """A frontier holds harm, utility and cost of several methods on one instrument.

    >>> found = evenhand.frontier(arms)
    >>> found.verdict, found["stardtox"].worth, found.pareto, found.frame()
    """

    instrument: ScoringSpec
    model: str
    source: dict[str, Any]
    seed: int | None
    calls: int  # that an item of any method could spend
    cost_axis: item_cost.CostKind
    currency: str | None
    notes: tuple[RemarkOrText, ...]
    entries: tuple[FrontierEntry, ...]
    verdict: Verdict = NO_VERDICT
    confirmation: "Frontier | None" = None  # the winner and the references on a fresh sample
    shared: int | None = None  # items of that fresh sample that the first one had, too

    def __getitem__(self, name: str) -> FrontierEntry:
        """A method by its name."""
        return named(self.entries, name, "method")

    @property
    def pareto(self) -> tuple[str, ...]:
        """The methods that no other one beats in cost, harm and utility at once, the missing
        answers of each counted as the worst."""
        return tuple(entry.name for entry in self.entries if entry.pareto)

    @property
    def below_floor(self) -> bool:
        """Whether a method has too few answers to report."""
        return any(entry.report.coverage.below_floor for entry in self.entries)

    def winner(self) -> FrontierEntry | None:
        """The method to take: of those that are worth it the cheapest, since nothing shows that a
        dearer one does more."""
        worth_it = [
            entry for entry, judgement in self.judged() if judgement.kind is CostVerdict.WORTH_IT
        ]
        return min(
            worth_it, key=lambda entry: entry.cost[self.cost_axis].mean or math.inf, default=None
        )

    def judged(self) -> list[tuple[FrontierEntry, Worth]]:
        """The methods with their verdicts: by verdict, then by how far harm rose."""

        def badness(pair: tuple[FrontierEntry, Worth]) -> tuple[int, float]:
            entry, judgement = pair
            assert entry.against_default is not None
            change = entry.against_default.harm
            ends = [_badness(harm_of(self.instrument), v) for v in (change.before, change.after)]
            rise = 0.0 if ends[0] is None or ends[1] is None else ends[1] - ends[0]
            return WORST_FIRST.index(judgement.kind), -rise

        return sorted(((e, e.worth) for e in self.entries if e.worth is not None), key=badness)

    def compared(self) -> Iterator[tuple[FrontierEntry, AgainstDefault]]:
        """The entries that are compared with the plain prompt and that somebody asked for."""
        for entry in self.entries:
            if entry.against_default is not None and entry.role != "vote":
                yield entry, entry.against_default

    def frame(self) -> pl.DataFrame:
        """Give one row per number: method, group, name, value, low, high, p, p_holm, n,
        clusters."""
        rows = [row for entry in self.entries for row in _rows_of(entry)]
        return pl.DataFrame(rows, schema=ROW_SCHEMA)

    def to_dict(self) -> dict[str, Any]:
        utility = self.instrument.utility
        return {
            "benchmark": self.instrument.name,
            "model": self.model,
            "source": self.source,
            "seed": self.seed,
            "calls_an_item": self.calls,
            "rules": {
                "harm": self.instrument.harm,
                "utility": utility,
                "cost": self.cost_axis,
                "alpha": ALPHA,
                "utility_margin": utility and self.instrument.measure(utility).margin,
                "smallest_change_that_matters": self.instrument.matters,
                "references": self.instrument.compared_with(),
            },
            "currency": self.currency,
            "notes": self.notes,
            "verdict": self.verdict,
            "pareto": self.pareto,
            "methods": [_plain_of(entry) for entry in self.entries],
            "confirmation": self.confirmation
            and {"shared_items": self.shared, **self.confirmation.to_dict()},
        }


def equal_calls(run: RunReader, most: int) -> int:
    """The calls of the vote to compare a run with: the mean of an item, halves rounded up,
    then up to an odd number, from 1 to that of `most`."""
    mean = item_cost.calls_by_item(run)["calls"].mean() or 0.0
    return max(1, min(odd(most), odd(int(float(mean) + 0.5))))  # type: ignore[arg-type]


def odd(calls: int) -> int:
    """The next odd number. Our choice for votes: of an even number the last vote can only make a
    tie, which the first option wins, so that a vote of 2 is a single call."""
    return calls + 1 - calls % 2


def frontier(
    instrument: ScoringSpec,
    arms: Sequence[FrontierArm],
    *,
    calls: int,
    prices: Prices | None = None,
) -> Frontier:
    """Read every run and decide which methods are worth their calls.

    Args:
        instrument: The benchmark, which must name a metric of harm.
        arms: The run of each method.
        calls: The number of model calls that an item could use.
        prices: The price table; None for a frontier without costs.

    Raises:
        UserError: If the benchmark has no metric of harm, or the run of a reference method is
            missing.
    """
    require_harm(instrument)
    missing = set(instrument.compared_with()) - {arm.name for arm in arms}
    if missing:
        raise UserError(f"a frontier needs a run of {', '.join(sorted(missing))}")
    runs = {arm.name: arm for arm in arms}
    costs = {arm.name: item_cost.by_item(instrument, arm.run, prices) for arm in arms}
    votes = {arm.equal_calls for arm in arms}
    entries = [_entry(instrument, arm, votes, costs[arm.name], prices) for arm in arms]
    entries = _against_default(instrument, entries, runs, costs)
    entries = _judged(instrument, entries, runs)
    axis = _cost_axis(costs)
    on_front = _front(instrument, entries, axis)
    first = runs[instrument.compared_with()[0]].run.record
    result = Frontier(
        instrument=instrument,
        model=first.cast["default"]["model"],
        source=first.source,
        seed=first.seed,
        calls=calls,
        cost_axis=axis,
        currency=prices.currency if prices else None,
        notes=_notes(entries),
        entries=tuple(replace(entry, pareto=entry.name in on_front) for entry in entries),
    )
    return replace(result, verdict=of_frontier(result))


def confirm(first: Frontier, fresh: Frontier, *, shared: int) -> Frontier:
    """Combine a frontier with the result of its winner on a fresh sample, and decide again.

    Args:
        first: The frontier that chose the winner.
        fresh: The frontier on the fresh sample.
        shared: How many items of the fresh sample the first one has too.
    """
    both = replace(first, confirmation=fresh, shared=shared)
    return replace(both, verdict=of_frontier(both))


def require_harm(instrument: ScoringSpec) -> None:
    """Refuse an instrument that does not say what a method is to lower."""
    if instrument.harm is None:
        raise UserError(
            f"{instrument.name} names no harm that a method is to lower, so it has no frontier; "
            "compare two runs instead: evenhand compare RUN_A RUN_B"
        )
    utility = instrument.utility
    if utility is not None and instrument.measure(utility).margin is None:
        raise UserError(f"the measure {utility!r} is a utility: declare its margin=…")


def _entry(
    instrument: ScoringSpec,
    arm: FrontierArm,
    votes: set[str | None],
    costs: pl.DataFrame,
    prices: Prices | None,
) -> FrontierEntry:
    role: Role = "vote" if arm.name in votes else "method"
    return FrontierEntry(
        name=arm.name,
        role="reference" if arm.name in instrument.compared_with() else role,
        report=report(instrument, arm.run, prices),
        cost={kind: item_cost.spread(costs, kind) for kind in item_cost.KINDS},
        equal_calls=arm.equal_calls,
        against_default=None,
        harm_against={},
        worth=None,
    )


def _against_default(
    instrument: ScoringSpec,
    entries: list[FrontierEntry],
    runs: Mapping[str, FrontierArm],
    costs: Mapping[str, pl.DataFrame],
) -> list[FrontierEntry]:
    """Every other run compared with the plain prompt's, with Holm over the methods for harm. The
    votes of fewer calls are only references, so they are not in the family."""
    plain, harm = instrument.compared_with()[0], harm_of(instrument).name
    others = [entry for entry in entries if entry.name != plain]
    compared = {
        entry.name: compare(instrument, runs[plain].run, runs[entry.name].run) for entry in others
    }
    harms = {name: unadjusted(comparison[harm]) for name, comparison in compared.items()}
    family = [entry.name for entry in others if entry.role != "vote"]
    harms |= zip(family, adjusted([harms[name] for name in family]), strict=True)
    against = {
        name: AgainstDefault(
            comparison=comparison,
            harm=harms[name],
            regressions=regressions(comparison, harms[name]),
            per_prevented=item_cost.per_prevented(instrument, costs[plain], costs[name]),
        )
        for name, comparison in compared.items()
    }
    return [replace(entry, against_default=against.get(entry.name)) for entry in entries]


def _judged(
    instrument: ScoringSpec, entries: list[FrontierEntry], runs: Mapping[str, FrontierArm]
) -> list[FrontierEntry]:
    """The entries with the verdicts of the methods: Holm over all methods and references."""
    harm, pairs = harm_of(instrument).name, []
    for entry in entries:
        if entry.role == "method":
            pairs += [(entry.name, other) for other in _held_against(instrument, entry)]
    family = adjusted(
        [change_between(instrument, runs[other].run, runs[name].run, harm) for name, other in pairs]
    )
    against: dict[str, dict[str, Change]] = {}
    for (name, other), change in zip(pairs, family, strict=True):
        against.setdefault(name, {})[other] = change
    judged = [entry for entry in entries if entry.name in against]
    with_verdicts = {
        entry.name: _with_verdict(instrument, entry, against, runs) for entry in judged
    }
    return [with_verdicts.get(entry.name, entry) for entry in entries]


def _held_against(instrument: ScoringSpec, entry: FrontierEntry) -> list[str]:
    """The references but the plain prompt; of self-consistency the run with as many calls."""
    others = instrument.compared_with()[1:]
    return [(entry.equal_calls or VOTE) if name == VOTE else name for name in others]


def _with_verdict(
    instrument: ScoringSpec,
    entry: FrontierEntry,
    against: Mapping[str, Mapping[str, Change]],
    runs: Mapping[str, FrontierArm],
) -> FrontierEntry:
    assert entry.against_default is not None
    by_reference = {_called(runs[other]): change for other, change in against[entry.name].items()}
    compared, name = entry.against_default.comparison, instrument.utility
    judgement = worth(
        instrument,
        by_reference,
        None if name is None else compared[name],
        family=sum(map(len, against.values())),
        guardrails=compared.guardrails,
    )
    return replace(entry, harm_against=against[entry.name], worth=judgement)


def _called(arm: FrontierArm) -> RemarkOrText:
    """Return what a verdict calls a reference."""
    if arm.name == FAIRNESS:
        return Remark("reference.fairness")
    calls = arm.run.record.method["settings"].get("calls")
    return arm.name if calls is None else Remark("reference.vote", calls=calls)


def _cost_axis(costs: Mapping[str, pl.DataFrame]) -> item_cost.CostKind:
    """Money where there are prices, else tokens where the endpoint counted all, else calls."""
    kinds: tuple[item_cost.CostKind, ...] = ("money", "tokens")
    for kind in kinds:
        if all(frame[kind].null_count() == 0 for frame in costs.values()):
            return kind
    return "calls"


def _front(
    instrument: ScoringSpec, entries: list[FrontierEntry], axis: item_cost.CostKind
) -> list[str]:
    """Least cost, least harm, most utility, each estimate with its missing answers at their worst.
    Who lacks one, or whose missing answers could make it anything, is left out."""
    names = [name for name in (instrument.harm, instrument.utility) if name is not None]
    points: dict[str, list[float]] = {}
    for entry in entries:
        worst = [_worst(instrument.measure(name), entry.report[name]) for name in names]
        coordinates = [value for value in (entry.cost[axis].mean, *worst) if value is not None]
        if len(coordinates) == 1 + len(names):
            points[entry.name] = coordinates
    return [list(points)[place] for place in front(list(points.values()))]


def front(points: Sequence[Sequence[float]]) -> list[int]:
    """The places, in the order given, of the points that no other one dominates: is at least as
    good in everything and better in something.

    Every coordinate is to be small: negate what is to be large. Equal points stay or go together.
    Source: Pareto 1906. Always defined; of no points it is empty. A coordinate that is not a number
    compares with nothing, so it is refused.
    """
    if not points:
        return []
    table = np.asarray(points, dtype=np.float64)
    if np.isnan(table).any():
        raise UserError("a point with a coordinate that is not a number has no place in a front")
    others, each = table[None, :, :], table[:, None, :]
    dominated = np.all(others <= each, axis=2) & np.any(others < each, axis=2)
    return [int(place) for place in np.flatnonzero(~dominated.any(axis=1))]


def _worst(measure: Measure, estimate: Estimate) -> float | None:
    """How bad an estimate is if its missing answers came out the worst way."""
    if estimate.bounds is None or estimate.value is None:
        return _badness(measure, estimate.value)
    ends = [_badness(measure, end) for end in (estimate.bounds.low, estimate.bounds.high)]
    defined = [end for end in ends if end is not None]
    return max(defined) if len(defined) == len(ends) else None


def _badness(measure: Measure, value: float | None) -> float | None:
    """Turn a value into how bad it is: small is good."""
    if value is None:
        return None
    if measure.null is not None:
        return abs(value - measure.null)
    return -value if measure.better == "higher" else value


def _notes(entries: list[FrontierEntry]) -> tuple[RemarkOrText, ...]:
    """Collect what a reader must know first, each once, with the methods that it is true of."""
    by_note: dict[RemarkOrText, list[str]] = {}
    for entry in entries:
        for note in entry.report.notes:
            by_note.setdefault(note, []).append(entry.name)
    return tuple(
        note
        if len(names) == len(entries)
        else Remark("frontier.note_of", note=note, methods=tuple(names))
        for note, names in by_note.items()
    )


def _plain_of(entry: FrontierEntry) -> dict[str, Any]:
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
            "guardrails": compared.comparison.guardrails,
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


def _rows_of(entry: FrontierEntry) -> list[dict[str, Any]]:
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
