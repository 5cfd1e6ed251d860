"""Two runs over the same items are joined row by row as they are read, and added up per cluster.

Both runs went through the items in nearly the same order, so rows that wait for their partner are
few: a comparison of any two runs of one sample takes the memory of a window, not of the runs.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from evenhand.errors import Undefined, UserError
from evenhand.findings.changes import (
    change_from,
    change_of,
    change_of_means,
    pair_sums,
    resampled_change,
)
from evenhand.findings.coverage import count_lost, count_states, coverage_of
from evenhand.findings.defended_change import (
    AFTER,
    defended_change,
    fill_sums,
    filled_pair,
    filled_pair_of_clusters,
)
from evenhand.findings.found import Change, Coverage, Flips
from evenhand.findings.measures import (
    Mean,
    MeanOfClusters,
    Measure,
    OfMeans,
    OfTotals,
    Ratio,
    Share,
    SumOfRatios,
)
from evenhand.findings.places import Place, gathered
from evenhand.findings.rows import cluster_values, keys_of, missing_of, row_values, rows_of
from evenhand.findings.scored import Scored
from evenhand.findings.totals import (
    STREAMED,
    cluster_interval,
    reason_of,
    sums_per_cluster,
    totals_table,
)
from evenhand.statistics.clusters import (
    NO_ROWS,
)


class PairTotals:
    """The totals hold all that a comparison needs of two runs' outcomes, added up batch by
    batch."""

    def __init__(self, instrument: Scored) -> None:
        self._instrument = instrument
        self._groups = [one for one in instrument.groups if one.compared]
        self._keys = keys_of(instrument, self._groups)
        self._streamed = [m for m in instrument.measures if isinstance(m.statistic, STREAMED)]
        self._held_measures = [m for m in instrument.measures if m not in self._streamed]
        self._sums: pl.DataFrame | None = None
        self._held: list[pl.DataFrame] = []
        self.transitions: Counter[tuple[str, str]] = Counter()
        self._values: dict[str, set[str]] = {one.column: set() for one in self._groups}
        self._states: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._states_by: tuple[dict[str, Counter[str]], dict[str, Counter[str]]] = ({}, {})
        self.items = 0

    @classmethod
    def of(
        cls, instrument: Scored, before: Iterator[pl.DataFrame], after: Iterator[pl.DataFrame]
    ) -> "PairTotals":
        """Read both runs, always going on with the one of which fewer rows were seen."""
        totals = cls(instrument)
        sides = _Side(before), _Side(after)
        while not all(side.ended for side in sides):
            behind = min((s for s in sides if not s.ended), key=lambda side: side.seen)
            rows = behind.read(instrument)
            if behind is sides[0] and rows is not None:
                totals._note_groups(rows)
            totals._match(*sides)
        return totals

    def _match(self, old: "_Side", new: "_Side") -> None:
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
        for counted, name in zip(self._states, ("state", f"state{AFTER}"), strict=True):
            counted.update(dict(pairs[name].value_counts().iter_rows()))
        for by, name in zip(self._states_by, ("state", f"state{AFTER}"), strict=True):
            count_states(by, pairs, self._instrument.covered_by, name)
            count_lost(by, pairs, self._instrument.measures, name.removeprefix("state"))
        column = self._instrument.transitions
        if column is not None:
            moved = pairs.group_by(column, f"{column}{AFTER}").len()
            self.transitions.update({(a, b): n for a, b, n in moved.iter_rows()})
        sums = pairs.group_by(self._keys, maintain_order=True).agg(
            pl.len().alias("rows"),
            *(expr for m in self._streamed for expr in (*pair_sums(m), *fill_sums(m))),
        )
        if self._sums is not None:
            both = pl.concat([self._sums, sums]).group_by(self._keys, maintain_order=True)
            sums = both.agg(pl.exclude(self._keys).sum())
        self._sums = sums
        if self._held_measures:
            names = [name for m in self._held_measures for name in (*m.columns(), missing_of(m))]
            self._held.append(pairs.select(*self._keys, *names, *(f"{n}{AFTER}" for n in names)))

    def _note_groups(self, rows: pl.DataFrame) -> None:
        for column, values in self._values.items():
            values.update(rows[column].drop_nulls().unique())

    def coverage(self) -> tuple[Coverage, Coverage]:
        """How much of the shared items each run has a score for."""
        return coverage_of(self._states[0]), coverage_of(self._states[1])

    def coverage_by(self) -> dict[str, tuple[Coverage, Coverage]]:
        """The same for each value of the column that the instrument names, and of each measure
        that can lose a value beside the score."""
        old, new = self._states_by
        every = sorted(old.keys() | new.keys())
        none: Counter[str] = Counter()
        return {v: (coverage_of(old.get(v, none)), coverage_of(new.get(v, none))) for v in every}

    def values_of(self, column: str) -> list[str]:
        """List the groups of the first run: one that the second run has no answer in is not left
        out."""
        return sorted(self._values[column])

    def change(self, measure: Measure, /, **where: str) -> Change:
        """Compute after minus before, over all pairs or those of one group."""
        try:
            found = self._change(measure, where)
        except Undefined as undefined:
            reason = reason_of(measure, str(undefined))
            found = Change(
                name=measure.name, before=None, after=None, difference=None, undefined=reason
            )
        return self._defended(found, measure, where)

    def _defended(self, found: Change, measure: Measure, where: dict[str, str]) -> Change:
        if self._sums is None:
            return found
        if isinstance(measure.statistic, STREAMED):
            frame = self._part(self._sums, where, measure)
            clusterings = ("cluster", *self._instrument.also_clusters)
            ways = [filled_pair(measure, frame, cluster) for cluster in clusterings]
            missing = int(frame[f"{measure.name}:m"].sum())
            return defended_change(found, measure, ways, missing=missing)
        rows = self._rows(where, measure)
        lost = [pl.col(f"{missing_of(measure)}{side}") for side in ("", AFTER)]
        missing = rows.select((lost[0] | lost[1]).sum()).item()
        of_clusters = isinstance(measure.statistic, MeanOfClusters)
        ways = [filled_pair_of_clusters(measure, rows)] if of_clusters else []
        return defended_change(found, measure, ways, missing=missing)

    def places(self, measure: Measure) -> tuple[Place, ...]:
        """Say where the clusters lie before and after, over the pairs that have a value on both
        sides; nothing for a number that is not made of one for each cluster."""
        name = measure.name
        if self._sums is None or not isinstance(measure.statistic, Mean | Share | MeanOfClusters):
            return ()
        if isinstance(measure.statistic, MeanOfClusters):
            sides = (
                cluster_values(measure, s) for s in self._both(measure, self._rows({}, measure))
            )
            both = next(sides).join(next(sides), on="cluster", suffix=AFTER)
            return gathered(measure, both.select(before="value", after=f"value{AFTER}"))
        sums = sums_per_cluster(self._part(self._sums, {}, measure), name, "nbe", "cluster")
        n, before, after = (pl.col(f"{name}:{part}") for part in "nbe")
        return gathered(measure, sums.filter(n > 0).select(before=before / n, after=after / n))

    def flips(self, measure: Measure) -> Flips:
        """Count how many rows of a yes-or-no measure became yes, and how many became no."""
        frame = self._part(self._sums, {}, measure)
        fixed, broken = (int(frame[f"{measure.name}:{n}"].sum()) for n in ("fixed", "broken"))
        return Flips(fixed=fixed, broken=broken, p=self.change(measure).p)

    def _change(self, measure: Measure, where: dict[str, str]) -> Change:
        match measure.statistic:
            case Mean() | Share() | Ratio() | SumOfRatios():
                return self._streamed_change(measure, self._part(self._sums, where, measure))
            case MeanOfClusters():
                return self._change_of_clusters(measure, self._rows(where, measure))
            case OfMeans(_, value) | OfTotals(_, value):
                old, new = self._both(measure, self._rows(where, measure))
                n, made = len(old), [totals_table(measure, rows) for rows in (old, new)]
                both = made[0].join(made[1], on="cluster", suffix=AFTER, maintain_order="left")
                width = made[0].width - 1
                numbers = both.drop("cluster").to_numpy()
                if isinstance(measure.statistic, OfMeans):
                    return change_of_means(measure, numbers, width, n)
                return resampled_change(measure.name, numbers, width, value, n)

    def _streamed_change(self, measure: Measure, frame: pl.DataFrame) -> Change:
        found, reason = [], None
        for cluster in ("cluster", *self._instrument.also_clusters):
            try:
                found.append(change_from(measure, frame, cluster))
            except Undefined as undefined:
                reason = reason or undefined
        if not found:
            raise reason or Undefined(NO_ROWS)
        spread = [change for change in found if change.se] or found[:1]
        widest = max(spread, key=lambda change: change.se)
        return replace(widest, clusters=min(change.clusters for change in found))

    def _change_of_clusters(self, measure: Measure, rows: pl.DataFrame) -> Change:
        old, new = (cluster_values(measure, side) for side in self._both(measure, rows))
        both = old.join(new, on="cluster", suffix=AFTER).sort("cluster")
        before, after = both["value"].to_numpy(), both[f"value{AFTER}"].to_numpy()
        means = (float(side.mean()) if len(side) else 0.0 for side in (before, after))
        return change_of(measure, cluster_interval(measure, after - before, change=True), *means)

    def _rows(self, where: dict[str, str], measure: Measure) -> pl.DataFrame:
        return self._part(pl.concat(self._held) if self._held else None, where, measure)

    def _part(
        self, frame: pl.DataFrame | None, where: dict[str, str], measure: Measure
    ) -> pl.DataFrame:
        if frame is None:
            raise Undefined("the two runs share no finished item")
        return frame.filter(rows_of(self._instrument, measure, where))

    def _both(self, measure: Measure, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Keep the rows of either side that have a value on both: a run with more missing must not
        look better for having failed."""
        names = list(measure.columns())
        after = [f"{name}{AFTER}" for name in names]
        known = rows.drop_nulls([*names, *after])
        new = known.select(*self._keys, **dict(zip(names, map(pl.col, after), strict=True)))
        return known.select(*self._keys, *names), new


@dataclass(slots=True)
class _Side:
    """One of the two runs while it is read: the rows whose partner was not seen yet."""

    batches: Iterator[pl.DataFrame]
    waiting: pl.DataFrame | None = None
    seen: int = 0
    ended: bool = False

    def read(self, instrument: Scored) -> pl.DataFrame | None:
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
                f"two items of a run have the id {twice!r}, so that they cannot be told apart in a "
                "comparison: give each item an id of its own"
            )
        return rows
