"""Two runs over the same items are joined row by row as they are read, and added up per cluster.

Both runs went through the items in nearly the same order, so rows that wait for their partner are
few: a comparison of any two runs of one sample takes the memory of a window, not of the runs.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from evenhand.core.errors import Undefined, UserError
from evenhand.findings.estimates import Change, Coverage, Flips
from evenhand.findings.measures import AFTER, Measure
from evenhand.findings.scoring import ScoringSpec, row_values
from evenhand.findings.totals import ClusterTotals, ScoreStates, reason_of
from evenhand.findings.worst_case import defended_change


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedBin:
    """A place stands for clusters that lie near each other: the means of their numbers before and
    after. All of them rose, or all fell, or all stayed as they were."""

    before: float
    after: float
    clusters: int


_CELLS = 20  # our choice, on each side: dots of 11 pixels fit side by side in 260


class PairTotals(ClusterTotals):
    """The totals hold all that a comparison needs of two runs' outcomes, added up batch by
    batch."""

    nothing = "the two runs share no finished item"

    def __init__(self, instrument: ScoringSpec) -> None:
        groups = [grouping for grouping in instrument.groups if grouping.compared]
        super().__init__(instrument, groups)
        self._states = ScoreStates(instrument), ScoreStates(instrument, AFTER)
        self._values: dict[str, set[str]] = {grouping.column: set() for grouping in groups}
        self.transitions: Counter[tuple[str, str]] = Counter()
        self.items = 0

    @classmethod
    def of(
        cls, instrument: ScoringSpec, before: Iterator[pl.DataFrame], after: Iterator[pl.DataFrame]
    ) -> "PairTotals":
        """Read two runs in step, so that few unmatched rows are kept in memory.

        Args:
            instrument: The benchmark of both runs.
            before: The outcomes of the baseline, batch by batch.
            after: The outcomes of the other run, batch by batch.
        """
        totals = cls(instrument)
        sides = _RunStream(before), _RunStream(after)
        while not all(side.ended for side in sides):
            behind = min((s for s in sides if not s.ended), key=lambda side: side.seen)
            rows = behind.read(instrument)
            if behind is sides[0] and rows is not None:
                totals._note_groups(rows)
            totals._match(*sides)
        return totals

    def _match(self, old: "_RunStream", new: "_RunStream") -> None:
        if old.waiting is None or new.waiting is None:
            return
        joined = old.waiting.join(
            new.waiting.drop(self._keys), on="item_id", suffix=AFTER, maintain_order="left"
        )
        if joined.is_empty():
            return
        for side in (old, new):
            assert side.waiting is not None
            side.waiting = side.waiting.join(joined.select("item_id"), on="item_id", how="anti")
        self._add(joined)

    def _add(self, pairs: pl.DataFrame) -> None:
        self.items += len(pairs)
        for states in self._states:
            states.add(pairs)
        column = self._instrument.transitions
        if column is not None:
            moved = pairs.group_by(column, f"{column}{AFTER}").len()
            self.transitions.update({(a, b): n for a, b, n in moved.iter_rows()})
        sums = (sums for m in self._streamed for sums in m.statistic.pair_sums(m))
        self._add_up(pairs, sums, ("", AFTER))

    def _note_groups(self, rows: pl.DataFrame) -> None:
        for column, values in self._values.items():
            values.update(rows[column].drop_nulls().unique())

    def coverage(self) -> tuple[Coverage, Coverage]:
        """How much of the shared items each run has a score for."""
        old, new = self._states
        return old.coverage(), new.coverage()

    def coverage_by(self) -> dict[str, tuple[Coverage, Coverage]]:
        """The same for each value of the column that the instrument names, and of each measure
        that can lack a value even where the score exists."""
        old, new = self._states
        return {v: (old.coverage(v), new.coverage(v)) for v in sorted(old.names | new.names)}

    def values_of(self, column: str) -> list[str]:
        """List the groups of the first run: one that the second run has no answer in is not left
        out."""
        return sorted(self._values[column])

    def change(self, measure: Measure, /, **where: str) -> Change:
        """Compute after minus before, over all pairs or those of one group."""
        try:
            table = self._table(where, measure)
            result = measure.statistic.change(measure, table, self._clusterings)
        except Undefined as undefined:
            reason = reason_of(measure, str(undefined))
            result = Change(
                name=measure.name, before=None, after=None, difference=None, undefined=reason
            )
        if self._sums is None:
            return result
        table = self._table(where, measure)
        ways = measure.statistic.filled_pairs(measure, table, self._clusterings)
        missing = measure.statistic.missing_pairs(measure, table)
        return defended_change(result, measure, ways, missing=missing)

    def places(self, measure: Measure) -> tuple[PairedBin, ...]:
        """Say where the clusters lie before and after, over the pairs that have a value on both
        sides; nothing for a number that is not made of one for each cluster."""
        if self._sums is None:
            return ()
        positions = measure.statistic.cluster_positions(measure, self._table({}, measure))
        return () if positions is None else gathered(measure, positions)

    def flips(self, measure: Measure) -> Flips:
        """Count how many rows of a yes-or-no measure became yes, and how many became no."""
        frame = self._table({}, measure)
        fixed, broken = (int(frame[f"{measure.name}:{n}"].sum()) for n in ("fixed", "broken"))
        return Flips(fixed=fixed, broken=broken, p=self.change(measure).p)


@dataclass(slots=True)
class _RunStream:
    """One of the two runs while it is read: the rows whose partner was not seen yet."""

    batches: Iterator[pl.DataFrame]
    waiting: pl.DataFrame | None = None
    seen: int = 0
    ended: bool = False

    def read(self, instrument: ScoringSpec) -> pl.DataFrame | None:
        outcomes = next(self.batches, None)
        if outcomes is None:
            self.ended = True
            return None
        rows = row_values(outcomes, instrument)
        self.seen += len(rows)
        self.waiting = rows if self.waiting is None else pl.concat([self.waiting, rows])
        if self.waiting["item_id"].n_unique() < len(self.waiting):
            twice = self.waiting.filter(pl.col("item_id").is_duplicated())["item_id"][0]
            raise UserError(
                f"Two items of a run have the id {twice!r}, so they cannot be paired. Give each "
                "item its own id."
            )
        return rows


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
