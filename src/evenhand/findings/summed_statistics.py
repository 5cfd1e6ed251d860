"""Statistics that need nothing of a cluster but its sums: means, shares, ratios and sums of ratios.

A run of any length is read once, batch by batch, and only the sums per cluster are kept.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenhand.core.errors import Undefined
from evenhand.findings.decision_rules import change_of, with_p
from evenhand.findings.estimates import Change, Estimate
from evenhand.findings.measures import AFTER, Clusterings, Measure, Statistic
from evenhand.findings.worst_case import WorstCasePair, WorstCaseRun, WorstCaseSums
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.clusters import (
    NO_ROWS,
    Interval,
    linearized,
    ratio_change_from_totals,
    ratio_from_totals,
    sum_of_ratios_from_totals,
)
from evenhand.statistics.proportions import clustered_balance, clustered_share, sum_of_shares

SUMS = ("n", "y", "x", "ay", "ax")  # of one ratio and one cluster, as the statistics take them
_SIDES = ("", AFTER)
_Weighted = Sequence[tuple[float, FloatArray]]  # the weight of a ratio, and its sums per cluster


class _Summed(Statistic):
    """Common to the statistics whose interval is computed from sums per cluster."""

    summed = True
    testable = True

    @abstractmethod
    def _interval(self, measure: Measure, table: pl.DataFrame, cluster: str) -> Interval:
        """Compute the interval over one way to cluster."""

    @abstractmethod
    def _filling(self, measure: Measure, table: pl.DataFrame, cluster: str) -> WorstCaseRun: ...

    @abstractmethod
    def _change(self, measure: Measure, table: pl.DataFrame, cluster: str) -> Change: ...

    @abstractmethod
    def _filled_pair(
        self, measure: Measure, table: pl.DataFrame, cluster: str
    ) -> WorstCasePair | None: ...

    def estimate(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Estimate:
        intervals, reason = [], ""
        for cluster in by:
            try:
                intervals.append(self._interval(measure, table, cluster))
            except Undefined as undefined:
                reason = reason or str(undefined)
        if not intervals:
            return Estimate(name=measure.name, value=None, undefined=reason)
        widest = self._widest(measure, intervals)
        if len(by) == 1:
            return widest
        carrying = table.filter(pl.col(f"{measure.name}:n") > 0)
        return replace(widest, clusters=min(carrying[cluster].n_unique() for cluster in by))

    def _widest(self, measure: Measure, intervals: Sequence[Interval]) -> Estimate:
        """Join the intervals over several ways to cluster. Where none shows a spread, the first way
        is the one whose clusters were drawn, and it says what they allow."""
        spread = [each for each in intervals if not each.no_spread] or intervals[:1]
        widest = max(spread, key=lambda each: each.se)
        low, high = min(each.low for each in spread), max(each.high for each in spread)
        joined = replace(widest, low=low, high=high)
        return with_p(Estimate.of(measure.name, lambda: joined, measure.range), measure, widest)

    def fillings(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCaseRun]:
        return [self._filling(measure, table, cluster) for cluster in by]

    def change(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Change:
        changes, reason = [], None
        for cluster in by:
            try:
                changes.append(self._change(measure, table, cluster))
            except Undefined as undefined:
                reason = reason or undefined
        if not changes:
            raise reason or Undefined(NO_ROWS)
        spread = [change for change in changes if change.se] or changes[:1]
        widest = max(spread, key=lambda change: change.se)
        return replace(widest, clusters=min(change.clusters for change in changes))

    def filled_pairs(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCasePair | None]:
        return [self._filled_pair(measure, table, cluster) for cluster in by]

    def missing_pairs(self, measure: Measure, table: pl.DataFrame) -> int:
        return int(table[f"{measure.name}:m"].sum())


@dataclass(frozen=True, slots=True)
class Mean(_Summed):
    """The mean over rows; a row whose value is null is left out."""

    is_mean = True

    value: pl.Expr

    @property
    def row_value(self) -> pl.Expr:
        return self.value

    def columns(self) -> Mapping[str, pl.Expr]:
        return {"value": self.value.cast(pl.Float64)}

    def run_sums(self, measure: Measure) -> Sequence[pl.Expr]:
        value = pl.col(f"{measure.name}.value")
        n = value.is_not_null().sum()
        sums = {"n": n, "y": value.sum(), "x": n, "ay": value.abs().sum(), "ax": n}
        return _named(measure, {**sums, "m": pl.col(f"{measure.name}.missing").sum()})

    def pair_sums(self, measure: Measure) -> Sequence[pl.Expr]:
        """Add up the differences, and both runs' values with the missing ones apart. A pair counts
        if each of its two answers is known or missing."""
        name = measure.name
        old, new = values = [pl.col(f"{name}.value{side}") for side in _SIDES]
        present = old.is_not_null() & new.is_not_null()
        difference, n = new - old, present.sum()
        sums = {"n": n, "y": difference.sum(), "x": n, "ay": difference.abs().sum(), "ax": n}
        sums |= {part: pl.when(present).then(value).sum()
                 for part, value in zip("be", values, strict=True)}  # fmt: skip
        if measure.counts_flips:
            gain = -difference if measure.better == "lower" else difference
            sums |= {"fixed": (gain > 0).sum(), "broken": (gain < 0).sum()}
        lost = [pl.col(f"{name}.missing{side}") for side in _SIDES]
        counts = [value.is_not_null() | gone for value, gone in zip(values, lost, strict=True)]
        counted = counts[0] & counts[1]
        sums |= {"rows": counted.sum(), "m": (counted & (lost[0] | lost[1])).sum()}
        for side, value, gone in zip(_SIDES, values, lost, strict=True):
            sums[f"known{side}"] = pl.when(counted & ~gone).then(value).sum()
            sums[f"lost{side}"] = (counted & gone).sum()
        return _named(measure, sums)

    def _interval(self, measure: Measure, table: pl.DataFrame, cluster: str) -> Interval:
        return self._of_run(measure, _sums(table, measure, SUMS, cluster))

    def _of_run(self, measure: Measure, sums: FloatArray) -> Interval:
        del measure
        return ratio_from_totals(sums)

    def _of_change(self, measure: Measure, sums: FloatArray) -> Interval:
        del measure
        return ratio_from_totals(sums)

    def _filling(self, measure: Measure, table: pl.DataFrame, cluster: str) -> WorstCaseRun:
        sums = _sums(table, measure, ("y", "n", "m"), cluster)
        y, n, m = sums[(sums[:, 1] > 0) | (sums[:, 2] > 0)].T
        missing = int(table[f"{measure.name}:m"].sum())
        return WorstCaseRun(
            missing, WorstCaseSums.of(measure, y, n, m), y - (measure.null or 0.0) * n
        )

    def _change(self, measure: Measure, table: pl.DataFrame, cluster: str) -> Change:
        sums = _sums(table, measure, (*SUMS, "b", "e"), cluster)
        interval = self._of_change(measure, sums[:, :5])
        before, after = (sums[:, column].sum() / sums[:, 0].sum() for column in (5, 6))
        return change_of(measure, interval, before, after)

    def _filled_pair(self, measure: Measure, table: pl.DataFrame, cluster: str) -> WorstCasePair:
        sides = [f"{part}{side}" for side in _SIDES for part in ("known", "lost")]
        sums = _sums(table, measure, ("rows", "m", *sides, "y"), cluster)
        rows, m, old, old_lost, new, new_lost, difference = sums[sums[:, 0] > 0].T
        before = WorstCaseSums.of(measure, old, rows - old_lost, old_lost)
        after = WorstCaseSums.of(measure, new, rows - new_lost, new_lost)
        return WorstCasePair(before, after, m, difference)

    def cluster_positions(self, measure: Measure, table: pl.DataFrame) -> pl.DataFrame:
        names = [f"{measure.name}:{part}" for part in "nbe"]
        sums = table.group_by("cluster").agg(pl.col(names).sum()).sort("cluster")
        n, before, after = map(pl.col, names)
        return sums.filter(n > 0).select(before=before / n, after=after / n)


@dataclass(frozen=True, slots=True)
class Share(Mean):
    """The mean of a yes-or-no value, or of one that is 1, 0 or −1 where `within` begins below 0: a
    share, or one share minus another. Its interval holds for rare events and few clusters too
    (`clustered_share`)."""

    counts_events = True
    default_range = (0.0, 1.0)

    def _of_run(self, measure: Measure, sums: FloatArray) -> Interval:
        least, most = measure.range
        return (clustered_balance if least < 0 else clustered_share)(sums, most)

    def _of_change(self, measure: Measure, sums: FloatArray) -> Interval:
        least, most = measure.range
        return clustered_balance(sums, most - least)


class _Ratios(_Summed):
    """Common to a ratio and a sum of ratios."""

    ratios: tuple[tuple[float, pl.Expr, pl.Expr], ...]  # weight, numerator, denominator
    scale: float
    shift: float

    def columns(self) -> Mapping[str, pl.Expr]:
        return {
            f"{name}{index}": expr.cast(pl.Float64)
            for index, (_, y, x) in enumerate(self.ratios)
            for name, expr in (("y", y), ("x", x))
        }

    def run_sums(self, measure: Measure) -> Sequence[pl.Expr]:
        lost = {f"m{index}": pl.col(f"{measure.name}.missing{index}").sum()
                for index, _ in enumerate(self.denominators())}  # fmt: skip
        lost["m"] = pl.col(f"{measure.name}.missing").sum()
        return _named(measure, {**self._sums_of_ratios(measure, ("",)), **lost})

    def pair_sums(self, measure: Measure) -> Sequence[pl.Expr]:
        parts = ["", *(str(index) for index, _ in enumerate(self.denominators()))]
        lost = {
            f"m{part}": (pl.col(column) | pl.col(f"{column}{AFTER}")).sum()
            for part in parts
            for column in [f"{measure.name}.missing{part}"]
        }
        return _named(measure, {**self._sums_of_ratios(measure, _SIDES), **lost})

    def _sums_of_ratios(self, measure: Measure, sides: Sequence[str]) -> dict[str, pl.Expr]:
        """Sum a cluster's rows: n, the rows that carry any ratio, and the five sums of each ratio.
        A row belongs to a ratio if both its numbers are known on all sides of a comparison; `sides`
        are the endings of their columns."""
        sums: dict[str, pl.Expr] = {}
        carrying: list[pl.Expr] = []
        for index, _ in enumerate(self.ratios):
            columns = [f"{measure.name}.{part}{index}{side}" for side in sides for part in "yx"]
            present = pl.all_horizontal(pl.col(columns).is_not_null())
            numbers = [pl.when(present).then(pl.col(column)) for column in columns]
            for side, y, x in zip(sides, numbers[::2], numbers[1::2], strict=True):
                carries = ((y != 0) | (x != 0)).fill_null(False)
                carrying.append(carries)
                of_side = (carries.sum(), y.sum(), x.sum(), y.abs().sum(), x.abs().sum())
                sums |= {f"{part}{index}{side}": total
                         for part, total in zip(SUMS, of_side, strict=True)}  # fmt: skip
        return {**sums, "n": pl.any_horizontal(carrying).sum()}

    def _side(
        self, measure: Measure, table: pl.DataFrame, cluster: str, side: str = ""
    ) -> list[tuple[float, FloatArray]]:
        """Return the weight of each ratio and its sums per cluster, on one side of a comparison."""
        return [
            (weight, _sums(table, measure, [f"{name}{index}{side}" for name in SUMS], cluster))
            for index, (weight, _, _) in enumerate(self.ratios)
        ]

    def _lost(self, measure: Measure, table: pl.DataFrame, cluster: str) -> list[FloatArray]:
        """Return how many missing answers of each cluster may belong to each share."""
        return [_sums(table, measure, (f"m{index}",), cluster)[:, 0]
                for index, _ in enumerate(self.denominators())]  # fmt: skip

    def _fillable(self, measure: Measure) -> bool:
        """Say whether a missing answer can only add to shares in known ways."""
        return bool(self.denominators()) and measure.bounded

    def _filled_pair(
        self, measure: Measure, table: pl.DataFrame, cluster: str
    ) -> WorstCasePair | None:
        """Return linearized numbers per cluster. A missing answer may add to each share that it may
        belong to, above and below the line or below it alone; of other ratios nothing is known."""
        missing = _sums(table, measure, ("m",), cluster)[:, 0]
        if missing.any() and not self._fillable(measure):
            return None
        lost = self._lost(measure, table, cluster)
        both = [self._side(measure, table, cluster, side) for side in _SIDES]
        carries = _carrying([sums for side in both for _, sums in side], lost)
        missing, lost = missing[carries], [m[carries] for m in lost]
        try:
            old, new = (
                self._filled([(w, sums[carries]) for w, sums in side], lost, missing)
                for side in both
            )
        except Undefined:
            return None
        return WorstCasePair(old, new, missing, new.low - old.low)

    def _filled(
        self, side: _Weighted, lost: Sequence[FloatArray], missing: FloatArray
    ) -> WorstCaseSums:
        low, high = (
            linearized(_with_missing(side, lost, best=best), self.shift / self.scale) * self.scale
            for best in (False, True)
        )
        return WorstCaseSums(low, high, np.ones_like(low), missing)


@dataclass(frozen=True, slots=True)
class Ratio(_Ratios):
    """A ratio is scale · Σnumerator/Σdenominator + shift, over the rows where neither is null."""

    numerator: pl.Expr
    denominator: pl.Expr
    scale: float = 1.0
    shift: float = 0.0

    @property
    def ratios(self) -> tuple[tuple[float, pl.Expr, pl.Expr], ...]:  # type: ignore[override]
        return ((1.0, self.numerator, self.denominator),)

    def _is_share(self, measure: Measure) -> bool:
        """Say whether it is a share of weights: it has ends, and is taken as it is."""
        return measure.bounded and (self.scale, self.shift) == (1.0, 0.0)

    def _interval(self, measure: Measure, table: pl.DataFrame, cluster: str) -> Interval:
        ((_, sums),) = self._side(measure, table, cluster)
        if not self._is_share(measure):
            return ratio_from_totals(sums).rescaled(self.scale, self.shift)
        least, most = measure.range
        return (clustered_balance if least < 0 else clustered_share)(sums, most)

    def _widest(self, measure: Measure, intervals: Sequence[Interval]) -> Estimate:
        widest = _Ratios._widest(self, measure, intervals)
        # The interval of a share of weights is not that of t: a p-value by t is not its own.
        return replace(widest, p=None) if self._is_share(measure) else widest

    def _filling(self, measure: Measure, table: pl.DataFrame, cluster: str) -> WorstCaseRun:
        del cluster
        return WorstCaseRun(int(table[f"{measure.name}:m"].sum()))

    def _change(self, measure: Measure, table: pl.DataFrame, cluster: str) -> Change:
        old, new = (self._side(measure, table, cluster, side)[0][1] for side in _SIDES)
        interval = ratio_change_from_totals(old, new).rescaled(self.scale)
        before, after = (
            self.scale * t[:, 1].sum() / t[:, 2].sum() + self.shift for t in (old, new)
        )
        return change_of(measure, interval, before, after)


@dataclass(frozen=True, slots=True)
class SumOfRatios(_Ratios):
    """A sum of ratios is shift + Σ weight · (Σnumerator/Σdenominator), each over the rows where
    neither of its two is null: a share weighted by strata, or one share minus another.

    >>> SumOfRatios(((1.0, right & aligned, aligned), (-1.0, right & ~aligned, ~aligned)))
    """

    ratios: tuple[tuple[float, pl.Expr, pl.Expr], ...]  # weight, numerator, denominator
    shift: float = 0.0

    @property
    def scale(self) -> float:  # type: ignore[override]
        return 1.0

    def denominators(self) -> Sequence[pl.Expr]:
        return [below for _, _, below in self.ratios]

    def _interval(self, measure: Measure, table: pl.DataFrame, cluster: str) -> Interval:
        n = int(table[f"{measure.name}:n"].sum())
        of_shares = sum_of_shares if measure.bounded else sum_of_ratios_from_totals
        return of_shares(self._side(measure, table, cluster), n, self.shift)

    def _filling(self, measure: Measure, table: pl.DataFrame, cluster: str) -> WorstCaseRun:
        """Fill a sum of shares by its linearized numbers per cluster."""
        missing = int(table[f"{measure.name}:m"].sum())
        if not measure.bounded:
            return WorstCaseRun(missing)
        side = self._side(measure, table, cluster)
        lost = self._lost(measure, table, cluster)
        carries = _carrying([sums for _, sums in side], lost)
        side, lost = [(w, sums[carries]) for w, sums in side], [m[carries] for m in lost]
        try:
            filled = self._filled(side, lost, _sums(table, measure, ("m",), cluster)[carries, 0])
            linear = linearized(side, self.shift)
        except Undefined:
            return WorstCaseRun(missing)
        return WorstCaseRun(missing, filled, linear - (measure.null or 0.0))

    def _change(self, measure: Measure, table: pl.DataFrame, cluster: str) -> Change:
        sides = [self._side(measure, table, cluster, side) for side in _SIDES]
        n = int(table[f"{measure.name}:n"].sum())
        negated = [(-weight, sums) for weight, sums in sides[0]]
        interval = sum_of_ratios_from_totals([*negated, *sides[1]], n)
        before, after = (
            self.shift + sum(weight * t[:, 1].sum() / t[:, 2].sum() for weight, t in side)
            for side in sides
        )
        return change_of(measure, interval, before, after)


def _named(measure: Measure, sums: Mapping[str, pl.Expr]) -> list[pl.Expr]:
    return [expr.cast(pl.Float64).alias(f"{measure.name}:{part}") for part, expr in sums.items()]


def _sums(table: pl.DataFrame, measure: Measure, parts: Sequence[str], cluster: str) -> FloatArray:
    """Return the named sums of a measure, one row per cluster."""
    # In the order of their names: which part was committed first must not move the last digit.
    names = [f"{measure.name}:{part}" for part in parts]
    sums = table.group_by(cluster).agg(pl.col(names).sum())
    return sums.sort(cluster).drop(cluster).to_numpy()


def _carrying(sums: Sequence[FloatArray], lost: Sequence[FloatArray]) -> FloatArray:
    """Say which clusters have a row of any ratio, or a missing one."""
    carries: FloatArray = np.logical_or.reduce(
        [table[:, 0] > 0 for table in sums] + [m > 0 for m in lost]
    )
    return carries


def _with_missing(
    side: _Weighted, lost: Sequence[FloatArray], *, best: bool
) -> list[tuple[float, FloatArray]]:
    """Add the missing answers to weighted shares so that their sum is largest, or smallest.

    Args:
        side: The weight of each share, with n, Σy, Σx, Σ|y|, Σ|x| of each cluster.
        lost: How many missing answers of each cluster may belong to each share; empty for none.
        best: Whether the sum is to be the largest.
    """
    filled = []
    for index, (weight, table) in enumerate(side):
        more = lost[index] if lost else np.zeros(len(table))
        above = more if (weight > 0) == best else np.zeros(len(table))
        filled.append((weight, table + np.column_stack([more, above, more, above, more])))
    return filled
