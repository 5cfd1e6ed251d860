"""Outcomes become totals per cluster, and totals become estimates.

A mean or a ratio and its interval need nothing of a cluster but its sums, so a run of any length
is read once, batch by batch, and only the sums are kept. The other statistics need all rows of a
cluster at once: of those the row values are kept.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from evenhand.errors import Undefined
from evenhand.findings.found import NO_SPREAD, Coverage, Estimate
from evenhand.findings.measures import (
    Grouping,
    Mean,
    MeanOfClusters,
    Measure,
    OfTotals,
    Ratio,
    Share,
    SumOfRatios,
)
from evenhand.findings.rules import p_value
from evenhand.findings.scored import SCORED, Scored
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.clusters import (
    NO_ROWS,
    Interval,
    ratio_from_totals,
    sum_of_ratios_from_totals,
)
from evenhand.statistics.proportions import wilson

STREAMED = (Mean, Share, Ratio, SumOfRatios)
SUMS = ("n", "y", "x", "ay", "ax")  # of one ratio and one cluster, as the statistics take them
_MASKED = "masked"


def coverage_of(states: "Counter[str]") -> Coverage:
    """How many rows have a score, and how many have none for each reason."""
    reasons = {state: n for state, n in sorted(states.items()) if state != SCORED}
    return Coverage(n=states.total(), scored=states[SCORED], by_reason=reasons)


def keys_of(instrument: Scored, groups: Sequence[Grouping] | None = None) -> list[str]:
    """List the columns that rows are summed by: groups and clusters."""
    grouped = [one.column for one in (instrument.groups if groups is None else groups)]
    return list(dict.fromkeys([_MASKED, *grouped, "cluster", *instrument.also_clusters]))


def row_values(outcomes: pl.DataFrame, instrument: Scored) -> pl.DataFrame:
    """Give one row per item with nothing but its keys and the numbers that the measures need."""
    if _MASKED not in outcomes.columns:
        outcomes = outcomes.with_columns(pl.lit(False).alias(_MASKED))
    outcomes = outcomes.with_columns(pl.col(_MASKED).fill_null(False))  # not known is not masked
    numbers = {name: expr for m in instrument.measures for name, expr in m.columns().items()}
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
        self.masked_rows += int(rows[_MASKED].sum())
        self._states.update(dict(rows["state"].value_counts().iter_rows()))
        if self._instrument.tallied:
            self._tallies.append(outcomes.group_by(self._instrument.tallied).len())
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
        found = {}
        for measure in self._streamed:
            if isinstance(measure.statistic, Mean | Share):
                frame, name = self._part(self._sums, {}, measure), measure.name
                found[name] = (int(frame[f"{name}:n"].sum()), float(frame[f"{name}:y"].sum()))
        return found

    def values_of(self, column: str) -> list[str]:
        """List the values of a grouping, by name."""
        if self._sums is None:
            return []
        return sorted(self._sums[column].drop_nulls().unique().to_list())

    def clusters(self) -> int:
        """Count the clusters that were seen, scored or not."""
        return self._part(self._sums, {})["cluster"].n_unique()

    def rows_in(self, column: str, value: str) -> int:
        """Count the rows of a group, scored or not."""
        return int(self._part(self._sums, {column: value})["rows"].sum())

    def estimate(self, measure: Measure, **where: str) -> Estimate:
        """Estimate the measure over all its rows, or over those of one group."""
        if isinstance(measure.statistic, STREAMED):
            found = _streamed(measure, self._part(self._sums, where, measure), self._clusterings())
        else:
            rows = pl.concat(self._held) if self._held else None
            found = _held(measure, self._part(rows, where, measure))
        return replace(found, undefined=reason_of(measure, found.undefined))

    def with_masked(self, measure: Measure) -> Estimate:
        """Estimate the measure over all rows, those that are masked too."""
        assert self._sums is not None
        return _streamed(measure, self._sums, self._clusterings())

    def _clusterings(self) -> tuple[str, ...]:
        return ("cluster", *self._instrument.also_clusters)

    def _part(
        self, frame: pl.DataFrame | None, where: dict[str, str], measure: Measure | None = None
    ) -> pl.DataFrame:
        if frame is None:
            raise Undefined("the run has no finished item yet")
        return frame.filter(rows_of(self._instrument, measure, where))


def rows_of(instrument: Scored, measure: Measure | None, where: Mapping[str, str]) -> pl.Expr:
    """Say which rows a measure is computed from: those of a group, without the masked ones if the
    measure uses what is wrong with them."""
    masks = measure is not None and measure.name in instrument.masked
    rows = ~pl.col(_MASKED) if masks else pl.lit(value=True)
    for column, value in where.items():
        rows &= pl.col(column) == value
    return rows


def reason_of(measure: Measure, undefined: str | None) -> str | None:
    """Say why a number is undefined; a measure may know why no row has a value."""
    return measure.absent if undefined == NO_ROWS and measure.absent else undefined


def _sums(measure: Measure) -> list[pl.Expr]:
    """Sum n, Σy, Σx, Σ|y| and Σ|x| of a cluster, as `ratio_from_totals` takes them."""
    name = measure.name
    if isinstance(measure.statistic, SumOfRatios):
        return sums_of_ratios(measure, ("",))
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


def sums_of_ratios(measure: Measure, sides: Sequence[str]) -> list[pl.Expr]:
    """Sum a cluster's rows for a sum of ratios: n, the rows that carry any of them, and the five
    sums of each ratio. A row belongs to a ratio if both its numbers are known on all sides of a
    comparison; `sides` are the endings of their columns."""
    assert isinstance(measure.statistic, SumOfRatios)
    found: dict[str, pl.Expr] = {}
    carrying: list[pl.Expr] = []
    for place in range(len(measure.statistic.parts)):
        columns = [f"{measure.name}.{part}{place}{side}" for side in sides for part in ("y", "x")]
        known = pl.all_horizontal(pl.col(columns).is_not_null())
        numbers = [pl.when(known).then(pl.col(column)) for column in columns]
        for side, y, x in zip(sides, numbers[::2], numbers[1::2], strict=True):
            carries = ((y != 0) | (x != 0)).fill_null(False)
            carrying.append(carries)
            sums = (carries.sum(), y.sum(), x.sum(), y.abs().sum(), x.abs().sum())
            found |= {f"{part}{place}{side}": one for part, one in zip(SUMS, sums, strict=True)}
    found["n"] = pl.any_horizontal(carrying).sum()
    return [expr.cast(pl.Float64).alias(f"{measure.name}:{part}") for part, expr in found.items()]


def sums_per_cluster(
    frame: pl.DataFrame, name: str, parts: Sequence[str], cluster: str
) -> pl.DataFrame:
    """Give the named sums of a measure, one row per cluster."""
    # In the order of their names: which part was committed first must not move the last digit.
    sums = frame.group_by(cluster).agg(pl.col([f"{name}:{part}" for part in parts]).sum())
    return sums.sort(cluster).drop(cluster)


def _interval(measure: Measure, frame: pl.DataFrame, cluster: str) -> Interval:
    """Compute the interval of a mean, share, ratio or sum of ratios over one way to cluster."""
    match measure.statistic:
        case SumOfRatios(parts, shift):
            tables = [sums_per_cluster(frame, measure.name, [f"{s}{k}" for s in SUMS], cluster)
                      for k in range(len(parts))]  # fmt: skip
            weighted = [(parts[k][0], table.to_numpy()) for k, table in enumerate(tables)]
            n = int(frame[f"{measure.name}:n"].sum())
            return sum_of_ratios_from_totals(weighted, n, shift)
        case Ratio(_, _, scale, shift):
            sums = sums_per_cluster(frame, measure.name, SUMS, cluster)
            return ratio_from_totals(sums.to_numpy()).rescaled(scale, shift)
        case _:
            return ratio_from_totals(
                sums_per_cluster(frame, measure.name, SUMS, cluster).to_numpy()
            )


def _streamed(measure: Measure, frame: pl.DataFrame, clusterings: Sequence[str]) -> Estimate:
    """Estimate a mean, share, ratio or sum of ratios. With several ways to cluster, or for a share,
    the interval is the widest of all."""
    intervals, reason = [], ""
    for cluster in clusterings:
        try:
            intervals.append(_interval(measure, frame, cluster))
        except Undefined as undefined:
            reason = reason or str(undefined)
    trials = _wilson(measure, frame)
    if not intervals and trials is None:
        return Estimate(name=measure.name, value=None, undefined=reason)
    found = _widest(measure, intervals, trials)
    if len(clusterings) == 1:
        return found
    carrying = frame.filter(pl.col(f"{measure.name}:n") > 0)
    return replace(found, clusters=min(carrying[c].n_unique() for c in clusterings))


def _wilson(measure: Measure, frame: pl.DataFrame) -> tuple[float, float, float, int] | None:
    """Give estimate, low, high and n of a share by Wilson's formula."""
    if not isinstance(measure.statistic, Share):
        return None
    n, events = (round(float(frame[f"{measure.name}:{part}"].sum())) for part in ("n", "y"))
    if n == 0:
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
