"""An estimate is defended against its missing answers: what they could change, and what is shown
all the same."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import polars as pl

from evenhand.errors import Undefined
from evenhand.findings import filled
from evenhand.findings.filled import Filled
from evenhand.findings.found import Bounds, Estimate
from evenhand.findings.measures import (
    Mean,
    MeanOfClusters,
    Measure,
    OfTotals,
    Share,
    SumOfRatios,
)
from evenhand.findings.rows import cluster_values, missing_of, with_end
from evenhand.statistics.clusters import linearized

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Filling:
    """What is known of a run with its missing answers filled both ways: sums per cluster where the
    number is a mean of them, else only the ends of the number itself."""

    missing: int
    sums: Filled | None = None
    apart: np.ndarray | None = None  # of the answers that are there, from "no bias"
    ends: tuple[float, float] | None = None


def filled_sums(measure: Measure, frame: pl.DataFrame, cluster: str) -> Filling:
    """Fill a mean, a share or a ratio from its sums per cluster."""
    name, statistic = measure.name, measure.statistic
    missing = int(frame[f"{name}:m"].sum())
    if isinstance(statistic, SumOfRatios) and measure.bounded:
        return _filled_shares(measure, statistic, frame, cluster, missing)
    if not isinstance(statistic, Mean | Share):
        return Filling(missing)
    parts = [f"{name}:{part}" for part in ("y", "n", "m")]
    table = frame.group_by(cluster).agg(pl.col(parts).sum()).sort(cluster).select(parts).to_numpy()
    y, n, m = table[(table[:, 1] > 0) | (table[:, 2] > 0)].T
    return Filling(missing, Filled.of(measure, y, n, m), y - (measure.null or 0.0) * n)


def _filled_shares(
    measure: Measure, statistic: SumOfRatios, frame: pl.DataFrame, cluster: str, missing: int
) -> Filling:
    """Fill a sum of shares by its linearized numbers per cluster."""

    def sums(parts: Sequence[str]) -> np.ndarray:
        names = [f"{measure.name}:{part}" for part in parts]
        table = frame.group_by(cluster).agg(pl.col(names).sum()).sort(cluster)
        return table.select(names).to_numpy()

    places = range(len(statistic.parts))
    side = [(part[0], sums([f"{name}{place}" for name in ("n", "y", "x", "ay", "ax")]))
            for place, part in enumerate(statistic.parts)]  # fmt: skip
    lost = [sums([f"m{place}"])[:, 0] for place in places]
    carries = np.logical_or.reduce([table[:, 0] > 0 for _, table in side] + [m > 0 for m in lost])
    side, lost = [(w, table[carries]) for w, table in side], [m[carries] for m in lost]
    try:
        low, high = (linearized(with_missing(side, lost, best=best), statistic.shift)
                     for best in (False, True))  # fmt: skip
        known = linearized(side, statistic.shift)
    except Undefined:
        return Filling(missing)
    rows = np.ones_like(low)
    filled_both = Filled(low, high, rows, sums(["m"])[carries, 0])
    return Filling(missing, filled_both, known - (measure.null or 0.0))


def with_missing(
    side: Sequence[tuple[float, np.ndarray]], lost: Sequence[np.ndarray], *, best: bool
) -> list[tuple[float, np.ndarray]]:
    """Add the missing answers to weighted shares so that their sum is largest, or smallest.

    Args:
        side: The weight of each share, with n, Σy, Σx, Σ|y|, Σ|x| of each cluster.
        lost: How many missing answers of each cluster may belong to each share; empty for none.
        best: Whether the sum is to be the largest.
    """
    filled = []
    for place, (weight, table) in enumerate(side):
        more = lost[place] if lost else np.zeros(len(table))
        above = more if (weight > 0) == best else np.zeros(len(table))
        filled.append((weight, table + np.column_stack([more, above, more, above, more])))
    return filled


def filled_clusters(measure: Measure, rows: pl.DataFrame) -> Filling:
    """Fill a number that is made of the clusters' own numbers, from their rows."""
    missing = int(rows[missing_of(measure)].sum())
    if isinstance(measure.statistic, OfTotals) and missing:
        return Filling(missing, ends=_corners(measure, measure.statistic, rows, missing))
    if not isinstance(measure.statistic, MeanOfClusters) or (missing and not measure.bounded):
        return Filling(missing)
    found = filled_values(measure, rows)
    lost = rows.group_by("cluster").agg(pl.col(missing_of(measure)).any()).sort("cluster")
    known = _placed(cluster_values(measure, rows), lost).filter(
        pl.col("value").is_not_null() | pl.col(missing_of(measure))
    )
    apart = (known["value"] - (measure.null or 0.0)).fill_null(0.0).to_numpy()
    return Filling(missing, found, apart)


def _corners(
    measure: Measure, statistic: OfTotals, rows: pl.DataFrame, missing: int
) -> tuple[float, float] | None:
    """Give the ends of a function of totals: its values with all missing rows at the same end of
    each of their numbers, over all such choices."""
    if statistic.if_missing is None:
        return None
    known = rows.select([f"{measure.name}.{name}" for name in statistic.rows]).drop_nulls()
    sums = known.cast(pl.Float64).sum().to_numpy()[0]
    ways = np.array(list(product(*(statistic.if_missing[name] for name in statistic.rows))))
    values = statistic.value(sums + missing * ways)
    return float(values.min()), float(values.max())


def filled_values(measure: Measure, rows: pl.DataFrame, side: str = "") -> Filled:
    """Give each cluster's number with its missing rows at their smallest and at their largest.
    Where a row's value is no number (a text, say), a missing one may give the cluster any."""
    column, lost = f"{measure.name}.value", pl.col(f"{missing_of(measure)}{side}")
    touched = rows.group_by("cluster").agg(lost.any().cast(pl.Float64).alias("m")).sort("cluster")
    made = []
    for end in measure.range:
        full = rows.with_columns(pl.col(f"{column}{side}").alias(column))
        plain = full.schema[column]
        if plain.is_numeric() or plain == pl.Boolean:
            full = with_end(measure, rows, end, side)
            full = full.select("cluster", pl.col(f"{column}{side}").alias(column))
            made.append(_placed(cluster_values(measure, full), touched))
            continue
        values = _placed(cluster_values(measure, full.select("cluster", column)), touched)
        made.append(
            values.with_columns(value=pl.when(pl.col("m") > 0).then(end).otherwise("value"))
        )
    low, high = (one.drop_nulls("value")["value"].to_numpy() for one in made)
    m = made[0].drop_nulls("value")["m"].to_numpy()
    return Filled(np.minimum(low, high), np.maximum(low, high), np.ones_like(low), m)


def _placed(values: pl.DataFrame, touched: pl.DataFrame) -> pl.DataFrame:
    return touched.join(values, on="cluster", how="left", maintain_order="left")


def defended(
    found: Estimate,
    measure: Measure,
    ways: Sequence[Filling],
    reach: float | None,
    error: float = ALPHA,
) -> Estimate:
    """Add what the missing answers could change, and the p-value against "no bias". Of several ways
    to cluster, the largest p-value counts. The interval of a bounded number is the inversion of the
    test, at this error, so that it holds "no bias" exactly where none is shown."""
    known, apart = _known(ways), ways[0].apart
    if not known or apart is None:
        return _by_ends(found, measure, ways[0])
    bounds = filled.bounds(measure, known[0], apart)
    if measure.null is None or found.value is None:
        return replace(found, bounds=bounds)
    small = [filled.p_of_small_bias(measure, one, reach) for one in known if reach is not None]
    p = max(filled.p_of_bias(measure, one) for one in known)
    return replace(
        with_ends(replace(found, p=p), measure, known, error),
        p_small=max(small, default=None),
        bounds=bounds,
    )


def with_ends(found: Estimate, measure: Measure, known: Sequence[Filled], error: float) -> Estimate:
    """Give a bounded number the interval of its own test: over several ways to cluster, all that
    any of them holds."""
    if not measure.bounded or measure.null is None or found.p is None:
        return found
    ends = [filled.interval(measure, one, error) for one in known]
    joined = min(low for low, _ in ends), max(high for _, high in ends)
    low, high = _agreeing(joined, measure.null, shown=found.p <= error)
    return replace(found, low=low, high=high)


def p_of_defended(found: Estimate, measure: Measure, ways: Sequence[Filling]) -> float | None:
    """Give the p-value that `defended` adds, without the interval, which takes longer."""
    known = _known(ways)
    if not known or ways[0].apart is None:
        return _by_ends(found, measure, ways[0]).p
    if measure.null is None or found.value is None:
        return found.p
    return max(filled.p_of_bias(measure, one) for one in known)


def _known(ways: Sequence[Filling]) -> list[Filled]:
    return [one.sums for one in ways if one.sums is not None and len(one.sums.rows) > 1]


def _agreeing(ends: tuple[float, float], null: float, *, shown: bool) -> tuple[float, float]:
    """Give the ends of an interval that holds "no bias" where none is shown, and else not: an end
    is found to seven digits, so that it could lie on the other side of a p-value near the error."""
    low, high = ends
    if not shown:
        return min(low, null), max(high, null)
    if high - null > null - low:
        return max(low, math.nextafter(null, math.inf)), high
    return low, min(high, math.nextafter(null, -math.inf))


def _by_ends(found: Estimate, measure: Measure, way: Filling) -> Estimate:
    """Of a number that is no mean: what is shown holds only if its ends lie on one side."""
    if not way.missing:
        return found
    low, high = way.ends or (None, None)
    none = measure.null
    sure = low is not None and high is not None and none is not None and not low <= none <= high
    p = found.p if sure or found.p is None else 1.0
    return replace(found, p=p, bounds=Bounds(missing=way.missing, low=low, high=high))
