"""The change of each kind of number is computed here from the sums or the rows of two runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from evenhand.findings.defended_change import AFTER
from evenhand.findings.found import NO_SPREAD, Change, ends_of
from evenhand.findings.measures import (
    MeanOfClusters,
    Measure,
    OfMeans,
    Ratio,
    Share,
    SumOfRatios,
    Totals,
)
from evenhand.findings.rows import cluster_values
from evenhand.findings.rules import p_value
from evenhand.findings.totals import (
    SUMS,
    TOO_FEW,
    share_of_weights,
    sums_of_ratios,
    sums_per_cluster,
)
from evenhand.statistics.bootstrap import LEAST, cluster_bootstrap
from evenhand.statistics.clusters import (
    Interval,
    ratio_change_from_totals,
    ratio_from_totals,
    shares_of_change,
    sum_of_ratios_from_totals,
)
from evenhand.statistics.region import of_means
from evenhand.statistics.shares import clustered_balance
from evenhand.statistics.sign_flips import p_two_sided


def means_table(measure: Measure, rows: pl.DataFrame) -> np.ndarray:
    """Give per cluster the sum and the number of what the measure averages."""
    if isinstance(measure.statistic, MeanOfClusters):
        values = cluster_values(measure, rows)["value"].to_numpy()
        return np.column_stack([values, np.ones_like(values)])
    value = pl.col(f"{measure.name}.value")
    sums = rows.group_by("cluster", maintain_order=True).agg(
        value.sum(), pl.len().cast(pl.Float64).alias("n")
    )
    return sums.drop("cluster").to_numpy()


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
        found |= {"moved": (new_y - old_y).abs().sum(), "reweighed": (new_x - old_x).abs().sum()}
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
    """Compute the change of a streamed statistic, its uncertainty over one way to cluster."""
    name = measure.name
    p: float | None = None

    def table(parts: Sequence[str]) -> np.ndarray:
        return sums_per_cluster(frame, name, parts, cluster).to_numpy()

    match measure.statistic:
        case SumOfRatios(parts, shift):
            sides = [[(part[0], table([f"{s}{place}{side}" for s in SUMS]))
                      for place, part in enumerate(parts)] for side in ("", AFTER)]  # fmt: skip
            n = int(frame[f"{name}:n"].sum())
            lost = [(-weight, sums) for weight, sums in sides[0]]
            interval = sum_of_ratios_from_totals([*lost, *sides[1]], n)
            p = p_two_sided(shares_of_change(*sides))
            before, after = (
                shift + sum(weight * t[:, 1].sum() / t[:, 2].sum() for weight, t in side)
                for side in sides
            )
        case Ratio(_, _, scale, shift):
            old, new = table(SUMS), table([f"{part}{AFTER}" for part in SUMS])
            interval = _ratio_change(measure, old, new, *table(["moved", "reweighed"]).T)
            p = p_two_sided(shares_of_change([(1.0, old)], [(1.0, new)]))
            before, after = (scale * t[:, 1].sum() / t[:, 2].sum() + shift for t in (old, new))
        case _:
            numbers = table([*SUMS, "b", "e"])
            least, most = measure.range
            shares = isinstance(measure.statistic, Share)
            sums = numbers[:, :5]
            interval = clustered_balance(sums, most - least) if shares else ratio_from_totals(sums)
            before, after = (numbers[:, place].sum() / numbers[:, 0].sum() for place in (5, 6))
    return change_of(measure, interval, float(before), float(after), p)


def _ratio_change(
    measure: Measure, old: np.ndarray, new: np.ndarray, moved: np.ndarray, reweighed: np.ndarray
) -> Interval:
    """Compute the interval of the change of a ratio. That of a share of weights is the mean of the
    rows' own changes, if the weights are those of before."""
    assert isinstance(measure.statistic, Ratio)
    if not share_of_weights(measure) or reweighed.any():
        return ratio_change_from_totals(old, new).rescaled(measure.statistic.scale)
    least, most = measure.range
    sums = np.column_stack([old[:, 0], new[:, 1] - old[:, 1], old[:, 2], moved, old[:, 4]])
    return clustered_balance(sums, most - least)


def change_of(
    measure: Measure, interval: Interval, before: float, after: float, p: float | None = None
) -> Change:
    """Make the change that an interval is, with the p-value that is given, else that of t; of a
    mean `defended_change` puts that of sign flips in its place."""
    if p is None:
        p = p_value(interval.estimate, interval.se, interval.clusters, interval.p_two_sided)
    low, high = ends_of(interval, _reach(measure))
    return Change(
        name=measure.name,
        before=before,
        after=after,
        difference=interval.estimate,
        low=low,
        high=high,
        se=interval.se,
        p=p,
        n=interval.n,
        clusters=interval.clusters,
        undefined=NO_SPREAD if interval.no_spread else None,
    )


def _reach(measure: Measure) -> tuple[float, float]:
    """Give the largest fall and the largest rise that a change can be."""
    least, most = measure.range
    return least - most, most - least


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
    return replace(change_of(measure, interval, *sides), p=None, n=n)


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
    return Change(
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
    )
