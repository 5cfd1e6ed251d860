"""Outcomes become totals per cluster, and totals become estimates.

A mean or a ratio and its interval need nothing of a cluster but its sums, so a run of any length
is read once, batch by batch, and only the sums are kept. The other statistics need all rows of a
cluster at once: of those the row values are kept.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from evenhand.core.errors import Undefined
from evenhand.findings.decision_rules import ALPHA, adjusted_estimates
from evenhand.findings.estimates import Coverage, Estimate
from evenhand.findings.measures import Grouping, Measure
from evenhand.findings.scoring import (
    MASKED,
    MISSING,
    SCORED,
    ScoringSpec,
    keys_of,
    missing_of,
    row_values,
    rows_of,
)
from evenhand.findings.worst_case import WorstCaseRun, defended, p_of_defended
from evenhand.statistics.clusters import NO_ROWS
from evenhand.statistics.multiplicity import holm_errors


class ScoreStates:
    """How much of what was asked could be scored: states of rows are counted batch by batch."""

    def __init__(self, instrument: ScoringSpec, side: str = "") -> None:
        self._instrument, self._side = instrument, side
        self._every: Counter[str] = Counter()
        self._by: dict[str, Counter[str]] = {}

    def add(self, rows: pl.DataFrame) -> None:
        """Count rows: all of them, by the column that the instrument names, and of each measure
        that can lack a value even where the score exists those that it is about."""
        state, column = f"state{self._side}", self._instrument.covered_by
        self._every.update(dict(rows[state].value_counts().iter_rows()))
        if column is not None:
            for value, status, n in rows.group_by(column, state).len().iter_rows():
                self._by.setdefault(str(value), Counter())[status] += n
        for measure in self._instrument.measures:
            if measure.lost is None:
                continue
            lost = pl.col(f"{missing_of(measure)}{self._side}")
            values = [pl.col(f"{name}{self._side}").is_not_null() for name in measure.columns()]
            about = pl.any_horizontal(*values) | lost
            n, missing = rows.select(about.sum(), lost.sum().alias("lost")).row(0)
            if n:
                states = Counter({SCORED: n - missing, MISSING: missing})
                self._by.setdefault(measure.label, Counter()).update(+states)

    @property
    def names(self) -> set[str]:
        return set(self._by)

    def coverage(self, of: str | None = None) -> Coverage:
        """Give how many rows have a score, and how many have none for each reason: of all, or of
        one value of the column, or one measure."""
        states = self._every if of is None else self._by.get(of, Counter())
        reasons = {state: n for state, n in sorted(states.items()) if state != SCORED}
        return Coverage(n=states.total(), scored=states[SCORED], by_reason=reasons)


class ClusterTotals:
    """Common to the totals of one run and of two: the sums per cluster of the statistics that need
    no more, and the rows of the others."""

    nothing = "the run has no finished item yet"

    def __init__(self, instrument: ScoringSpec, groups: Sequence[Grouping] | None = None) -> None:
        self._instrument = instrument
        self._keys = keys_of(instrument, groups)
        self._clusterings = ("cluster", *instrument.also_clusters)
        self._streamed = [m for m in instrument.measures if m.statistic.summed]
        self._held_measures = [m for m in instrument.measures if m not in self._streamed]
        self._sums: pl.DataFrame | None = None
        self._held: list[pl.DataFrame] = []

    def _add_up(
        self, rows: pl.DataFrame, sums: Iterable[pl.Expr], sides: Sequence[str] = ("",)
    ) -> None:
        total = rows.group_by(self._keys, maintain_order=True).agg(
            pl.len().cast(pl.Float64).alias("rows"), *sums
        )
        if self._sums is not None:
            both = pl.concat([self._sums, total]).group_by(self._keys, maintain_order=True)
            total = both.agg(pl.exclude(self._keys).sum())
        self._sums = total
        names = [name for m in self._held_measures for name in (*m.columns(), missing_of(m))]
        if names:
            columns = (f"{name}{side}" for side in sides for name in names)
            self._held.append(rows.select(*self._keys, *columns))

    def _table(self, where: Mapping[str, str], measure: Measure | None = None) -> pl.DataFrame:
        """Return the sums, or else the rows, that a measure is computed from."""
        frame = self._sums
        if measure is not None and not measure.statistic.summed:
            frame = pl.concat(self._held) if self._held else None
        if frame is None:
            raise Undefined(self.nothing)
        return frame.filter(rows_of(self._instrument, measure, where))


class RunTotals(ClusterTotals):
    """The totals hold all that a report needs of a run's outcomes, added up batch by batch."""

    def __init__(self, instrument: ScoringSpec) -> None:
        super().__init__(instrument)
        self._states = ScoreStates(instrument)
        self._tallies: list[pl.DataFrame] = []
        self.rows = 0
        self.masked_rows = 0

    @classmethod
    def of(cls, instrument: ScoringSpec, batches: Iterable[pl.DataFrame]) -> "RunTotals":
        totals = cls(instrument)
        for outcomes in batches:
            totals.add(outcomes)
        return totals

    def add(self, outcomes: pl.DataFrame) -> None:
        rows = row_values(outcomes, self._instrument)
        self.rows += len(rows)
        self.masked_rows += int(rows[MASKED].sum())
        self._states.add(rows)
        if self._instrument.tallied:
            self._tallies.append(outcomes.group_by(self._instrument.tallied).len())
        self._add_up(rows, (sums for m in self._streamed for sums in m.statistic.run_sums(m)))

    def coverage(self) -> Coverage:
        return self._states.coverage()

    def coverage_by(self) -> dict[str, Coverage]:
        """How much was scored for each value of the column that the instrument names, and of each
        measure that can lack a value even where the score exists."""
        return {name: self._states.coverage(name) for name in sorted(self._states.names)}

    def tally(self) -> pl.DataFrame:
        """Give the tallied columns and `len`, how often each combination of theirs was seen."""
        if not self._tallies:
            return pl.DataFrame()
        return pl.concat(self._tallies).group_by(self._instrument.tallied).agg(pl.col("len").sum())

    def sums(self) -> dict[str, tuple[int, float]]:
        """Give the number of rows and their sum for each mean and share."""
        totals = {}
        for measure in self._streamed:
            if measure.statistic.row_value is not None:
                frame, name = self._table({}, measure), measure.name
                totals[name] = (int(frame[f"{name}:n"].sum()), float(frame[f"{name}:y"].sum()))
        return totals

    def values_of(self, column: str) -> list[str]:
        """List the values of a grouping, by name."""
        if self._sums is None:
            return []
        return sorted(self._sums[column].drop_nulls().unique().to_list())

    def clusters(self) -> int:
        """Count the clusters that were seen, scored or not."""
        return self._table({})["cluster"].n_unique()

    def rows_in(self, column: str, value: str) -> int:
        """Count the rows of a group, scored or not."""
        return int(self._table({column: value})["rows"].sum())

    def estimate(
        self, measure: Measure, reach: float | None = None, error: float = ALPHA, /, **where: str
    ) -> Estimate:
        """Estimate the measure over all its rows, or over those of one group. With a `reach`, it is
        also tested that the number is nearer than that to "no bias". `error` is the share of cases
        in which the interval of a bounded number with such a value may miss it."""
        return defended(*self._filled(measure, where), reach, error)

    def tested(self, numbers: Sequence[tuple[Measure, float, Mapping[str, str]]]) -> list[Estimate]:
        """Estimate numbers that are tested together: p-values after Holm over all of them, and
        intervals at the errors at which Holm decides.

        Args:
            numbers: The measure, the `reach` and the group of each, as `estimate` takes them.
        """
        filled = [self._filled(measure, where) for measure, _, where in numbers]
        raw = [p_of_defended(*parts) for parts in filled]
        errors = holm_errors([1.0 if p is None else p for p in raw], ALPHA)
        return adjusted_estimates([
            defended(*parts, reach, error)
            for parts, (_, reach, _), error in zip(filled, numbers, errors, strict=True)
        ])  # fmt: skip

    def _filled(
        self, measure: Measure, where: Mapping[str, str]
    ) -> tuple[Estimate, Measure, Sequence[WorstCaseRun]]:
        """Give the estimate from the answers that there are, and what is known of the others."""
        table, by = self._table(where, measure), self._clusterings
        estimate = measure.statistic.estimate(measure, table, by)
        estimate = replace(estimate, undefined=reason_of(measure, estimate.undefined))
        return estimate, measure, measure.statistic.fillings(measure, table, by)

    def with_masked(self, measure: Measure) -> Estimate:
        """Estimate the measure over all rows, those that are masked too."""
        assert self._sums is not None
        return measure.statistic.estimate(measure, self._sums, self._clusterings)


def reason_of(measure: Measure, undefined: str | None) -> str | None:
    """Say why a number is undefined; a measure may know why no row has a value."""
    return measure.absent if undefined == NO_ROWS and measure.absent else undefined
