"""An instrument of three measures over made-up outcomes, and random outcomes for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl
from hypothesis import strategies as st

from evenhand.findings.cluster_statistics import MeanOfClusters, OfTotals
from evenhand.findings.measures import Grouping, Measure
from evenhand.findings.scoring import SCORED, ScoringSpec
from evenhand.findings.summed_statistics import Mean, Ratio
from evenhand.statistics._shared import FloatArray


def _odds(totals: FloatArray) -> FloatArray:
    odds: FloatArray = (totals[:, 0] + 1) / (totals[:, 1] + 1)
    return odds


class Made(ScoringSpec):
    """Every kind of statistic over one number per row."""

    name = "made"
    title = "Made"
    clusters = "clusters"
    columns = ("choice",)
    facts: ClassVar = {}
    measures = (
        Measure(name="right", label="right", statistic=Mean(pl.col("y")), better="higher",
                role="primary", margin=0.02, within=(0, 1), counts_flips=True),
        Measure(name="half", label="half", statistic=Mean(pl.col("y")), where=pl.col("x") > 1,
                better="lower", role="primary", within=(0, 1)),
        Measure(name="rate", label="rate", statistic=Ratio(pl.col("y"), pl.col("x"))),
        Measure(name="most", label="most", statistic=MeanOfClusters(pl.col("y"), pl.Expr.max)),
        Measure(name="odds", label="odds",
                statistic=OfTotals({"y": pl.col("y"), "x": pl.col("x")}, _odds)),
    )  # fmt: skip
    groups = (Grouping(column="kind", measures=("right",)),)
    masked = ("right", "half")  # and not the others
    harm = "half"
    utility = "right"


@dataclass(frozen=True)
class Row:
    """What both runs have of an item: its cluster, group and mask, and each side's value."""

    cluster: int
    kind: str
    masked: bool
    x: int
    before: float | None
    after: float | None


_value = st.one_of(st.none(), st.sampled_from([0.0, 1.0]))
rows = st.lists(
    st.builds(
        Row,
        cluster=st.integers(0, 6),
        kind=st.sampled_from(["a", "b"]),
        masked=st.sampled_from([False, False, False, True]),
        x=st.integers(1, 3),
        before=_value,
        after=_value,
    ),
    min_size=1,
    max_size=40,
)


def outcomes(drawn: Sequence[Row], side: str) -> pl.DataFrame:
    """The outcomes of one side, one row per item."""
    values = [getattr(row, side) for row in drawn]
    return pl.DataFrame(
        {
            "item_id": [f"item {number}" for number in range(len(drawn))],
            "cluster": [f"cluster {row.cluster}" for row in drawn],
            "kind": [row.kind for row in drawn],
            "masked": [row.masked for row in drawn],
            "state": [SCORED if value is not None else "missing" for value in values],
            "x": pl.Series([row.x for row in drawn], dtype=pl.Int64),
            "y": pl.Series(values, dtype=pl.Float64),
        }
    )


def batches(frame: pl.DataFrame, order: Sequence[int], size: int) -> Iterator[pl.DataFrame]:
    """The rows in this order, so many at a time."""
    shuffled = frame[list(order)]
    yield from shuffled.iter_slices(size)
