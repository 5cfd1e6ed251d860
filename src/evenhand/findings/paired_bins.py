"""Where the clusters of a comparison lie, each with its number before and after: for a picture of
pairs, which must not grow with the run."""

import math
from dataclasses import dataclass

import polars as pl

from evenhand.findings.measures import Measure

_CELLS = 20  # our choice, on each side: dots of 11 pixels stand beside each other in 260


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedBin:
    """A place stands for clusters that lie near each other: the means of their numbers before and
    after. All of them rose, or all fell, or all stayed as they were."""

    before: float
    after: float
    clusters: int


def gathered(measure: Measure, pairs: pl.DataFrame) -> tuple[PairedBin, ...]:
    """Gather clusters, with their numbers in columns `before` and `after`, into at most so many
    places: three in each cell of a grid over what the measure can be, or over what was seen where
    it has no ends."""
    low, high = measure.range
    if not measure.bounded and not pairs.is_empty():
        both = pl.concat([pairs["before"], pairs["after"]])
        low, high = both.min(), both.max()  # type: ignore[assignment]
    width = (high - low) / _CELLS
    if not (math.isfinite(width) and width > 0):
        width = 1.0  # every cluster has the same number
    cell = ((pl.col("before", "after") - low) / width).floor().clip(0, _CELLS - 1).cast(pl.Int32)
    moved = (pl.col("after") - pl.col("before")).sign().cast(pl.Int8)
    bins = (
        pairs.with_columns(cell.name.suffix(" cell"), moved.alias("moved"))
        .sort("before", "after")  # the same last digit, in whatever order parts were committed
        .group_by("before cell", "after cell", "moved")
        .agg(pl.col("before", "after").mean(), pl.len().alias("clusters"))
        .sort("before", "after")
    )
    rows = bins.select("before", "after", "clusters").iter_rows(named=True)
    return tuple(PairedBin(**row) for row in rows)
