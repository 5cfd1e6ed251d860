"""Outcomes become totals per cluster, and totals become estimates.

A mean or a ratio and its interval need nothing of a cluster but its sums, so a run of any length
is read once, batch by batch, and only the sums are kept. The other statistics need all rows of a
cluster at once: of those the row values are kept.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from evenhand.errors import Undefined
from evenhand.findings.found import NO_SPREAD, Coverage, Estimate
from evenhand.findings.measures import Mean, MeanOfClusters, Measure, OfTotals, Ratio, Share
from evenhand.findings.rules import p_value
from evenhand.findings.scored import SCORED, Scored
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.clusters import NO_ROWS, Interval, ratio_from_totals
from evenhand.statistics.proportions import wilson

STREAMED = (Mean, Share, Ratio)
_MASKED = "masked"


def coverage_of(states: "Counter[str]") -> Coverage:
    """How many rows have a score, and how many have none for each reason."""
    reasons = {state: n for state, n in sorted(states.items()) if state != SCORED}
    return Coverage(n=states.total(), scored=states[SCORED], by_reason=reasons)


def keys_of(instrument: Scored) -> list[str]:
    """List the columns that rows are summed by: groups and clusters."""
    grouped = [one.column for one in instrument.groups]
    return list(dict.fromkeys([_MASKED, *grouped, "cluster", *instrument.also_clusters]))


def row_values(outcomes: pl.DataFrame, instrument: Scored) -> pl.DataFrame:
    """Give one row per item with nothing but its keys and the numbers that the measures need."""
    if _MASKED not in outcomes.columns:
        outcomes = outcomes.with_columns(pl.lit(False).alias(_MASKED))
    outcomes = outcomes.with_columns(pl.col(_MASKED).fill_null(False))  # not known is not masked
    numbers = {name: expr for m in instrument.measures for name, expr in m.columns().items()}
    if numbers.keys() <= set(outcomes.columns):
        return outcomes  # they are such rows already: means over several runs
    further = [instrument.transitions] if instrument.transitions else []
    named = dict.fromkeys(["item_id", "state", *keys_of(instrument), *further])
    return outcomes.select(*named, **numbers)


class RunTotals:
    """The totals hold all that a report needs of a run's outcomes, added up batch by batch."""

    def __init__(self, instrument: Scored) -> None:
        self._instrument = instrument
        self._keys = keys_of(instrument)
        self._streamed = [m for m in instrument.measures if isinstance(m.statistic, STREAMED)]
        self._held_measures = [m for m in instrument.measures if m not in self._streamed]
        self._sums: pl.DataFrame | None = None
        self._held: list[pl.DataFrame] = []
        self._states: Counter[str] = Counter()
        self._tallies: list[pl.DataFrame] = []
        self.rows = 0
        self.masked_rows = 0

    @classmethod
    def of(cls, instrument: Scored, batches: Iterable[pl.DataFrame]) -> "RunTotals":
        totals = cls(instrument)
        for outcomes in batches:
            totals.add(outcomes)
        return totals

    def add(self, outcomes: pl.DataFrame) -> None:
        rows = row_values(outcomes, self._instrument)
        self.rows += len(rows)
        kept = rows.filter(~pl.col(_MASKED))
        self.masked_rows += len(rows) - len(kept)
        self._states.update(dict(kept["state"].value_counts().iter_rows()))
        if self._instrument.tallied:
            masked = "masked" in outcomes.columns
            counted = outcomes.filter(~pl.col(_MASKED)) if masked else outcomes
            self._tallies.append(counted.group_by(self._instrument.tallied).len())
        sums = rows.group_by(self._keys, maintain_order=True).agg(
            pl.len().cast(pl.Float64).alias("rows"),
            *(expr for measure in self._streamed for expr in _sums(measure)),
        )
        self._sums = sums if self._sums is None else self._added(pl.concat([self._sums, sums]))
        if self._held_measures:
            numbers = [name for m in self._held_measures for name in m.columns()]
            self._held.append(rows.select(*self._keys, *numbers))

    def _added(self, sums: pl.DataFrame) -> pl.DataFrame:
        by_keys = sums.group_by(self._keys, maintain_order=True)
        return by_keys.agg(pl.exclude(self._keys).sum())

    def coverage(self) -> Coverage:
        return coverage_of(self._states)

    def tally(self) -> pl.DataFrame:
        """Give the tallied columns and `len`, how often each combination of theirs was seen."""
        if not self._tallies:
            return pl.DataFrame()
        return pl.concat(self._tallies).group_by(self._instrument.tallied).agg(pl.col("len").sum())

    def sums(self) -> dict[str, tuple[int, float]]:
        """Give the number of rows and their sum for each mean and share."""
        frame = self._part(self._sums, {})
        means = [m.name for m in self._streamed if not isinstance(m.statistic, Ratio)]
        return {m: (int(frame[f"{m}:n"].sum()), float(frame[f"{m}:y"].sum())) for m in means}

    def values_of(self, column: str) -> list[str]:
        """List the values of a grouping, by name."""
        if self._sums is None:
            return []
        kept = self._sums.filter(~pl.col(_MASKED))
        return sorted(kept[column].drop_nulls().unique().to_list())

    def clusters(self) -> int:
        """Count the clusters that were seen, scored or not."""
        return self._part(self._sums, {})["cluster"].n_unique()

    def rows_in(self, column: str, value: str) -> int:
        """Count the rows of a group, scored or not."""
        return int(self._part(self._sums, {column: value})["rows"].sum())

    def estimate(self, measure: Measure, **where: str) -> Estimate:
        """Estimate the measure over all rows that are not masked, or over those of one group."""
        if isinstance(measure.statistic, STREAMED):
            found = _streamed(measure, self._part(self._sums, where), self._clusterings())
        else:
            rows = pl.concat(self._held) if self._held else None
            found = _held(measure, self._part(rows, where))
        return replace(found, undefined=reason_of(measure, found.undefined))

    def with_masked(self, measure: Measure) -> Estimate:
        """Estimate the measure over all rows, those that are masked too."""
        assert self._sums is not None
        return _streamed(measure, self._sums, self._clusterings())

    def _clusterings(self) -> tuple[str, ...]:
        return ("cluster", *self._instrument.also_clusters)

    def _part(self, frame: pl.DataFrame | None, where: dict[str, str]) -> pl.DataFrame:
        if frame is None:
            raise Undefined("the run has no finished item yet")
        wanted = [pl.col(column) == value for column, value in where.items()]
        return frame.filter(~pl.col(_MASKED), *wanted)


def reason_of(measure: Measure, undefined: str | None) -> str | None:
    """Say why a number is undefined; a measure may know why no row has a value."""
    return measure.absent if undefined == NO_ROWS and measure.absent else undefined


def _sums(measure: Measure) -> list[pl.Expr]:
    """Sum n, Σy, Σx, Σ|y| and Σ|x| of a cluster, as `ratio_from_totals` takes them."""
    name = measure.name
    if isinstance(measure.statistic, Ratio):
        both = pl.col(f"{name}.y").is_not_null() & pl.col(f"{name}.x").is_not_null()
        y, x = (pl.when(both).then(pl.col(f"{name}.{part}")) for part in ("y", "x"))
        n = ((y != 0) | (x != 0)).sum()
        sums = {"n": n, "y": y.sum(), "x": x.sum(), "ay": y.abs().sum(), "ax": x.abs().sum()}
    else:
        value = pl.col(f"{name}.value")
        n = value.is_not_null().sum()
        sums = {"n": n, "y": value.sum(), "x": n, "ay": value.abs().sum(), "ax": n}
    return [expr.cast(pl.Float64).alias(f"{name}:{part}") for part, expr in sums.items()]


def cluster_table(frame: pl.DataFrame, name: str, cluster: str = "cluster") -> pl.DataFrame:
    """Give the five sums of a measure, one row per cluster."""
    parts = [f"{name}:{part}" for part in ("n", "y", "x", "ay", "ax")]
    # In the order of their names: which part was committed first must not move the last digit.
    return frame.group_by(cluster).agg(pl.col(parts).sum()).sort(cluster)


def _streamed(measure: Measure, frame: pl.DataFrame, clusterings: Sequence[str]) -> Estimate:
    """Estimate a mean, share or ratio. With several ways to cluster, or for a share, the interval
    is the widest of all."""
    tables = [cluster_table(frame, measure.name, c).drop(c).to_numpy() for c in clusterings]
    intervals, reason = [], ""
    for table in tables:
        try:
            intervals.append(_rescaled(measure, ratio_from_totals(table)))
        except Undefined as undefined:
            reason = reason or str(undefined)
    trials = _wilson(measure, tables[0])
    if not intervals and trials is None:
        return Estimate(name=measure.name, value=None, undefined=reason)
    found = _widest(measure, intervals, trials)
    clusters = min(int((table[:, 0] > 0).sum()) for table in tables)
    return replace(found, clusters=clusters) if len(tables) > 1 else found


def _rescaled(measure: Measure, interval: Interval) -> Interval:
    if isinstance(measure.statistic, Ratio):
        return interval.rescaled(measure.statistic.scale, measure.statistic.shift)
    return interval


def _wilson(measure: Measure, table: np.ndarray) -> tuple[float, float, float, int] | None:
    """Give estimate, low, high and n of a share by Wilson's formula."""
    n, events = int(table[:, 0].sum()), round(float(table[:, 1].sum()))
    if not isinstance(measure.statistic, Share) or n == 0:
        return None
    found = wilson(events, n)
    return found.estimate, found.low, found.high, n


def _widest(
    measure: Measure,
    intervals: Sequence[Interval],
    trials: tuple[float, float, float, int] | None,
) -> Estimate:
    if trials is None:
        widest = max(intervals, key=lambda one: one.high - one.low)
        return with_p(Estimate.of(measure.name, lambda: widest, measure.within), measure, widest)
    value, low, high, n = trials
    return Estimate(
        name=measure.name,
        value=value,
        low=max(measure.within[0], min([low, *(one.low for one in intervals)])),
        high=min(measure.within[1], max([high, *(one.high for one in intervals)])),
        n=n,
        clusters=intervals[0].clusters if intervals else 1,
    )


def with_p(found: Estimate, measure: Measure, interval: Interval) -> Estimate:
    """Add the p-value against "no bias" to an estimate, where the measure has such a value."""
    if measure.null is None or found.value is None:
        return found
    shifted = interval.rescaled(1.0, -measure.null)
    p = p_value(shifted.estimate, shifted.se, shifted.clusters, shifted.p_two_sided)
    return replace(found, p=p)


def _held(measure: Measure, rows: pl.DataFrame) -> Estimate:
    if isinstance(measure.statistic, MeanOfClusters):
        values = cluster_values(measure, rows).sort("cluster")
        try:
            interval = ratio_from_totals(_ones(values["value"]))
        except Undefined as reason:
            return Estimate(name=measure.name, value=None, undefined=str(reason))
        found = Estimate.of(measure.name, lambda: interval, measure.within)
        return with_p(found, measure, interval)
    table = totals_table(measure, rows)
    return _resampled(measure, table, len(_complete(measure, rows)))


def _ones(values: pl.Series) -> np.ndarray:
    y = values.cast(pl.Float64).to_numpy()
    one = np.ones_like(y)
    return np.column_stack([one, y, one, np.abs(y), one])


def cluster_values(measure: Measure, rows: pl.DataFrame) -> pl.DataFrame:
    """Give columns cluster and value: one number per cluster that has one, in the order of the
    rows. Every table that is resampled keeps that order, because with a fixed seed the draws depend
    on it."""
    assert isinstance(measure.statistic, MeanOfClusters)
    column = f"{measure.name}.value"
    known = rows.drop_nulls(column)
    value = measure.statistic.over(pl.col(column)).cast(pl.Float64).alias("value")
    return known.group_by("cluster", maintain_order=True).agg(value).drop_nulls("value")


def totals_table(measure: Measure, rows: pl.DataFrame) -> pl.DataFrame:
    """Give one row per cluster: the cluster, and the numbers whose totals `OfTotals.value`
    takes."""
    assert isinstance(measure.statistic, OfTotals)
    names = list(measure.statistic.rows)
    known = _complete(measure, rows).rename({f"{measure.name}.{name}": name for name in names})
    over = measure.statistic.over or {name: pl.col(name).sum() for name in names}
    made = {name: expr.cast(pl.Float64) for name, expr in over.items()}
    return known.group_by("cluster", maintain_order=True).agg(**made)


def _complete(measure: Measure, rows: pl.DataFrame) -> pl.DataFrame:
    columns = list(measure.columns())
    return rows.select("cluster", *columns).drop_nulls(columns)


def _resampled(measure: Measure, table: pl.DataFrame, n: int) -> Estimate:
    assert isinstance(measure.statistic, OfTotals)
    numbers = table.drop("cluster").to_numpy()
    try:
        drawn = cluster_bootstrap(numbers, measure.statistic.value, kind="percentile")
    except Undefined as reason:
        return Estimate(name=measure.name, value=None, undefined=str(reason))
    return Estimate(
        name=measure.name,
        value=drawn.estimate,
        low=None if drawn.no_spread else drawn.low,
        high=None if drawn.no_spread else drawn.high,
        n=n,
        clusters=drawn.clusters,
        undefined=NO_SPREAD if drawn.no_spread else None,
    )
