"""A change is defended against the missing answers of both runs: what they could change, and what
may be claimed all the same."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from evenhand.errors import Undefined
from evenhand.findings import filled
from evenhand.findings.change_test import ChangeTest
from evenhand.findings.defended import filled_values, with_missing
from evenhand.findings.filled import Filled, FilledPair
from evenhand.findings.found import NO_SPREAD, Bounds, Change
from evenhand.findings.measures import Mean, Measure, Ratio, Share, SumOfRatios
from evenhand.findings.rows import cluster_values, missing_of, missing_parts
from evenhand.findings.rules import ALPHA
from evenhand.findings.totals import SUMS, sums_per_cluster
from evenhand.statistics.clusters import linearized

AFTER = ":after"
_SIDES = ("", AFTER)


def fill_sums(measure: Measure) -> list[pl.Expr]:
    """Sum a cluster's pairs with the missing answers of each run at their smallest and largest. A
    pair counts if each of its two answers is known or missing."""
    name = measure.name
    lost = [pl.col(f"{missing_of(measure)}{side}") for side in _SIDES]
    if not isinstance(measure.statistic, Mean | Share):
        parts = {"m": missing_of(measure)}
        parts |= {f"m{place}": part for place, part in enumerate(missing_parts(measure))}
        return [
            (pl.col(lost) | pl.col(f"{lost}{AFTER}")).sum().cast(pl.Float64).alias(f"{name}:{m}")
            for m, lost in parts.items()
        ]
    values = [pl.col(f"{name}.value{side}") for side in _SIDES]
    counts = [value.is_not_null() | gone for value, gone in zip(values, lost, strict=True)]
    counted = counts[0] & counts[1]
    sums = {"rows": counted.sum(), "m": (counted & (lost[0] | lost[1])).sum()}
    for side, value, gone in zip(_SIDES, values, lost, strict=True):
        sums[f"known{side}"] = pl.when(counted & ~gone).then(value).sum()
        sums[f"lost{side}"] = (counted & gone).sum()
    return [expr.cast(pl.Float64).alias(f"{name}:{part}") for part, expr in sums.items()]


def filled_pair(measure: Measure, frame: pl.DataFrame, cluster: str) -> FilledPair | None:
    """Give both runs' sums per cluster, filled both ways; None where nothing can be filled in."""
    if isinstance(measure.statistic, Ratio | SumOfRatios):
        return _pair_of_ratios(measure, frame, cluster)
    parts = ["rows", "m", *(f"{part}{side}" for side in _SIDES for part in ("known", "lost")), "y"]
    names = [f"{measure.name}:{part}" for part in parts]
    table = frame.group_by(cluster).agg(pl.col(names).sum()).sort(cluster).select(names).to_numpy()
    rows, m, old, old_lost, new, new_lost, difference = table[table[:, 0] > 0].T
    before = Filled.of(measure, old, rows - old_lost, old_lost)
    after = Filled.of(measure, new, rows - new_lost, new_lost)
    return FilledPair(before, after, m, difference)


def sides_of_ratios(
    measure: Measure, frame: pl.DataFrame, cluster: str
) -> list[list[tuple[float, np.ndarray]]]:
    """Give the weights and the sums per cluster of each ratio, before and after."""

    def sums(parts: Sequence[str]) -> np.ndarray:
        return sums_per_cluster(frame, measure.name, parts, cluster).to_numpy()

    if isinstance(measure.statistic, Ratio):
        return [[(1.0, sums([f"{part}{side}" for part in SUMS]))] for side in _SIDES]
    assert isinstance(measure.statistic, SumOfRatios)
    return [
        [
            (part[0], sums([f"{name}{place}{side}" for name in SUMS]))
            for place, part in enumerate(measure.statistic.parts)
        ]
        for side in _SIDES
    ]


def _pair_of_ratios(measure: Measure, frame: pl.DataFrame, cluster: str) -> FilledPair | None:
    """Give linearized numbers per cluster. A missing answer may add to each share that it may
    belong to, above and below the line or below it alone; of any other ratio nothing is known."""
    statistic = measure.statistic
    assert isinstance(statistic, Ratio | SumOfRatios)
    missing = sums_per_cluster(frame, measure.name, ["m"], cluster).to_numpy()[:, 0]
    shares = isinstance(statistic, SumOfRatios) and measure.bounded
    if missing.any() and not shares:
        return None
    scale = statistic.scale if isinstance(statistic, Ratio) else 1.0
    places = range(len(statistic.parts)) if isinstance(statistic, SumOfRatios) else ()
    lost = [sums_per_cluster(frame, measure.name, [f"m{p}"], cluster).to_numpy()[:, 0]
            for p in places]  # fmt: skip
    ratios = sides_of_ratios(measure, frame, cluster)
    carries = np.logical_or.reduce(
        [table[:, 0] > 0 for side in ratios for _, table in side] + [m > 0 for m in lost]
    )
    missing, lost = missing[carries], [m[carries] for m in lost]
    sides: list[Filled] = []
    try:
        for side in ([(w, table[carries]) for w, table in each] for each in ratios):
            low, high = (
                linearized(with_missing(side, lost, best=best), statistic.shift / scale) * scale
                for best in (False, True)
            )
            sides.append(Filled(low, high, np.ones_like(missing), missing))
    except Undefined:
        return None
    old, new = sides
    return FilledPair(old, new, missing, new.low - old.low)


def filled_pair_of_clusters(measure: Measure, rows: pl.DataFrame) -> FilledPair | None:
    """The same of a number that is made of the clusters' own numbers, from their rows."""
    lost = [pl.col(f"{missing_of(measure)}{side}") for side in _SIDES]
    values = [pl.col(f"{measure.name}.value{side}") for side in _SIDES]
    counts = [value.is_not_null() | gone for value, gone in zip(values, lost, strict=True)]
    rows = rows.filter(*counts)
    touched = rows.group_by("cluster").agg((lost[0] | lost[1]).any().cast(pl.Float64).alias("m"))
    m = touched.sort("cluster")["m"].to_numpy()
    if m.any() and not measure.bounded:
        return None
    old, new = (filled_values(measure, rows, side) for side in _SIDES)
    known = rows.filter(~lost[0] & ~lost[1])
    sides = [
        cluster_values(measure, known.select("cluster", value.alias(f"{measure.name}.value")))
        for value in values
    ]
    both = sides[0].join(sides[1], on="cluster", suffix=AFTER).sort("cluster")
    difference = both.select(pl.col(f"value{AFTER}") - pl.col("value")).to_series().to_numpy()
    clusters = touched.sort("cluster")["cluster"].to_list()
    placed = np.zeros(len(clusters))
    placed[np.isin(clusters, both["cluster"].to_list())] = difference
    return FilledPair(old, new, m, placed)


def defended_change(
    change: Change,
    measure: Measure,
    ways: Sequence[FilledPair | None],
    *,
    missing: int,
) -> Change:
    """Test a change: add what is tested, its interval, its limits, p-value and bounds. A number
    without a test, or whose missing answers could be anything, keeps what it has or has none."""
    known = [pair for pair in ways if pair is not None and len(pair.missing)]
    lost = Bounds(missing=missing) if missing else None
    if change.difference is None:
        return replace(change, bounds=lost)
    effect = _effect(change, measure) if ways else change.effect
    if len(known) < len(ways) or not known:
        untested = replace(change, effect=effect, bounds=lost)
        return untested if not missing else replace(untested, low=None, high=None, limits=None)
    bounds = filled.bounds_of_change(measure, known[0])
    if missing and not measure.bounded:
        return replace(change, effect=effect, bounds=bounds)
    test = ChangeTest.of(measure, known)
    if change.undefined == NO_SPREAD and not measure.bounded:
        return replace(change, effect=effect, p=test.p, bounds=bounds)
    low, high = test.interval(ALPHA)
    return replace(change, effect=effect, low=low, high=high, p=test.p, bounds=bounds, test=test,
                   limits=test.limits(ALPHA / 2))  # fmt: skip


def _effect(change: Change, measure: Measure) -> float:
    """Give the change that is tested: of the distance from the unbiased value, where there is
    one."""
    assert change.difference is not None
    center = measure.center
    if center is None or change.before is None or change.after is None:
        return change.difference
    return abs(change.after - center) - abs(change.before - center)
