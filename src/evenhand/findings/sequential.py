"""A run may stop when its question is decided, by intervals that hold at every look.

The clusters are asked in an order that was drawn before anything was asked, in blocks, and looked
at after each whole block. All of that stands in run.json, so that where a run stopped, and why,
follows from its folder alone: an interrupted run goes on to the same end. A row without an answer
counts at its smallest value for the low end and at its largest for the high one.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from evenhand.core.conclusions import Outcome
from evenhand.core.errors import CorruptRun, Undefined, UserError
from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.display import Remark
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.scoring import MASKED, SCORED, ScoringSpec, outcome_batches
from evenhand.runs.store import RunReader
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.sequences import AnytimeInterval, anytime_mean

KEY = "until"  # in the source of a run's record
NO_INTERVAL = "not known of a run that may stop early"
_BLOCK = 10  # our choice, of clusters: 80 items of BBQ, more than are at work at once
_LOOKS = 40  # our choice: a look costs time, and fewer would end a run later
_REFUTED = "no value fits, as is common only where clusters come in no drawn order"


def block_of(clusters: int) -> int:
    """Give how many clusters are asked from one look to the next, of so many in all."""
    return max(_BLOCK, math.ceil(clusters / _LOOKS))


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialPlan:
    """The plan of a run that may stop early. Without a measure, the checks of a gate decide."""

    measure: str = ""
    margin: float = 0.0
    these: bool = False  # the question is of these clusters alone, and not of others like them
    order_seed: int = 0
    block: int  # clusters from one look to the next
    order: tuple[str, ...]  # the clusters as they were drawn
    sizes: tuple[int, ...]  # the items of each
    rows: Mapping[str, tuple[int, int]]  # measure -> the most rows that a cluster has of it, and
    # all of them; a measure that is not here has no interval that holds at every look

    @classmethod
    def of(cls, run: RunReader) -> "SequentialPlan | None":
        """Give the plan of a run that may stop early; None of a run of a fixed size."""
        plan = run.record.source.get(KEY)
        if plan is None:
            return None
        try:
            pairs = {name: (int(most), int(every)) for name, (most, every) in plan["rows"].items()}
            lists = {name: tuple(plan[name]) for name in ("order", "sizes")}
            return cls(**{**plan, **lists, "rows": pairs})
        except (AttributeError, KeyError, TypeError, ValueError):
            raise CorruptRun(f"{run.path}/run.json has no plan of a run that may stop") from None

    def to_dict(self) -> dict[str, Any]:
        """Give the plan as run.json keeps it."""
        return {**asdict(self), "order": list(self.order), "sizes": list(self.sizes),
                "rows": {name: list(pair) for name, pair in self.rows.items()}}  # fmt: skip

    def looks(self, clusters: int) -> list[int]:
        """Give after how many clusters one looks, while the first so many are whole."""
        every = range(self.block, len(self.order) + self.block, self.block)
        return [end for count in every if (end := min(count, len(self.order))) <= clusters]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingStatus:
    """Where a run that may stop early stands: what it asked, and what that decides."""

    measure: str
    margin: float
    these: bool
    verdict: Outcome
    looks: int
    clusters: int
    of_clusters: int
    items: int
    of_items: int
    calls_saved: int = 0  # as many as the items that were not asked would have taken on average

    @property
    def ended(self) -> bool:
        """Whether nothing more is asked: it is decided, or all was asked."""
        return self.verdict != Outcome.INCONCLUSIVE or self.clusters == self.of_clusters


def refuse(run: RunReader) -> None:
    """Refuse to take a run that may stop early for one of a fixed size."""
    if KEY in run.record.source:
        raise UserError(
            f"{run.path} may stop early, when its question is decided: its items are not a sample "
            f"of a fixed size, and only its own report may use it (evenhand report "
            f"{run.path}). Measure again without --stop-when, into another folder"
        )


def why_not(instrument: ScoringSpec, measure: Measure) -> Remark | None:
    """Return why a measure has no interval that holds at every look; None where it has one."""
    if measure.statistic.row_value is None:
        return Remark("until.no_mean")
    if not measure.bounded:
        return Remark("until.no_ends")
    if instrument.also_clusters:
        return Remark("until.also_alike", clusters=instrument.clusters)
    return None


def rows_planned(
    instrument: ScoringSpec, unasked: pl.DataFrame
) -> tuple[dict[str, tuple[int, int]], dict[str, Remark]]:
    """Give the rows of each measure by the outcomes of items that nobody has answered, and why the
    others have none. Which rows a measure is about must not depend on answers."""
    rows, reasons = {}, {}
    for measure in instrument.measures:
        why = why_not(instrument, measure) or _chosen_by_answers(measure, unasked)
        if why is not None:
            reasons[measure.name] = why
            continue
        sizes = summed(unasked, instrument, [measure])[f"{measure.name}:n"].to_list()
        most, every = int(max(sizes, default=0)), int(sum(sizes))
        if every:
            rows[measure.name] = (most, every)
        else:
            reasons[measure.name] = Remark("until.no_item")
    return rows, reasons


def _chosen_by_answers(measure: Measure, unasked: pl.DataFrame) -> Remark | None:
    if measure.where is None:
        return None
    open_ = unasked.select(measure.where.alias("where"))["where"].null_count()
    return Remark("until.answers_decide") if open_ else None


# -- what was answered so far ----------------------------------------------------------------------


def clusters_asked(instrument: ScoringSpec, run: RunReader, until: SequentialPlan) -> pl.DataFrame:
    """Return the completed clusters: those of whole blocks that come first in the sampled order.

    Args:
        instrument: The benchmark, narrowed to its metrics.
        run: The run so far.
        until: The sequential plan of the run.

    Returns:
        One row per cluster: its name, and for each metric its rows (`:n`) and their sum with
        missing answers at their smallest (`:low`) and at their largest (`:high`).
    """
    measures = [measure for measure in instrument.measures if measure.name in until.rows]
    parts = [summed(batch, instrument, measures) for batch in outcome_batches(instrument, run)]
    plan = pl.DataFrame({"cluster": until.order, "planned": until.sizes})
    if not parts:
        return plan.clear()
    sums = pl.concat(parts).group_by("cluster").agg(pl.all().sum())
    placed = plan.join(sums, on="cluster", how="left", maintain_order="left")
    there = placed.select((pl.col("items") >= pl.col("planned")).fill_null(False))["items"]
    complete = next((index for index, done in enumerate(there) if not done), len(there))
    looks = until.looks(complete)
    return placed.head(looks[-1] if looks else 0)


def summed(
    outcomes: pl.DataFrame, instrument: ScoringSpec, measures: Sequence[Measure]
) -> pl.DataFrame:
    """Sum outcomes by cluster.

    Args:
        outcomes: One row per item.
        instrument: The benchmark.
        measures: The metrics to sum.

    Returns:
        The items of each cluster, and for each metric its rows and their sums with missing answers
        at both extremes.
    """
    if MASKED not in outcomes.columns:
        outcomes = outcomes.with_columns(pl.lit(False).alias(MASKED))
    sums = [part for measure in measures for part in _parts(instrument, measure)]
    return outcomes.group_by("cluster").agg(pl.len().cast(pl.Int64).alias("items"), *sums)


def _parts(instrument: ScoringSpec, measure: Measure) -> Iterator[pl.Expr]:
    row_value = measure.statistic.row_value
    assert row_value is not None
    every = pl.col("state").is_null() | True  # one for each row
    about = every if measure.where is None else measure.where.fill_null(True)
    if measure.name in instrument.masked:
        about &= ~pl.col(MASKED).fill_null(False)
    scored = pl.col("state") == SCORED
    if measure.lost is not None:
        scored &= ~measure.lost.fill_null(False)
    value = pl.when(scored).then(row_value.cast(pl.Float64))
    yield about.cast(pl.Float64).sum().alias(f"{measure.name}:n")
    for name, end in zip(("low", "high"), measure.range, strict=True):
        filled = pl.when(about).then(value.fill_null(float(end)))
        yield filled.sum().alias(f"{measure.name}:{name}")


def interval(measure: Measure, table: pl.DataFrame, until: SequentialPlan) -> AnytimeInterval:
    """Compute the anytime-valid interval of a metric.

    Args:
        measure: The metric.
        table: The clusters in the sampled order, as `clusters_asked` gives them.
        until: The sequential plan of the run.

    Raises:
        Undefined: If no cluster has a row of the metric.
    """
    name, (most, every) = measure.name, until.rows[measure.name]
    rows = table.filter(pl.col(f"{name}:n") > 0)
    n = rows[f"{name}:n"].to_numpy()
    return anytime_mean(
        rows[f"{name}:low"].to_numpy() / n,
        rows[f"{name}:high"].to_numpy() / n,
        within=measure.range,
        weights=n / most,
        of=every / most if until.these else None,
    )


def _verdict(measure: Measure, table: pl.DataFrame, until: SequentialPlan) -> tuple[Outcome, bool]:
    """Say what these clusters decide, and whether fewer cannot have decided more: intervals only
    become narrower, until they have crossed, or all clusters there are give the number itself."""
    try:
        ends = interval(measure, table, until)
    except Undefined:  # none of these clusters has a row of it
        return Outcome.INCONCLUSIVE, True
    null = measure.null or 0.0
    moved = replace(ends, low=ends.low - null, high=ends.high - null)
    complete = until.these and len(table) == len(until.order)
    return moved.outcome(until.margin), ends.low <= ends.high and not complete


def stand(
    instrument: ScoringSpec, run: RunReader, until: SequentialPlan
) -> tuple[StoppingStatus, pl.DataFrame]:
    """Report how far a run has come, and which clusters its verdict uses.

    Args:
        instrument: The benchmark.
        run: The run so far.
        until: The sequential plan of the run.

    Returns:
        The status, and the clusters up to the first look that decided the run, whatever was
        answered later.
    """
    table = clusters_asked(instrument, run, until)
    looks = until.looks(len(table))
    verdict, end = Outcome.INCONCLUSIVE, len(table)
    if looks and until.measure:
        measure = instrument.measure(until.measure)
        verdict, alone = _verdict(measure, table, until)
        for look in looks if verdict != Outcome.INCONCLUSIVE or not alone else ():
            verdict, _ = _verdict(measure, table.head(look), until)
            if verdict != Outcome.INCONCLUSIVE:
                end = look
                break
    return placed(until, run, verdict, end), table.head(end)


def placed(
    until: SequentialPlan, run: RunReader, verdict: Outcome, clusters: int
) -> StoppingStatus:
    """Report what a run asked up to a look, and what it saved.

    Args:
        until: The sequential plan of the run.
        run: The run so far.
        verdict: The verdict at that look.
        clusters: The number of clusters up to that look.
    """
    totals, every = run.totals(), sum(until.sizes)
    left = max(0, every - totals.items)
    return StoppingStatus(
        measure=until.measure,
        margin=until.margin,
        these=until.these,
        verdict=verdict,
        looks=len(until.looks(clusters)),
        clusters=clusters,
        of_clusters=len(until.order),
        items=totals.items,
        of_items=every,
        calls_saved=round(left * totals.calls / totals.items) if totals.items else 0,
    )


def at_any_time(
    measure: Measure, estimate: Estimate, table: pl.DataFrame, until: SequentialPlan
) -> Estimate:
    """Replace the fixed-sample interval of an estimate with the anytime-valid one.

    Args:
        measure: The metric.
        estimate: The estimate of a fixed sample.
        table: The clusters in the sampled order.
        until: The sequential plan of the run.

    Returns:
        The estimate; without a value where the metric has no such interval.
    """
    if measure.name not in until.rows or not len(table):
        return Estimate(name=measure.name, value=None, undefined=NO_INTERVAL)
    try:
        ends = interval(measure, table, until)
    except Undefined as reason:
        return Estimate(name=measure.name, value=None, undefined=str(reason))
    crossed = ends.low > ends.high
    return replace(
        estimate,
        low=None if crossed else ends.low,
        high=None if crossed else ends.high,
        p=None,
        p_holm=None,
        p_small=None,
        undefined=_REFUTED
        if crossed
        else None
        if estimate.value is not None
        else estimate.undefined,
    )


Pair = tuple[RunReader, RunReader]  # the baseline, and the run that is judged
Batches = Iterator[pl.DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtAnyTime:
    """What two runs show of a check at whatever look: no worse than by its margin, or worse; and
    the change, after minus before, with an interval that holds at every look."""

    kept: bool
    worse: bool
    low: float
    high: float
    clusters: int
    of_clusters: int
    calls_saved: int
    says: Remark  # how much of the run this rests on


def asked_by(instrument: ScoringSpec, run: RunReader, until: SequentialPlan) -> list[str]:
    """Return the clusters of the whole blocks that a run has completed.

    Args:
        instrument: The benchmark.
        run: The run so far.
        until: The sequential plan of the run.

    Raises:
        UserError: If no block is complete.
    """
    clusters = clusters_asked(instrument, run, until)["cluster"].to_list()
    if not clusters:
        raise UserError("no block of this run is whole yet: run the same command again")
    return clusters


def of_clusters(batches: Batches, clusters: list[str]) -> Batches:
    """Yield the rows of these clusters alone."""
    for rows in batches:
        yield rows.filter(pl.col("cluster").is_in(clusters))


def change_at_any_time(
    instrument: ScoringSpec, runs: Pair, until: SequentialPlan, where: dict[str, str], family: int
) -> AtAnyTime:
    """Judge the only metric of a narrowed benchmark at any look. A pass is one-sided at 2.5%; a
    failure is at 2.5% divided by the number of checks.

    Args:
        instrument: The benchmark, narrowed to one metric.
        runs: The baseline and the current run.
        until: The sequential plan of the current run.
        where: The value that each grouping column must have.
        family: The number of checks.

    Raises:
        UserError: If the metric has no anytime-valid interval, or no block is complete.
    """
    measure = instrument.measures[0]
    if measure.name not in until.rows:
        raise UserError(
            f"{measure.name} has no interval that holds at every look: leave out `sequential`"
        )
    clusters = asked_by(instrument, runs[1], until)
    sides = _Sides.of(instrument, measure, runs, clusters, where, until.rows[measure.name][0])
    change = sides.change(1 - ALPHA)
    stands = placed(until, runs[1], Outcome.INCONCLUSIVE, len(clusters))
    return AtAnyTime(
        kept=sides.kept(measure, change),
        worse=sides.worse(measure, 1 - ALPHA / family),
        low=change.low,
        high=change.high,
        clusters=stands.clusters,
        of_clusters=stands.of_clusters,
        calls_saved=stands.calls_saved,
        says=Remark(
            "until.at_any_time",
            clusters=stands.clusters,
            of_clusters=stands.of_clusters,
            unit=instrument.clusters,
            calls_saved=stands.calls_saved,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Sides:
    """The means of each cluster in both runs, with what is missing at its smallest and at its
    largest, in the drawn order."""

    ends: tuple[float, float]
    weights: FloatArray
    old_low: FloatArray
    old_high: FloatArray
    new_low: FloatArray
    new_high: FloatArray

    @classmethod
    def of(
        cls,
        instrument: ScoringSpec,
        measure: Measure,
        runs: Pair,
        clusters: list[str],
        where: dict[str, str],
        most: int,
    ) -> "_Sides":
        scorings = instrument.scorings(*runs)
        tables = []
        for run, scoring in zip(runs, scorings, strict=True):
            rows = of_clusters(outcome_batches(instrument, run, scoring), clusters)
            selected = (batch.filter(**where) if where else batch for batch in rows)
            parts = pl.concat([summed(batch, instrument, [measure]) for batch in selected])
            tables.append(parts.group_by("cluster").agg(pl.all().sum()))
        order = pl.DataFrame({"cluster": clusters})
        old, new = (
            order.join(table, on="cluster", how="left", maintain_order="left").fill_null(0.0)
            for table in tables
        )
        n = new[f"{measure.name}:n"].to_numpy()
        if not np.array_equal(n, old[f"{measure.name}:n"].to_numpy()):
            raise UserError(
                "The baseline lacks items that this run has. Finish the baseline by repeating its "
                "command."
            )
        here = n > 0
        if not here.any():
            raise UserError(f"no item of this run is about {measure.name} yet")
        low, high = (
            [table[f"{measure.name}:{end}"].to_numpy()[here] / n[here] for table in (old, new)]
            for end in ("low", "high")
        )
        return cls(measure.range, n[here] / most, low[0], high[0], low[1], high[1])

    def _mean(
        self, low: FloatArray, high: FloatArray, confidence: float, *, of_sums: bool
    ) -> AnytimeInterval:
        """Give the interval of a difference of the two runs, or of a sum of both."""
        least, most = self.ends
        within = (2 * least, 2 * most) if of_sums else (least - most, most - least)
        return anytime_mean(
            np.clip(low, *within), np.clip(high, *within), within=within, weights=self.weights,
            confidence=confidence,
        )  # fmt: skip

    def change(self, confidence: float) -> AnytimeInterval:
        """Give the interval of after minus before."""
        return self._mean(self.new_low - self.old_high, self.new_high - self.old_low, confidence,
                          of_sums=False)  # fmt: skip

    def kept(self, measure: Measure, change: AnytimeInterval) -> bool:
        """Say whether it got worse by no more than the margin, however the missing came out."""
        margin = measure.margin or 0.0
        if change.low > change.high:
            return False
        if measure.null is None:
            return change.high <= margin if measure.better == "lower" else change.low >= -margin
        # It was above "no bias", or below it: two ways to be within, each at half the error.
        half = 1 - ALPHA / 2
        moved, both = self.change(half), self._mean(
            self.new_low + self.old_low, self.new_high + self.old_high, half, of_sums=True
        )  # fmt: skip
        none = 2 * measure.null
        above = moved.high <= margin and both.low - none >= -margin
        below = moved.low >= -margin and both.high - none <= margin
        return above or below

    def worse(self, measure: Measure, confidence: float) -> bool:
        """Say whether it got worse at all, however the missing answers came out."""

        def above(low: FloatArray, limit: float = 0.0, *, of_sums: bool = False) -> bool:
            ends = self._mean(low, low, confidence, of_sums=of_sums)
            return limit < ends.low <= ends.high

        def below(high: FloatArray, limit: float = 0.0, *, of_sums: bool = False) -> bool:
            ends = self._mean(high, high, confidence, of_sums=of_sums)
            return ends.low <= ends.high < limit

        rose = above(self.new_low - self.old_high)
        fell = below(self.new_high - self.old_low)
        if measure.null is None:
            return rose if measure.better == "lower" else fell
        none = 2 * measure.null
        further_up = rose and above(self.new_low + self.old_low, none, of_sums=True)
        further_down = fell and below(self.new_high + self.old_high, none, of_sums=True)
        return further_up or further_down
