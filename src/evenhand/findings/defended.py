"""An estimate is defended against its missing answers: what they could change, and what is shown
all the same."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import polars as pl

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
    if not isinstance(statistic, Mean | Share):
        return Filling(missing, ends=_ends(measure, frame, missing) if missing else None)
    parts = [f"{name}:{part}" for part in ("y", "n", "m")]
    table = frame.group_by(cluster).agg(pl.col(parts).sum()).sort(cluster).select(parts).to_numpy()
    y, n, m = table[(table[:, 1] > 0) | (table[:, 2] > 0)].T
    return Filling(missing, Filled.of(measure, y, n, m), y - (measure.null or 0.0) * n)


def _ends(measure: Measure, frame: pl.DataFrame, missing: int) -> tuple[float, float] | None:
    """Give the ends of a sum of shares: a missing answer may be above and below the line,
    or below it alone, in each of them."""
    statistic = measure.statistic
    if not isinstance(statistic, SumOfRatios) or not measure.bounded:
        return None  # what lies below the line of any other ratio may weigh anything
    low = high = statistic.shift
    for place, (weight, _, _) in enumerate(statistic.parts):
        y, x = (float(frame[f"{measure.name}:{part}{place}"].sum()) for part in ("y", "x"))
        ends = sorted(weight * (y + more) / (x + missing) for more in (0, missing))
        low, high = low + ends[0], high + ends[1]
    return max(low, measure.within[0]), min(high, measure.within[1])


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
    found: Estimate, measure: Measure, ways: Sequence[Filling], reach: float | None
) -> Estimate:
    """Add what the missing answers could change, and the p-value against "no bias". Of several ways
    to cluster, the largest p-value counts."""
    known = [one.sums for one in ways if one.sums is not None and len(one.sums.rows) > 1]
    apart = ways[0].apart
    if not known or apart is None:
        return _by_ends(found, measure, ways[0])
    bounds = filled.bounds(measure, known[0], apart)
    if measure.null is None or found.value is None:
        return replace(found, bounds=bounds)
    if measure.one_sided and found.high is not None:  # what lies below cannot be excluded
        found = replace(found, high=max(found.high, measure.null))
    small = [filled.p_of_small_bias(measure, one, reach) for one in known if reach is not None]
    return replace(
        found,
        p=max(filled.p_of_bias(measure, one) for one in known),
        p_small=max(small, default=None),
        bounds=bounds,
    )


def _by_ends(found: Estimate, measure: Measure, way: Filling) -> Estimate:
    """Of a number that is no mean: what is shown holds only if its ends lie on one side."""
    if not way.missing:
        return found
    low, high = way.ends or (None, None)
    none = measure.null
    sure = low is not None and high is not None and none is not None and not low <= none <= high
    p = found.p if sure or found.p is None else 1.0
    return replace(found, p=p, bounds=Bounds(missing=way.missing, low=low, high=high))
