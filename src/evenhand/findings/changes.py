"""The change of each kind of number is computed here from the sums or the rows of two runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from evenhand.findings.defended_change import AFTER, sides_of_ratios
from evenhand.findings.found import NO_SPREAD, Change, ends_of
from evenhand.findings.measures import (
    Measure,
    OfMeans,
    Ratio,
    Share,
    SumOfRatios,
    Totals,
)
from evenhand.findings.totals import (
    SUMS,
    TOO_FEW,
    sums_of_ratios,
    sums_per_cluster,
)
from evenhand.statistics.bootstrap import LEAST, cluster_bootstrap
from evenhand.statistics.clusters import (
    Interval,
    ratio_change_from_totals,
    ratio_from_totals,
    sum_of_ratios_from_totals,
)
from evenhand.statistics.region import of_means
from evenhand.statistics.shares import clustered_balance


def pair_sums(measure: Measure) -> list[pl.Expr]:
    name = measure.name
    if isinstance(measure.statistic, SumOfRatios):
        return sums_of_ratios(measure, ("", AFTER))
    if isinstance(measure.statistic, Ratio):
        parts = [f"{name}.{part}{side}" for side in ("", AFTER) for part in ("y", "x")]
        known = pl.all_horizontal(pl.col(parts).is_not_null())
        old_y, old_x, new_y, new_x = (pl.when(known).then(pl.col(part)) for part in parts)
        found: dict[str, pl.Expr] = {}
        for side, y, x in (("", old_y, old_x), (AFTER, new_y, new_x)):
            n = ((y != 0) | (x != 0)).sum()
            sums = (n, y.sum(), x.sum(), y.abs().sum(), x.abs().sum())
            found |= {f"{part}{side}": one for part, one in zip(SUMS, sums, strict=True)}
    else:
        old, new = pl.col(f"{name}.value"), pl.col(f"{name}.value{AFTER}")
        known = old.is_not_null() & new.is_not_null()
        difference, n = new - old, known.sum()
        found = {"n": n, "y": difference.sum(), "x": n, "ay": difference.abs().sum(), "ax": n}
        found |= {f: pl.when(known).then(v).sum() for f, v in (("b", old), ("e", new))}
        if measure.counts_flips:
            gain = -difference if measure.better == "lower" else difference
            found |= {"fixed": (gain > 0).sum(), "broken": (gain < 0).sum()}
    return [expr.cast(pl.Float64).alias(f"{name}:{part}") for part, expr in found.items()]


def change_from(measure: Measure, frame: pl.DataFrame, cluster: str) -> Change:
    """Compute the change of a streamed statistic over one way to cluster, before it is tested."""
    name = measure.name

    def table(parts: Sequence[str]) -> np.ndarray:
        return sums_per_cluster(frame, name, parts, cluster).to_numpy()

    match measure.statistic:
        case SumOfRatios(_, shift):
            sides = sides_of_ratios(measure, frame, cluster)
            n = int(frame[f"{name}:n"].sum())
            lost = [(-weight, sums) for weight, sums in sides[0]]
            interval = sum_of_ratios_from_totals([*lost, *sides[1]], n)
            before, after = (
                shift + sum(weight * t[:, 1].sum() / t[:, 2].sum() for weight, t in side)
                for side in sides
            )
        case Ratio(_, _, scale, shift):
            old, new = (sums for ((_, sums),) in sides_of_ratios(measure, frame, cluster))
            interval = ratio_change_from_totals(old, new).rescaled(scale)
            before, after = (scale * t[:, 1].sum() / t[:, 2].sum() + shift for t in (old, new))
        case _:
            numbers = table([*SUMS, "b", "e"])
            least, most = measure.range
            shares = isinstance(measure.statistic, Share)
            sums = numbers[:, :5]
            interval = clustered_balance(sums, most - least) if shares else ratio_from_totals(sums)
            before, after = (numbers[:, place].sum() / numbers[:, 0].sum() for place in (5, 6))
    return change_of(measure, interval, float(before), float(after))


def change_of(measure: Measure, interval: Interval, before: float, after: float) -> Change:
    """Make the change that an interval estimates; `defended_change` tests it."""
    return Change(
        name=measure.name,
        before=before,
        after=after,
        difference=interval.estimate,
        se=interval.se,
        n=interval.n,
        clusters=interval.clusters,
        undefined=NO_SPREAD if interval.no_spread else None,
    )


def change_of_means(measure: Measure, table: np.ndarray, width: int, n: int) -> Change:
    """Compute the change of a function of means from the means before and the paired changes: an
    interval without a p-value."""
    assert isinstance(measure.statistic, OfMeans)
    value = measure.statistic.value
    old, new = table[:, :width], table[:, width:]

    def difference(means: Totals) -> Totals:
        before, moved = means[:, :width], means[:, width:]
        return value(before + moved) - value(before)

    interval = of_means(np.column_stack([old, new - old]), difference)
    sides = (float(value(side.mean(axis=0, keepdims=True))[0]) for side in (old, new))
    least, most = measure.range
    low, high = ends_of(interval, (least - most, most - least))
    return _untested(replace(change_of(measure, interval, *sides), low=low, high=high, n=n))


def _untested(change: Change) -> Change:
    """Complete a change that has an interval and no test: its ends are its limits too."""
    limits = None if change.low is None or change.high is None else (change.low, change.high)
    return replace(change, effect=change.difference, limits=limits)


def resampled_change(
    name: str, table: np.ndarray, width: int, value: Callable[[Totals], Totals], n: int
) -> Change:
    """Compute the change of a function of totals by resampling whole clusters of both runs at once:
    an interval without a p-value."""

    def difference(totals: Totals) -> Totals:
        return value(totals[:, width:]) - value(totals[:, :width])

    drawn = cluster_bootstrap(table, difference, kind="percentile")
    too_few = len(table) < LEAST
    totals = table.sum(axis=0, keepdims=True)
    return _untested(Change(
        name=name,
        before=float(value(totals[:, :width])[0]),
        after=float(value(totals[:, width:])[0]),
        difference=drawn.estimate,
        low=None if too_few or drawn.no_spread else drawn.low,
        high=None if too_few or drawn.no_spread else drawn.high,
        se=drawn.se,
        n=int(n),
        clusters=drawn.clusters,
        undefined=TOO_FEW if too_few else NO_SPREAD if drawn.no_spread else None,
    ))  # fmt: skip
