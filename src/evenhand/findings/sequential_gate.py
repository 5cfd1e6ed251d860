"""A check of a gate is judged by a run that may stop early: by intervals that hold at every look.

What is claimed is what a gate of a fixed size claims, with its missing answers at their worst in
the same way. Our choice: both must show it. So a run that stopped early never passes, and never
fails, where the test of a fixed size over the same clusters would not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.errors import UserError
from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.measures import Measure
from evenhand.findings.remarks import Remark
from evenhand.findings.scoring import ScoringSpec, outcome_batches
from evenhand.findings.sequential import SequentialPlan, clusters_asked, placed, summed
from evenhand.runs.store import RunReader
from evenhand.statistics.sequences import OPEN, AnytimeInterval, anytime_mean

_Sums = NDArray[np.float64]
Pair = tuple[RunReader, RunReader]
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
    """Give the clusters of the whole blocks that a run has asked; refuse where there is none."""
    clusters = clusters_asked(instrument, run, until)["cluster"].to_list()
    if not clusters:
        raise UserError("no block of this run is whole yet: run the same command again")
    return clusters


def of_clusters(batches: Batches, clusters: list[str]) -> Batches:
    """Yield the rows of these clusters alone."""
    for rows in batches:
        yield rows.filter(pl.col("cluster").is_in(clusters))


def at_any_time(
    instrument: ScoringSpec, runs: Pair, until: SequentialPlan, where: dict[str, str], family: int
) -> AtAnyTime:
    """Judge the only measure of a narrowed instrument. Pass is one-sided at 2.5 %; worse is at
    2.5 %, divided by the number of checks."""
    measure = instrument.measures[0]
    if measure.name not in until.rows:
        raise UserError(
            f"{measure.name} has no interval that holds at every look: leave out `sequential`"
        )
    clusters = asked_by(instrument, runs[1], until)
    sides = _Sides.of(instrument, measure, runs, clusters, where, until.rows[measure.name][0])
    change = sides.change(1 - ALPHA)
    stands = placed(until, runs[1], OPEN, len(clusters))
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
    weights: _Sums
    old_low: _Sums
    old_high: _Sums
    new_low: _Sums
    new_high: _Sums

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
            raise UserError("the baseline lacks items that this run has: finish the baseline")
        here = n > 0
        if not here.any():
            raise UserError(f"no item of this run is about {measure.name} yet")
        low, high = (
            [table[f"{measure.name}:{end}"].to_numpy()[here] / n[here] for table in (old, new)]
            for end in ("low", "high")
        )
        return cls(measure.range, n[here] / most, low[0], high[0], low[1], high[1])

    def _mean(
        self, low: _Sums, high: _Sums, confidence: float, *, of_sums: bool
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

        def above(low: _Sums, limit: float = 0.0, *, of_sums: bool = False) -> bool:
            ends = self._mean(low, low, confidence, of_sums=of_sums)
            return limit < ends.low <= ends.high

        def below(high: _Sums, limit: float = 0.0, *, of_sums: bool = False) -> bool:
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
