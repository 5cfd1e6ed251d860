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
from evenhand.findings.coverage import count_lost, count_states, coverage_of
from evenhand.findings.defended import (
    ALPHA,
    Filling,
    defended,
    filled_clusters,
    filled_sums,
    p_of_defended,
)
from evenhand.findings.found import NO_SPREAD, Coverage, Estimate
from evenhand.findings.measures import (
    Mean,
    MeanOfClusters,
    Measure,
    OfMeans,
    OfTotals,
    Ratio,
    Share,
    ShareOfClusters,
    SumOfRatios,
)
from evenhand.findings.rows import (
    MASKED,
    cluster_values,
    keys_of,
    missing_of,
    missing_parts,
    row_values,
    rows_of,
)
from evenhand.findings.rules import adjusted_estimates, p_value
from evenhand.findings.scored import Scored
from evenhand.statistics.bootstrap import LEAST, cluster_bootstrap, of_all
from evenhand.statistics.clusters import (
    NO_ROWS,
    Interval,
    ratio_from_totals,
    sum_of_ratios_from_totals,
)
from evenhand.statistics.multiplicity import holm_errors
from evenhand.statistics.region import of_means
from evenhand.statistics.shares import clustered_balance, clustered_share, sum_of_shares

STREAMED = (Mean, Share, Ratio, SumOfRatios)
SUMS = ("n", "y", "x", "ay", "ax")  # of one ratio and one cluster, as the statistics take them
TOO_FEW = f"too few clusters to resample: {LEAST} are needed"


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
        self._states_by: dict[str, Counter[str]] = {}
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
        self.masked_rows += int(rows[MASKED].sum())
        self._states.update(dict(rows["state"].value_counts().iter_rows()))
        count_states(self._states_by, rows, self._instrument.covered_by)
        count_lost(self._states_by, rows, self._instrument.measures)
        if self._instrument.tallied:
            self._tallies.append(outcomes.group_by(self._instrument.tallied).len())
        sums = rows.group_by(self._keys, maintain_order=True).agg(
            pl.len().cast(pl.Float64).alias("rows"),
            *(expr for measure in self._streamed for expr in _sums(measure)),
            *(pl.col(missing_of(m)).sum().alias(f"{m.name}:m") for m in self._streamed),
            *(
                pl.col(column).sum().cast(pl.Float64).alias(f"{m.name}:m{place}")
                for m in self._streamed
                for place, column in enumerate(missing_parts(m))
            ),
        )
        self._sums = sums if self._sums is None else self._added(pl.concat([self._sums, sums]))
        if self._held_measures:
            numbers = [name for m in self._held_measures for name in (*m.columns(), missing_of(m))]
            self._held.append(rows.select(*self._keys, *numbers))

    def _added(self, sums: pl.DataFrame) -> pl.DataFrame:
        by_keys = sums.group_by(self._keys, maintain_order=True)
        return by_keys.agg(pl.exclude(self._keys).sum())

    def coverage(self) -> Coverage:
        return coverage_of(self._states)

    def coverage_by(self) -> dict[str, Coverage]:
        """How much was scored for each value of the column that the instrument names, and of each
        measure that can lose a value beside the score."""
        return {value: coverage_of(one) for value, one in sorted(self._states_by.items())}

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

    def estimate(
        self, measure: Measure, reach: float | None = None, error: float = ALPHA, /, **where: str
    ) -> Estimate:
        """Estimate the measure over all its rows, or over those of one group. With a `reach`, it is
        also tested that the number is nearer than that to "no bias". `error` is the share of cases
        in which the interval of a bounded number with such a value may miss it."""
        return defended(*self._filled(measure, where), reach, error)

    def tested(self, numbers: Sequence[tuple[Measure, float, Mapping[str, str]]]) -> list[Estimate]:
        """Estimate numbers that are tested together: p-values after Holm over all of them, and
        intervals at the errors at which Holm decides.

        Args:
            numbers: The measure, the `reach` and the group of each, as `estimate` takes them.
        """
        filled = [self._filled(measure, where) for measure, _, where in numbers]
        raw = [p_of_defended(*one) for one in filled]
        errors = holm_errors([1.0 if p is None else p for p in raw], ALPHA)
        return adjusted_estimates([
            defended(*one, reach, error)
            for one, (_, reach, _), error in zip(filled, numbers, errors, strict=True)
        ])  # fmt: skip

    def _filled(
        self, measure: Measure, where: Mapping[str, str]
    ) -> tuple[Estimate, Measure, list[Filling]]:
        """Give the estimate from the answers that there are, and what is known of the others."""
        if isinstance(measure.statistic, STREAMED):
            frame = self._part(self._sums, where, measure)
            found = _streamed(measure, frame, self._clusterings())
            ways = [filled_sums(measure, frame, cluster) for cluster in self._clusterings()]
        else:
            rows = self._part(pl.concat(self._held) if self._held else None, where, measure)
            found, ways = _held(measure, rows), [filled_clusters(measure, rows)]
        return replace(found, undefined=reason_of(measure, found.undefined)), measure, ways

    def with_masked(self, measure: Measure) -> Estimate:
        """Estimate the measure over all rows, those that are masked too."""
        assert self._sums is not None
        return _streamed(measure, self._sums, self._clusterings())

    def _clusterings(self) -> tuple[str, ...]:
        return ("cluster", *self._instrument.also_clusters)

    def _part(
        self, frame: pl.DataFrame | None, where: Mapping[str, str], measure: Measure | None = None
    ) -> pl.DataFrame:
        if frame is None:
            raise Undefined("the run has no finished item yet")
        return frame.filter(rows_of(self._instrument, measure, where))


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


def share_of_weights(measure: Measure) -> bool:
    """Say whether a ratio is a share of weights: it has ends, and is taken as it is."""
    match measure.statistic:
        case Ratio(_, _, scale, shift):
            return measure.bounded and (scale, shift) == (1.0, 0.0)
    return False


def _interval(measure: Measure, frame: pl.DataFrame, cluster: str) -> Interval:
    """Compute the interval of a mean, share, ratio or sum of ratios over one way to cluster."""

    def sums(parts: Sequence[str]) -> np.ndarray:
        return sums_per_cluster(frame, measure.name, parts, cluster).to_numpy()

    match measure.statistic:
        case SumOfRatios(parts, shift):
            weighted = [(part[0], sums([f"{name}{place}" for name in SUMS]))
                        for place, part in enumerate(parts)]  # fmt: skip
            n = int(frame[f"{measure.name}:n"].sum())
            of_shares = sum_of_shares if measure.bounded else sum_of_ratios_from_totals
            return of_shares(weighted, n, shift)
        case Ratio(_, _, scale, shift) if not share_of_weights(measure):
            return ratio_from_totals(sums(SUMS)).rescaled(scale, shift)
        case Share() | Ratio():
            least, most = measure.range
            return (clustered_balance if least < 0 else clustered_share)(sums(SUMS), most)
        case _:
            return ratio_from_totals(sums(SUMS))


def _streamed(measure: Measure, frame: pl.DataFrame, clusterings: Sequence[str]) -> Estimate:
    """Estimate a mean, share, ratio or sum of ratios. With several ways to cluster the
    interval is the widest of all."""
    intervals, reason = [], ""
    for cluster in clusterings:
        try:
            intervals.append(_interval(measure, frame, cluster))
        except Undefined as undefined:
            reason = reason or str(undefined)
    if not intervals:
        return Estimate(name=measure.name, value=None, undefined=reason)
    found = _widest(measure, intervals)
    if len(clusterings) == 1:
        return found
    carrying = frame.filter(pl.col(f"{measure.name}:n") > 0)
    return replace(found, clusters=min(carrying[c].n_unique() for c in clusterings))


def _widest(measure: Measure, intervals: Sequence[Interval]) -> Estimate:
    """Join the intervals over several ways to cluster. Where none shows a spread, the first way is
    the one whose clusters were drawn, and it says what they allow."""
    spread = [one for one in intervals if not one.no_spread] or intervals[:1]
    widest = max(spread, key=lambda one: one.se)
    low, high = min(one.low for one in spread), max(one.high for one in spread)
    joined = replace(widest, low=low, high=high)
    found = Estimate.of(measure.name, lambda: joined, measure.range)
    # The interval of a share of weights is not that of t, so that a p-value by t is not its own.
    return found if share_of_weights(measure) else with_p(found, measure, widest)


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
            interval = cluster_interval(measure, values["value"].to_numpy())
        except Undefined as reason:
            return Estimate(name=measure.name, value=None, undefined=str(reason))
        found = Estimate.of(measure.name, lambda: interval, measure.within)
        return with_p(found, measure, interval)
    table = totals_table(measure, rows)
    if isinstance(measure.statistic, OfMeans):
        numbers, value = table.drop("cluster").to_numpy(), measure.statistic.value
        found = Estimate.of(measure.name, lambda: of_means(numbers, value), measure.within)
        return replace(found, n=len(_complete(measure, rows)))
    return _resampled(measure, table, len(_complete(measure, rows)))


def cluster_interval(measure: Measure, values: np.ndarray, change: bool = False) -> Interval:
    """Compute the interval of a mean over clusters, or of its change, from one number of each."""
    one = np.ones_like(values)
    table = np.column_stack([one, values, one, np.abs(values), one])
    if not isinstance(measure.statistic, ShareOfClusters):
        return ratio_from_totals(table)
    return (clustered_balance if change else clustered_share)(table)


def totals_table(measure: Measure, rows: pl.DataFrame) -> pl.DataFrame:
    """Give one row per cluster: the cluster, and the numbers whose totals or means the statistic's
    `value` takes."""
    assert isinstance(measure.statistic, OfMeans | OfTotals)
    names = list(measure.statistic.rows)
    known = _complete(measure, rows).rename({f"{measure.name}.{name}": name for name in names})
    over = {name: pl.col(name).sum() for name in names}
    if isinstance(measure.statistic, OfMeans):
        over = {name: pl.col(name).mean() for name in names}
    elif measure.statistic.over:
        over = dict(measure.statistic.over)
    made = {name: expr.cast(pl.Float64) for name, expr in over.items()}
    return known.group_by("cluster", maintain_order=True).agg(**made)


def _complete(measure: Measure, rows: pl.DataFrame) -> pl.DataFrame:
    columns = list(measure.columns())
    return rows.select("cluster", *columns).drop_nulls(columns)


def _resampled(measure: Measure, table: pl.DataFrame, n: int) -> Estimate:
    assert isinstance(measure.statistic, OfTotals)
    numbers, value = table.drop("cluster").to_numpy(), measure.statistic.value
    if not len(numbers):
        return Estimate(name=measure.name, value=None, undefined=NO_ROWS)
    try:
        if len(numbers) < LEAST:
            return Estimate(name=measure.name, value=of_all(numbers, value), n=n,
                            clusters=len(numbers), undefined=TOO_FEW)  # fmt: skip
        drawn = cluster_bootstrap(numbers, value, kind="percentile")
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
