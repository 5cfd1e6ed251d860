"""A gate says of every check whether a run is shown to be no worse than its baseline by more than a
margin, is shown to be worse, or neither.

Pass: within the margin, one-sided at 2.5%, however the missing answers came out. Fail: worse at
all, after Holm over the checks, and not within the margin. Open: neither. Broken: there is nothing
to judge by. Missing answers count against the run that failed to give them, so that one failure
more never turns a check to pass. Our choice: the claims of "pass" need no correction, as the gate
passes only where all of them hold. A run that may stop early is judged by intervals that hold at
every look as well (`gate_until`).
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import scipy  # its parts are loaded when first used

from evenhand.core.errors import EvenhandError, UserError
from evenhand.core.prices import Prices
from evenhand.findings import cost as costs
from evenhand.findings.comparison import refuse_who_picked, same_sample
from evenhand.findings.decision_rules import (
    ALPHA,
    adjusted,
    change_remark,
    direction,
    kept,
    loss_remark,
    turned,
    unadjusted,
)
from evenhand.findings.display import Displayable, Remark, RemarkOrText
from evenhand.findings.estimates import Change, Coverage
from evenhand.findings.measures import Measure
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.plan import PilotSpread, PowerTarget, clusters_needed
from evenhand.findings.report import made_by, not_run, require
from evenhand.findings.scoring import ScoringSpec, outcome_batches
from evenhand.findings.sequential import (
    AtAnyTime,
    Pair,
    SequentialPlan,
    asked_by,
    change_at_any_time,
    of_clusters,
)
from evenhand.runs.store import RunReader
from evenhand.statistics._shared import fewest
from evenhand.statistics.proportions import zero_event_upper

Verdict = Literal["pass", "fail", "inconclusive", "error"]
WORST_FIRST: tuple[Verdict, ...] = ("fail", "error", "inconclusive", "pass")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck:
    """A check names a number of an instrument, and by how much it may get worse: the margin of its
    measure."""

    name: str
    instrument: ScoringSpec
    measure: Measure
    group: tuple[str, str] | None = None  # the column, and its value
    by_default: bool = False  # the file names no measure
    line: int = 1  # where it stands in the file

    def for_runs(self, runs: Pair | RemarkOrText) -> "list[GateCheck]":
        """Give a check for each number that the instrument judges these runs by, where the file
        names no measure: such as every difference between two groups."""
        if not self.by_default or isinstance(runs, RemarkOrText):
            return [self]
        try:
            instrument = self.instrument.for_pair(*runs)
        except EvenhandError:
            return [self]  # judging it will say what is wrong with the runs
        judged = [replace(measure, margin=self.measure.margin)
                  for measure in instrument.judged_by_default(self.group)]  # fmt: skip
        if len(judged) < 2:
            return [replace(self, measure=measure) for measure in judged] or [self]
        return [
            replace(self, measure=measure, name=f"{self.name} ({measure.label})")
            for measure in judged
        ]

    def in_pair(self, runs: Pair) -> "GateCheck":
        """Give the check with the measure as these runs have it: some instruments have one for each
        group of a run."""
        instrument = self.instrument.for_pair(*runs)
        if instrument is self.instrument:
            return self
        by_name = {measure.name: measure for measure in instrument.measures}
        if self.measure.name not in by_name:
            there = ", ".join(by_name) or "none"
            raise UserError(f"these runs have no measure {self.measure.name!r}; they have: {there}")
        measure = replace(by_name[self.measure.name], margin=self.measure.margin)
        return replace(self, instrument=instrument, measure=measure)

    def narrowed(self) -> ScoringSpec:
        """Give the instrument with nothing but what this check looks at."""
        column = None if self.group is None else self.group[0]
        groups = tuple(
            replace(grouping, compared=True)
            for grouping in self.instrument.groups
            if grouping.column == column
        )
        instrument = copy.copy(self.instrument)
        vars(instrument).update(measures=(self.measure,), groups=groups, transitions=None)
        return instrument


POWER = 0.8


_MOST = (
    10**9
)  # our choice, of clusters: nobody has more, and a margin that needs more decides nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsNeeded:
    """More items would decide a check 4 times in 5: show an unchanged number to be within the
    margin, and one that got worse by the margin to be worse. Nothing is known where `why` says
    so."""

    items: int | None = None  # in addition to the existing ones
    clusters: int | None = None
    calls: float | None = None
    tokens: float | None = None
    cost: float | None = None
    currency: str | None = None
    why: Remark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheckResult:
    """A check that was judged: its verdict, and why."""

    name: str
    verdict: Verdict
    says: RemarkOrText
    instrument: str = ""
    measure: Measure | None = None  # with the margin of the check
    group: str = ""
    before: str = ""  # the run folders
    after: str = ""
    items: int = 0
    change: Change | None = None
    more: ItemsNeeded | None = None  # of a check that is open
    early: AtAnyTime | None = None  # of a run that may stop early
    line: int = 1

    @property
    def margin(self) -> float | None:
        return None if self.measure is None else self.measure.margin

    def to_dict(self) -> dict[str, Any]:
        """Give the check as plain data: the measure by its name."""
        values = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        measure_name = None if self.measure is None else self.measure.name
        return {**values, "measure": measure_name, "margin": self.margin}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Displayable):
    """A gate is the checks of one file, judged together.

    >>> found = evenhand_gate("evenhand.gate.toml", baseline="runs/main", run="runs/now")
    >>> assert found.passed, found.says     # `evenhand_gate` is a fixture of pytest
    """

    checks: tuple[GateCheckResult, ...]
    file: str = ""
    notes: tuple[RemarkOrText, ...] = ()

    @classmethod
    def broken(cls, reason: str, file: str = "") -> "Gate":
        """Give the gate of what could not even be begun."""
        return cls(checks=(GateCheckResult(name="gate", verdict="error", says=reason),), file=file)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its checks; of none at all it is broken."""
        verdicts = {check.verdict for check in self.checks}
        return next((verdict for verdict in WORST_FIRST if verdict in verdicts), "error")

    @property
    def passed(self) -> bool:
        return self.verdict == "pass"

    def ordered(self) -> list[GateCheckResult]:
        """Return the checks, worst first."""
        return sorted(self.checks, key=lambda check: WORST_FIRST.index(check.verdict))

    @property
    def says(self) -> str:
        """The verdict and its reasons in words, worst first."""
        lines = [f"{check.verdict}: {check.name}: {check.says}" for check in self.ordered()]
        return "\n".join([f"gate: {self.verdict}", *map(_plain, lines)])

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "file": self.file,
            "checks": [check.to_dict() for check in self.checks],
            "notes": self.notes,
        }


def gate(
    checks: Sequence[GateCheck],
    runs: Mapping[str, Pair | RemarkOrText],
    *,
    lacking: Sequence[str] = (),
    file: str = "",
    prices: Prices | None = None,
    notes: Sequence[RemarkOrText] = (),
) -> Gate:
    """Judge every check by its two runs, or report why it has none.

    Args:
        checks: The checks of the gate file.
        runs: The two runs of each check by its name, or the reason why there are none.
        lacking: Checks that the baseline had and this run lacks: they fail.
        file: The path of the gate file, for the report.
        prices: The price table, for the cost of more items.
        notes: Remarks to add to the result.
    """
    pairs = [
        (each, runs[check.name]) for check in checks for each in check.for_runs(runs[check.name])
    ]
    seen_of = [_CheckEstimate.of(check, pair, len(pairs)) for check, pair in pairs]
    family = adjusted([observed.change for observed in seen_of])
    judged = [
        observed.judged(change, len(family), prices)
        for observed, change in zip(seen_of, family, strict=True)
    ]
    lost = [
        GateCheckResult(name=name, verdict="fail", says=Remark("gate.lacking")) for name in lacking
    ]
    return Gate(checks=(*judged, *lost), file=file, notes=tuple(notes))


def is_decided(check: GateCheck, runs: Pair, family: int) -> bool:
    """Check whether a run that may stop early already decides a check, whatever the other checks of
    the gate will show.

    Args:
        check: The check.
        runs: The baseline and the current run.
        family: The number of checks to correct for by Bonferroni, which is never less strict than
            Holm.
    """
    seen_of = _CheckEstimate.of(check, runs, family)
    p = seen_of.change.p
    change = replace(seen_of.change, p_holm=None if p is None else min(1.0, family * p))
    return seen_of.verdict(change)[0] in ("pass", "fail")


def _plain(text: str) -> str:
    """Return a text in one line, with printable characters only: names come from files."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckEstimate:
    """What two runs show of one check, before it is judged among the others."""

    check: GateCheck
    change: Change
    runs: Pair | None = None
    items: int = 0
    nothing: RemarkOrText = ""  # why there is nothing to judge by
    incomplete: Remark | None = None  # why no good verdict may be given
    at_any_time: AtAnyTime | None = None  # of a run that may stop early

    @classmethod
    def of(cls, check: GateCheck, runs: Pair | RemarkOrText, family: int) -> "_CheckEstimate":
        none = Change(name=check.measure.name, before=None, after=None, difference=None)
        if isinstance(runs, RemarkOrText):
            return cls(check=check, change=none, nothing=runs)
        try:
            return cls._read(check, runs, family)
        except EvenhandError as error:
            return cls(check=check, change=none, runs=runs, nothing=str(error))

    @classmethod
    def _read(cls, check: GateCheck, runs: Pair, family: int) -> "_CheckEstimate":
        require(check.instrument, runs[0])
        made_by(check.instrument, runs[1])
        check = check.in_pair(runs)
        instrument = check.narrowed()
        for run in runs:
            run.verify()  # a run that is cut off or changed cannot be judged
        same_sample(*runs)
        for run in runs:
            refuse_who_picked(run)
        until = SequentialPlan.of(runs[1])
        scorings = instrument.scorings(*runs)
        sides = [outcome_batches(instrument, run, how)
                 for run, how in zip(runs, scorings, strict=True)]  # fmt: skip
        if until is not None:
            clusters = asked_by(instrument, runs[1], until)
            sides = [of_clusters(side, clusters) for side in sides]
        pairs = PairTotals.of(instrument, *sides)
        if not pairs.items:
            raise UserError(
                "No item was finished in both runs. Finish the runs by repeating their commands."
            )
        where = {} if check.group is None else {check.group[0]: check.group[1]}
        for column, value in where.items():
            if value not in pairs.values_of(column):
                there = ", ".join(pairs.values_of(column))
                raise UserError(f"No item has {column} = {value!r}. Available: {there}")
        change = pairs.change(check.measure, **where)
        return cls(
            check=check,
            change=change,
            runs=runs,
            items=change.n if where else pairs.items,
            incomplete=_incomplete(runs, pairs.coverage(), early=until is not None),
            at_any_time=None
            if until is None
            else change_at_any_time(instrument, runs, until, where, family),
        )

    def judged(self, change: Change, family: int, prices: Prices | None) -> GateCheckResult:
        measure, instrument = self.check.measure, self.check.instrument
        verdict, reason = self.verdict(change)
        more, early = None, self.at_any_time
        if early is not None:  # no number of a fixed size is shown
            change = _early(change, early)
        elif verdict == "inconclusive" and self.runs is not None:
            more = more_to_decide(instrument, measure, change, items=self.items, family=family,
                                  run=self.runs[1], prices=prices)  # fmt: skip
        return GateCheckResult(
            name=self.check.name,
            verdict=verdict,
            says=reason,
            instrument=instrument.name,
            measure=measure,
            group="" if self.check.group is None else " = ".join(self.check.group),
            before="" if self.runs is None else str(self.runs[0].path),
            after="" if self.runs is None else str(self.runs[1].path),
            items=self.items,
            change=None if self.nothing else change,
            more=more,
            early=early,
            line=self.check.line,
        )

    def verdict(self, change: Change) -> tuple[Verdict, RemarkOrText]:
        """Judge the change, which was adjusted among the others."""
        if self.nothing:
            return "error", self.nothing
        measure, early = self.check.measure, self.at_any_time
        within = kept(change, measure) == "non_inferior"
        worse = direction(change, measure) == "regressed" and not within
        after = None
        if early is not None:
            within, worse = within and early.kept, worse and early.worse
            change, after = _early(change, early), early.says
        if worse:
            tested = change_remark(change, measure)
            return "fail", Remark("gate.worse", measure=measure.label, change=tested, early=after)
        loss = Remark(
            "gate.change", measure=measure.label, change=loss_remark(change, measure), early=after
        )
        if self.incomplete or change.difference is None:
            return "error", self.incomplete or loss
        margin, center = measure.margin or 0.0, measure.center or 0.0
        if turned(change, measure, margin) and abs((change.after or 0.0) - center) >= margin:
            return "inconclusive", Remark(
                "gate.other_side", before=change.before, after=change.after, change=loss
            )
        code = "gate.within" if within else "gate.open"
        return "pass" if within else "inconclusive", Remark(
            code, margin=measure.margin, change=loss
        )


def _early(change: Change, interval: AtAnyTime) -> Change:
    """Give the change with the interval that holds at every look, and nothing else to judge by."""
    why = change.undefined if change.difference is None else None
    return replace(
        unadjusted(change), effect=change.difference, low=interval.low, high=interval.high,
        limits=None, se=0.0, p=None, undefined=why, test=None,
    )  # fmt: skip


def _incomplete(runs: Pair, coverage: tuple[Coverage, Coverage], *, early: bool) -> Remark | None:
    for side, run, side_coverage in zip(("baseline", "run"), runs, coverage, strict=True):
        left = 0 if early and run is runs[1] else not_run(run)
        if left:
            return Remark("gate.unfinished", side=side, items=left)
        if side_coverage.below_floor:
            return Remark("gate.coverage", side=side, percent=side_coverage.percent,
                          n=side_coverage.n)  # fmt: skip
    return None


def more_to_decide(
    instrument: ScoringSpec,
    measure: Measure,
    change: Change,
    *,
    items: int,
    family: int,
    run: RunReader,
    prices: Prices | None,
) -> ItemsNeeded:
    """Compute how many more items would decide a check, from the variance of these two runs.

    Args:
        instrument: The benchmark of the check.
        measure: The metric of the check.
        change: The change that did not decide the check.
        items: The number of items that both runs have.
        family: How many changes are tested at once.
        run: The current run, whose mean cost per item is used.
        prices: The price table; None for an answer without costs.

    Returns:
        The items, clusters, calls, tokens and costs, or why no number can be given.
    """
    if change.difference is None or change.clusters < 2:
        return ItemsNeeded(
            why=Remark("gate.too_few", clusters=change.clusters, unit=instrument.clusters)
        )
    clusters = clusters_to_decide(measure, change, family)
    if clusters is None:
        return ItemsNeeded(why=Remark("gate.no_spread"))
    if instrument.all_clusters is not None and clusters > instrument.all_clusters:
        return ItemsNeeded(
            why=Remark(
                "gate.more_than_there_are",
                clusters=clusters,
                unit=instrument.clusters,
                there_are=instrument.all_clusters,
                margin=measure.margin,
            )
        )
    more = max(0, math.ceil(items * (clusters / change.clusters - 1)))
    took, money = costs.cost(run), costs.money(run, prices)
    done = run.totals().items
    return ItemsNeeded(
        items=more,
        clusters=max(0, clusters - change.clusters),
        calls=None if took.calls.mean is None else more * took.calls.mean,
        tokens=None if took.tokens.mean is None else more * took.tokens.mean,
        cost=None if money.cost is None else more * money.cost / done,
        currency=money.currency,
    )


def clusters_to_decide(measure: Measure, change: Change, family: int) -> int | None:
    """Return the fewest clusters that decide a check either way with 80% power, if they vary as
    these do.

    Args:
        measure: The metric, which must have a margin.
        change: The change, which names the standard error and the clusters so far.
        family: How many changes are tested at once.

    Returns:
        The number of clusters; None for a number that neither varied nor has a range.
    """
    assert measure.margin is not None
    needed: list[int | None] = []
    if change.se:
        spread = PilotSpread(measure=measure.name, runs=("", ""), items=change.n, rows=change.n,
                             clusters=change.clusters, se=change.se)  # fmt: skip
        needed.append(clusters_needed(spread, measure.margin, PowerTarget(POWER, family)))
    if measure.bounded:
        least, most = measure.range
        sd = change.se * math.sqrt(change.clusters)
        needed.append(clusters_to_keep(sd, measure.margin, most - least))
    return None if None in needed else max((count for count in needed if count), default=None)


def clusters_to_keep(sd: float, margin: float, reach: float) -> int | None:
    """Return the fewest clusters that show an unchanged number to be within its margin with 80%
    power.

    It uses the test of `rules.kept` in a normal approximation: the flipped sums of margin − change,
    among them one cluster that lost all it could. The clusters must also be so many that a loss
    that none of them shows is within the margin.

    Args:
        sd: The standard deviation of the change between clusters.
        margin: The non-inferiority margin.
        reach: The width of the metric's range, the most that a cluster can lose.

    Returns:
        The number of clusters; None if no affordable number is enough.
    """
    alpha = ALPHA / 2

    def shows(clusters: int) -> bool:
        if reach * zero_event_upper(clusters, 1 - alpha) > margin:
            return False
        total = margin * clusters + float(scipy.special.ndtri(1 - POWER)) * sd * math.sqrt(clusters)
        wide = math.sqrt(clusters * (sd**2 + margin**2)) / 2  # of the sum of a random half
        # With the cluster that lost all.
        lost = float(scipy.special.ndtr((reach - margin - total / 2) / wide))
        return (lost + float(scipy.special.ndtr(-total / 2 / wide))) / 2 <= alpha

    return fewest(shows, _MOST)
