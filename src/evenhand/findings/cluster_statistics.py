"""Statistics that need all rows of a cluster at once: means over clusters, and functions of means
or of totals over clusters. The values of the whole run are held in memory."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

import numpy as np
import polars as pl

from evenhand.core.errors import Undefined
from evenhand.findings.decision_rules import change_of, with_p
from evenhand.findings.estimates import NO_SPREAD, Change, Estimate, ends_of
from evenhand.findings.measures import AFTER, Clusterings, Measure, Statistic
from evenhand.findings.worst_case import WorstCasePair, WorstCaseRun, WorstCaseSums
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.bootstrap import LEAST, cluster_bootstrap, of_all
from evenhand.statistics.clusters import NO_ROWS, Interval, of_means, ratio_from_totals
from evenhand.statistics.proportions import clustered_balance, clustered_share

TOO_FEW = f"too few clusters to resample: {LEAST} are needed"
_SIDES = ("", AFTER)
_OfTable = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class MeanOfClusters(Statistic):
    """The mean over clusters of one number per cluster, such as the maximum of its rows.

    `over` turns the column of a cluster's values into that number.
    """

    testable = True
    is_mean = True

    value: pl.Expr
    over: Callable[[pl.Expr], pl.Expr] = pl.Expr.mean

    @property
    def averages(self) -> bool:
        return self.over is pl.Expr.mean

    def columns(self) -> Mapping[str, pl.Expr]:
        return {"value": self.value}

    def cluster_values(self, measure: Measure, rows: pl.DataFrame, side: str = "") -> pl.DataFrame:
        """Compute one number per cluster that has one, in the order of the rows.

        Args:
            measure: The metric, whose columns are read.
            rows: The rows of all clusters, with a column `cluster`.
            side: The suffix of the columns: "" for the first run, or that of the second one.

        Returns:
            The columns `cluster` and `value`.
        """
        column = f"{measure.name}.value{side}"
        value = self.over(pl.col(column)).cast(pl.Float64).alias("value")
        groups = rows.drop_nulls(column).group_by("cluster", maintain_order=True)
        return groups.agg(value).drop_nulls("value")

    def _interval(self, values: FloatArray, *, change: bool = False) -> Interval:
        """Compute the interval of the mean, or of its change, from the number of each cluster."""
        del change
        return ratio_from_totals(_as_sums(values))

    def estimate(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Estimate:
        del by
        values = self.cluster_values(measure, table).sort("cluster")
        try:
            interval = self._interval(values["value"].to_numpy())
        except Undefined as reason:
            return Estimate(name=measure.name, value=None, undefined=str(reason))
        return with_p(
            Estimate.of(measure.name, lambda: interval, measure.within), measure, interval
        )

    def fillings(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCaseRun]:
        del by
        lost = f"{measure.name}.missing"
        missing = int(table[lost].sum())
        if missing and not measure.bounded:
            return [WorstCaseRun(missing)]
        touched = table.group_by("cluster").agg(pl.col(lost).any()).sort("cluster")
        values = _placed(self.cluster_values(measure, table), touched).filter(
            pl.col("value").is_not_null() | pl.col(lost)
        )
        from_null = (values["value"] - (measure.null or 0.0)).fill_null(0.0).to_numpy()
        return [WorstCaseRun(missing, self._filled(measure, table), from_null)]

    def _filled(self, measure: Measure, rows: pl.DataFrame, side: str = "") -> WorstCaseSums:
        """Return each cluster's number with its missing rows at their smallest and at their
        largest. If a row's value is not a number (a text, say), a missing one may give the cluster
        any value."""
        column, lost = f"{measure.name}.value{side}", pl.col(f"{measure.name}.missing{side}")
        any_lost = lost.any().cast(pl.Float64).alias("m")
        touched = rows.group_by("cluster").agg(any_lost).sort("cluster")
        kind = rows.schema[column]
        ends = []
        for end in measure.range:
            full = rows
            if kind.is_numeric() or kind == pl.Boolean:
                filled = pl.when(lost).then(end).otherwise(pl.col(column).cast(pl.Float64))
                full = rows.with_columns(filled.alias(column))
            values = _placed(self.cluster_values(measure, full, side), touched)
            if full is rows:
                values = values.with_columns(
                    value=pl.when(pl.col("m") > 0).then(end).otherwise("value")
                )
            ends.append(values.drop_nulls("value"))
        low, high = (values["value"].to_numpy() for values in ends)
        m = ends[0]["m"].to_numpy()
        return WorstCaseSums(np.minimum(low, high), np.maximum(low, high), np.ones_like(low), m)

    def _both_sides(self, measure: Measure, pairs: pl.DataFrame) -> pl.DataFrame:
        """Return columns cluster, value and value:after, over the pairs known on both sides."""
        old, new = (self.cluster_values(measure, pairs, side) for side in _SIDES)
        return old.join(new, on="cluster", suffix=AFTER).sort("cluster")

    def change(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Change:
        del by
        both = self._both_sides(measure, _known(measure, table))
        before, after = (both[f"value{side}"].to_numpy() for side in _SIDES)
        means = (float(side.mean()) if len(side) else 0.0 for side in (before, after))
        return change_of(measure, self._interval(after - before, change=True), *means)

    def filled_pairs(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCasePair | None]:
        del by
        lost = [pl.col(f"{measure.name}.missing{side}") for side in _SIDES]
        values = [pl.col(f"{measure.name}.value{side}") for side in _SIDES]
        rows = table.filter(
            *(value.is_not_null() | gone for value, gone in zip(values, lost, strict=True))
        )
        any_lost = (lost[0] | lost[1]).any().cast(pl.Float64).alias("m")
        touched = rows.group_by("cluster").agg(any_lost).sort("cluster")
        m = touched["m"].to_numpy()
        if m.any() and not measure.bounded:
            return [None]
        old, new = (self._filled(measure, rows, side) for side in _SIDES)
        both = self._both_sides(measure, rows.filter(~lost[0] & ~lost[1]))
        difference = both.select(pl.col(f"value{AFTER}") - pl.col("value")).to_series().to_numpy()
        clusters = touched["cluster"].to_list()
        placed = np.zeros(len(clusters))
        placed[np.isin(clusters, both["cluster"].to_list())] = difference
        return [WorstCasePair(old, new, m, placed)]

    def cluster_positions(self, measure: Measure, table: pl.DataFrame) -> pl.DataFrame:
        both = self._both_sides(measure, _known(measure, table))
        return both.select(before="value", after=f"value{AFTER}")

    def item_values(self, measure: Measure, rows: pl.DataFrame) -> pl.DataFrame:
        """Return columns item_id, cluster and value: the cluster is the item."""
        every = rows.select("cluster").unique(maintain_order=True)
        joined = every.join(self.cluster_values(measure, rows), on="cluster", how="left")
        return joined.with_columns(item_id="cluster")


@dataclass(frozen=True, slots=True)
class ShareOfClusters(MeanOfClusters):
    """The share of clusters for which `over` says yes. Its interval is that of a share."""

    def _interval(self, values: FloatArray, *, change: bool = False) -> Interval:
        return (clustered_balance if change else clustered_share)(_as_sums(values))


class _OfClusterNumbers(Statistic):
    """Common to functions of several numbers per cluster."""

    rows: Mapping[str, pl.Expr]
    value: _OfTable

    def columns(self) -> Mapping[str, pl.Expr]:
        return dict(self.rows)

    @abstractmethod
    def _per_cluster(self) -> Mapping[str, pl.Expr]:
        """Return how the numbers of a cluster are made of those of its rows."""

    @abstractmethod
    def _change_of(self, measure: Measure, old: FloatArray, new: FloatArray) -> Change: ...

    def _table(self, measure: Measure, rows: pl.DataFrame, side: str = "") -> pl.DataFrame:
        """Return one row per cluster: the cluster, and its numbers."""
        names = {f"{measure.name}.{name}{side}": name for name in self.rows}
        complete = rows.drop_nulls(list(names)).select("cluster", *names).rename(names)
        columns = {name: expr.cast(pl.Float64) for name, expr in self._per_cluster().items()}
        return complete.group_by("cluster", maintain_order=True).agg(**columns)

    def _complete(self, measure: Measure, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select("cluster", *measure.columns()).drop_nulls(list(measure.columns()))

    def fillings(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCaseRun]:
        del by
        return [WorstCaseRun(int(table[f"{measure.name}.missing"].sum()))]

    def change(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Change:
        del by
        pairs = _known(measure, table)
        old, new = (self._table(measure, pairs, side) for side in _SIDES)
        both = old.join(new, on="cluster", suffix=AFTER, maintain_order="left")
        numbers, width = both.drop("cluster").to_numpy(), old.width - 1
        change = self._change_of(measure, numbers[:, :width], numbers[:, width:])
        limits = None
        if change.low is not None and change.high is not None:
            limits = change.low, change.high
        return replace(change, n=len(pairs), effect=change.difference, limits=limits)


@dataclass(frozen=True, slots=True)
class OfMeans(_OfClusterNumbers):
    """Any function of means over clusters, each of the means of their rows. Its interval is what
    the intervals of the means allow, so that it may have a kink.

    `rows` are numbers per row, and `value` maps their means, one vector per row, to one number
    each.
    """

    rows: Mapping[str, pl.Expr]
    value: _OfTable

    def _per_cluster(self) -> Mapping[str, pl.Expr]:
        return {name: pl.col(name).mean() for name in self.rows}

    def estimate(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Estimate:
        del by
        numbers = self._table(measure, table).drop("cluster").to_numpy()
        of_run = Estimate.of(measure.name, lambda: of_means(numbers, self.value), measure.within)
        return replace(of_run, n=len(self._complete(measure, table)))

    def _change_of(self, measure: Measure, old: FloatArray, new: FloatArray) -> Change:
        """Compute the change from the means before and the paired changes: an interval without a
        p-value."""
        width = old.shape[1]

        def difference(means: FloatArray) -> FloatArray:
            before, moved = means[:, :width], means[:, width:]
            return self.value(before + moved) - self.value(before)

        interval = of_means(np.column_stack([old, new - old]), difference)
        sides = (float(self.value(side.mean(axis=0, keepdims=True))[0]) for side in (old, new))
        least, most = measure.range
        low, high = ends_of(interval, (least - most, most - least))
        return replace(change_of(measure, interval, *sides), low=low, high=high)


@dataclass(frozen=True, slots=True)
class OfTotals(_OfClusterNumbers):
    """Any function of totals over clusters; its interval comes from resampling clusters.

    `rows` are numbers per row, `over` the numbers per cluster that are made of them (their sums
    where it is empty), and `value` maps totals, one resample per row, to one number each.
    """

    rows: Mapping[str, pl.Expr]
    value: _OfTable
    over: Mapping[str, pl.Expr] | None = None
    # What each number of a missing row may be at least and at most, where `value` is least and
    # largest with all missing rows alike at such ends; without it they may give any number.
    if_missing: Mapping[str, tuple[float, float]] | None = None

    @property
    def averages(self) -> bool:
        return self.over is None

    def _per_cluster(self) -> Mapping[str, pl.Expr]:
        return self.over or {name: pl.col(name).sum() for name in self.rows}

    def estimate(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Estimate:
        del by
        n = len(self._complete(measure, table))
        numbers = self._table(measure, table).drop("cluster").to_numpy()
        if not len(numbers):
            return Estimate(name=measure.name, value=None, undefined=NO_ROWS)
        try:
            if len(numbers) < LEAST:
                return Estimate(name=measure.name, value=of_all(numbers, self.value), n=n,
                                clusters=len(numbers), undefined=TOO_FEW)  # fmt: skip
            bootstrap = cluster_bootstrap(numbers, self.value, kind="percentile")
        except Undefined as reason:
            return Estimate(name=measure.name, value=None, undefined=str(reason))
        return Estimate.of_resamples(measure.name, bootstrap, n)

    def fillings(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCaseRun]:
        """Fill by the ends of the number: its values with all missing rows at the same end of each
        of their numbers, over all such choices.

        Args:
            measure: The metric that the statistic belongs to.
            table: The run's rows.
            by: The columns that name the clusters.

        Returns:
            One entry, with the smallest and the largest value as its ends where answers are
            missing.
        """
        (unfilled,) = _OfClusterNumbers.fillings(self, measure, table, by)
        if not unfilled.missing or self.if_missing is None:
            return [unfilled]
        complete = table.select([f"{measure.name}.{name}" for name in self.rows]).drop_nulls()
        sums = complete.cast(pl.Float64).sum().to_numpy()[0]
        ways = np.array(list(product(*(self.if_missing[name] for name in self.rows))))
        values = self.value(sums + unfilled.missing * ways)
        return [replace(unfilled, ends=(float(values.min()), float(values.max())))]

    def _change_of(self, measure: Measure, old: FloatArray, new: FloatArray) -> Change:
        """Compute the change by resampling whole clusters of both runs at once: an interval without
        a p-value."""
        width = old.shape[1]

        def difference(totals: FloatArray) -> FloatArray:
            return self.value(totals[:, width:]) - self.value(totals[:, :width])

        bootstrap = cluster_bootstrap(np.column_stack([old, new]), difference, kind="percentile")
        too_few = len(old) < LEAST
        before, after = (
            float(self.value(side.sum(axis=0, keepdims=True))[0]) for side in (old, new)
        )
        return Change(
            name=measure.name,
            before=before,
            after=after,
            difference=bootstrap.estimate,
            low=None if too_few or bootstrap.no_spread else bootstrap.low,
            high=None if too_few or bootstrap.no_spread else bootstrap.high,
            se=bootstrap.se,
            clusters=bootstrap.clusters,
            undefined=TOO_FEW if too_few else NO_SPREAD if bootstrap.no_spread else None,
        )


def _known(measure: Measure, pairs: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows that have a value on both sides: a run with more missing must not look better
    for having failed."""
    return pairs.drop_nulls([f"{name}{side}" for side in _SIDES for name in measure.columns()])


def _placed(values: pl.DataFrame, clusters: pl.DataFrame) -> pl.DataFrame:
    return clusters.join(values, on="cluster", how="left", maintain_order="left")


def _as_sums(values: FloatArray) -> FloatArray:
    """Return one number per cluster as the sums of a ratio."""
    ones = np.ones_like(values)
    return np.column_stack([ones, values, ones, np.abs(values), ones])


class FormulaResult(Protocol):
    """What a formula returns: a number, its interval where it has one, and what it rests on."""

    @property
    def estimate(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def n(self) -> int: ...
    @property
    def clusters(self) -> int: ...


def nothing_lost(rows: pl.DataFrame) -> WorstCaseRun:
    """Fill a number whose interval holds whatever the missing values are."""
    del rows
    return WorstCaseRun(0)


@dataclass(frozen=True, slots=True)
class OfRows(Statistic):
    """Any function of all rows at once, with the interval that the function computes itself.

    `rows` are numbers per row; `formula` gets them as a table, with the column `cluster`, of the
    rows that have all of them. `fill` gets the rows that the measure is about, with null for what
    is missing, and says what the number could be if that were known. A change of it has no test.
    """

    rows: Mapping[str, pl.Expr]
    formula: Callable[[pl.DataFrame], FormulaResult]
    fill: Callable[[pl.DataFrame], WorstCaseRun] | None = None

    @property
    def averages(self) -> bool:
        return False

    def columns(self) -> Mapping[str, pl.Expr]:
        return dict(self.rows)

    def _result(self, measure: Measure, table: pl.DataFrame, side: str = "") -> FormulaResult:
        names = {f"{measure.name}.{name}{side}": name for name in self.rows}
        rows = table.select("cluster", *names).drop_nulls().rename(names)
        if rows.is_empty():
            raise Undefined(NO_ROWS)
        return self.formula(rows)

    def estimate(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Estimate:
        del by
        try:
            result = self._result(measure, table)
        except Undefined as reason:
            return Estimate(name=measure.name, value=None, undefined=str(reason))
        alike = isinstance(result, Interval) and result.no_spread
        return Estimate(
            name=measure.name,
            value=result.estimate,
            low=None if alike else result.low,
            high=None if alike else result.high,
            n=result.n,
            clusters=result.clusters,
            undefined=NO_SPREAD if alike else None,
        )

    def fillings(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCaseRun]:
        del by
        lost = f"{measure.name}.missing"
        unknown = WorstCaseRun(int(table[lost].sum()))
        if self.fill is None:
            return [unknown]
        names = {f"{measure.name}.{name}": name for name in self.rows}
        about = pl.any_horizontal(pl.col([*names]).is_not_null()) | pl.col(lost)
        try:
            return [self.fill(table.filter(about).select("cluster", *names).rename(names))]
        except Undefined:
            return [unknown]

    def change(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Change:
        del by
        names = [f"{name}{side}" for name in measure.columns() for side in ("", AFTER)]
        pairs = table.drop_nulls(names)
        before, after = (self._result(measure, pairs, side) for side in ("", AFTER))
        return Change(
            name=measure.name,
            before=before.estimate,
            after=after.estimate,
            difference=after.estimate - before.estimate,
            effect=after.estimate - before.estimate,
            n=len(pairs),
            clusters=after.clusters,
        )
