"""A measure declares one number that an instrument computes from its outcomes.

An outcome is one row per item. A measure says which number each row contributes, how rows become
one number, what a good value is, and what the number may lose in a comparison. Everything else
(interval, p-value, report, comparison, frontier) follows from the declaration.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

Totals = NDArray[np.float64]
Better = Literal["lower", "higher", "zero", "fifty", "none"]
Role = Literal["primary", "guardrail", "secondary"]
Unit = Literal["share", "percent", "points", "nats", "words"]


@dataclass(frozen=True, slots=True)
class Mean:
    """The statistic is the mean over rows; a row whose value is null is left out."""

    value: pl.Expr


@dataclass(frozen=True, slots=True)
class Share:
    """The statistic is the mean of a yes-or-no value, or of one that is 1, 0 or −1 where `within`
    begins below 0: a share, or one share minus another. Its interval holds for rare events and few
    clusters too (`statistics.shares`)."""

    value: pl.Expr


@dataclass(frozen=True, slots=True)
class Ratio:
    """The statistic is scale · Σnumerator/Σdenominator + shift, over the rows where neither is
    null."""

    numerator: pl.Expr
    denominator: pl.Expr
    scale: float = 1.0
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class SumOfRatios:
    """The statistic is shift + Σ weight · (Σnumerator/Σdenominator), each ratio over the rows where
    neither of its two is null: a share that is weighted by strata, or one share minus another.

    >>> SumOfRatios(((1.0, right & aligned, aligned), (-1.0, right & ~aligned, ~aligned)))
    """

    parts: tuple[tuple[float, pl.Expr, pl.Expr], ...]  # weight, numerator, denominator
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class MeanOfClusters:
    """The statistic is the mean over clusters of one number per cluster, such as the maximum of its
    rows.

    `over` turns the column of a cluster's values into that number. All rows of a cluster are
    needed at once, so the values of the whole run are held in memory.
    """

    value: pl.Expr
    over: Callable[[pl.Expr], pl.Expr] = pl.Expr.mean


@dataclass(frozen=True, slots=True)
class ShareOfClusters(MeanOfClusters):
    """The statistic is the share of clusters for which `over` says yes. Its interval is that of a
    share."""


@dataclass(frozen=True, slots=True)
class OfMeans:
    """The statistic is any function of means over clusters, each of the means of their rows. Its
    interval is what the intervals of the means allow, so that it may have a kink.

    `rows` are numbers per row, and `value` maps their means, one vector per row, to one number
    each.
    """

    rows: Mapping[str, pl.Expr]
    value: Callable[[Totals], Totals]


@dataclass(frozen=True, slots=True)
class OfTotals:
    """The statistic is any function of totals over clusters; its interval comes from resampling
    clusters.

    `rows` are numbers per row, `over` the numbers per cluster that are made of them (their sums
    where it is empty), and `value` maps totals, one resample per row, to one number each.
    """

    rows: Mapping[str, pl.Expr]
    value: Callable[[Totals], Totals]
    over: Mapping[str, pl.Expr] | None = None
    # What each number of a missing row may be at least and at most, where `value` is least and
    # largest with all missing rows alike at such ends; without it they may give any number.
    if_missing: Mapping[str, tuple[float, float]] | None = None


Statistic = Mean | Share | Ratio | SumOfRatios | MeanOfClusters | OfMeans | OfTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure is one number of a report: what it is, how it is computed, and what a good value
    is.

    >>> Measure(name="exact", label="exact match", statistic=Mean(pl.col("exact")), better="higher")
    """

    name: str
    label: str
    statistic: Statistic
    where: pl.Expr | None = None  # the rows that it is about; all without it
    better: Better = "none"
    # Its expectation is at "no bias" or above, never below: only a value above it shows a bias.
    one_sided: bool = False
    role: Role = "secondary"
    margin: float | None = None  # fixed before looking: what a comparison may lose of it
    within: tuple[float, float] = (-math.inf, math.inf)  # what it can be, for one row too
    unit: Unit = "share"
    counts_flips: bool = False  # a comparison counts rows that became better, and worse
    source: str = ""  # paper and section
    absent: str = ""  # why it has no value where no row has one, if there is a common reason
    lost: pl.Expr | None = None  # rows that have a score and whose value was lost all the same
    symmetric: bool = False  # without a bias its clusters are as often above it as below, by design

    @property
    def null(self) -> float | None:
        """The value that says "no bias", where the measure has one."""
        return {"zero": 0.0, "fifty": 50.0}.get(self.better)

    @property
    def center(self) -> float | None:
        """The unbiased value that a change is measured from by its distance; None where lower is
        better, or higher, and nothing else."""
        return None if self.one_sided else self.null

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest value that it can take, for one row too: what a missing one
        may be. A share for which nothing is declared goes from 0 to 1."""
        if isinstance(self.statistic, Share) and not math.isfinite(self.within[1]):
            return 0.0, 1.0
        return self.within

    @property
    def bounded(self) -> bool:
        """Whether a missing value can only lie between two known ones."""
        return all(map(math.isfinite, self.range))

    @property
    def signed(self) -> bool:
        """A plus sign belongs before a positive value."""
        return self.better == "zero" and self.within[0] < 0

    def columns(self) -> dict[str, pl.Expr]:
        """Give the numbers per row that the statistic needs, each under a name of its own."""
        match self.statistic:
            case Mean(value) | Share(value):
                parts = {"value": value.cast(pl.Float64)}
            case MeanOfClusters(value):
                parts = {"value": value}
            case Ratio(numerator, denominator):
                parts = {"y": numerator.cast(pl.Float64), "x": denominator.cast(pl.Float64)}
            case SumOfRatios(ratios):
                parts = {f"{name}{place}": expr.cast(pl.Float64)
                         for place, (_, y, x) in enumerate(ratios)
                         for name, expr in (("y", y), ("x", x))}  # fmt: skip
            case OfMeans(rows) | OfTotals(rows):
                parts = dict(rows)
        kept = {name: expr if self.where is None else pl.when(self.where).then(expr)
                for name, expr in parts.items()}  # fmt: skip
        return {f"{self.name}.{name}": expr for name, expr in kept.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """A grouping names a column of the outcomes by whose values a report is also given, such as the
    category."""

    column: str
    measures: tuple[str, ...]  # which of the measures, by name
    says_whom: bool = True  # a verdict names its values: whom a bias is against
    compared: bool = True  # a comparison looks for what got worse in each of its values
    order: tuple[str, ...] = ()  # of the values; by name without it

    def ordered(self, present: Sequence[str]) -> list[str]:
        """Give the values that are there in the declared order, and after them any others."""
        known = [value for value in self.order if value in present]
        return [*known, *(value for value in present if value not in known)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedSpread:
    """A paired spread says how much a paired change of one measure varies, as it was measured: what
    `plan` needs before anybody has run anything."""

    measure: str
    sd: float  # of an item's change from one run to the other
    icc: float  # the correlation of that change between rows of a cluster
    per_cluster: int  # rows that a cluster has in the default sample
    most_per_cluster: int  # rows that nearly every cluster has in all the data
    items_per_row: int = 1  # items that are asked for each row that the measure is about
    rows: str = "items"  # what such a row is called
    samples: Mapping[str, tuple[int, float]]  # known samples: rows, and how many of them a row
    # meets in its cluster, Σm²/Σm over clusters of m rows
