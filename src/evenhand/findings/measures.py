"""A measure declares one number that an instrument computes from its outcomes.

An outcome is one row per item. A measure says which number each row contributes, how rows become
one number, what a good value is, and what the number may lose in a comparison. Everything else
(interval, p-value, report, comparison, frontier) follows from the declaration.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl

if TYPE_CHECKING:
    from evenhand.findings.estimates import Change, Estimate
    from evenhand.findings.worst_case import WorstCasePair, WorstCaseRun

AFTER = ":after"  # ends the columns of the second of two joined runs
Clusterings = Sequence[str]
Better = Literal["lower", "higher", "zero", "fifty", "none"]
Role = Literal["primary", "guardrail", "secondary"]
Unit = Literal["share", "percent", "points", "nats", "words"]


class Statistic(ABC):
    """A statistic turns the values of rows into one number, with all that a finding needs of it.

    A report, a comparison, a gate, a plan and early stopping ask a statistic through these methods
    alone, so that a new kind of statistic is one class. A statistic reads a table of one run or of
    two: its columns are those of `run_sums` or `pair_sums`, one row per cluster, or, where
    `summed` is false, the values of all rows.
    """

    summed: ClassVar[bool] = False  # sums per cluster are all it needs of the rows
    testable: ClassVar[bool] = False  # a change of it has a test, so that a gate can judge it
    is_mean: ClassVar[bool] = False  # it is the mean of one number per row, or per cluster
    counts_events: ClassVar[bool] = False  # a row is an event or none
    default_range: ClassVar[tuple[float, float] | None] = None  # where a measure declares none

    @property
    def row_value(self) -> pl.Expr | None:
        """The number of a row, where the statistic is the mean of these numbers; else None."""
        return None

    @property
    def averages(self) -> bool:
        """Whether it may be computed from the means of several runs, item by item."""
        return True

    @abstractmethod
    def columns(self) -> Mapping[str, pl.Expr]:
        """Return the numbers of a row that it needs, by name."""

    def denominators(self) -> Sequence[pl.Expr]:
        """Return what a row counts for in each share, where a missing row may belong to some shares
        and not to others."""
        return ()

    def run_sums(self, measure: "Measure") -> Sequence[pl.Expr]:
        """Return what is added up per cluster of one run."""
        del measure
        return ()

    def pair_sums(self, measure: "Measure") -> Sequence[pl.Expr]:
        """Return what is added up per cluster of two joined runs."""
        del measure
        return ()

    @abstractmethod
    def estimate(self, measure: "Measure", table: pl.DataFrame, by: Clusterings) -> "Estimate":
        """Estimate the number from the answers that one run has.

        Args:
            measure: The measure that the statistic belongs to.
            table: The run's rows or sums.
            by: The columns that name the clusters. Of several the widest interval counts.
        """

    @abstractmethod
    def fillings(
        self, measure: "Measure", table: pl.DataFrame, by: Clusterings
    ) -> Sequence["WorstCaseRun"]:
        """Fill the missing answers of one run both ways, for each way to cluster it.

        Args:
            measure: The metric that the statistic belongs to.
            table: The run's rows or sums.
            by: The columns that name the clusters.

        Returns:
            One entry per column of `by`.
        """

    @abstractmethod
    def change(self, measure: "Measure", table: pl.DataFrame, by: Clusterings) -> "Change":
        """Estimate the change between two runs, before it is tested.

        Args:
            measure: The metric that the statistic belongs to.
            table: The rows or sums of both runs, joined.
            by: The columns that name the clusters.
        """

    def filled_pairs(
        self, measure: "Measure", table: pl.DataFrame, by: Clusterings
    ) -> Sequence["WorstCasePair | None"]:
        """Fill the missing answers of two runs both ways, for each way to cluster them.

        Args:
            measure: The metric that the statistic belongs to.
            table: The rows or sums of both runs, joined.
            by: The columns that name the clusters.

        Returns:
            One entry per column of `by`; empty where the change has no test.
        """
        del measure, table, by
        return ()

    def missing_pairs(self, measure: "Measure", table: pl.DataFrame) -> int:
        """Count the pairs of which an answer is missing."""
        lost = [pl.col(f"{measure.name}.missing{side}") for side in ("", AFTER)]
        return int(table.select((lost[0] | lost[1]).sum()).item())

    def cluster_positions(self, measure: "Measure", table: pl.DataFrame) -> pl.DataFrame | None:
        """Return columns `before` and `after`, the number of each cluster; None where clusters have
        none."""
        del measure, table
        return None

    def item_values(self, measure: "Measure", rows: pl.DataFrame) -> pl.DataFrame:
        """Return columns item_id, cluster and value, of what its number is the mean of."""
        return rows.rename({f"{measure.name}.value": "value"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditBound:
    """A bound says which values of a measure an audit allows, fixed before looking. A measure that
    has one is a check of the audit."""

    at_least: float = -math.inf
    at_most: float = math.inf
    above: float = -math.inf  # as `at_least`, without the value itself
    required: bool = True  # the audit passes only if the value is shown to be allowed
    if_any: bool = False  # not required where the items hold no case of it
    # Columns of groupings: each of their values is held to it, in place of the number of all rows.
    over: tuple[str, ...] = ()
    # Where every cluster gave the same value and the number has no largest one, there is no
    # interval: the value itself is then held to the bound.
    exact: bool = False


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
    allowed: AuditBound | None = None  # fixed before looking: what an audit lets it be
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
        declared = math.isfinite(self.within[1])
        return self.within if declared else self.statistic.default_range or self.within

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
        filtered = {name: expr if self.where is None else pl.when(self.where).then(expr)
                    for name, expr in self.statistic.columns().items()}  # fmt: skip
        return {f"{self.name}.{name}": expr for name, expr in filtered.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSeries:
    """A series is the same number at several points in order, such as a contrast turn by turn. Each
    point has a measure of its own."""

    name: str
    label: str
    axis: str  # what the points are: "turn"
    points: tuple[tuple[int, str], ...]  # each with the name of its measure


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
        declared = [value for value in self.order if value in present]
        return [*declared, *(value for value in present if value not in declared)]


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
