"""Two runs over the same items are joined row by row as they are read, and added up per cluster.

Both runs went through the items in nearly the same order, so rows that wait for their partner are
few: a comparison of any two runs of one sample takes the memory of a window, not of the runs.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenhand.errors import Undefined, UserError
from evenhand.findings.found import Change, Coverage, Flips
from evenhand.findings.measures import (
    Mean,
    MeanOfClusters,
    Measure,
    OfTotals,
    Ratio,
    Share,
    SumOfRatios,
    Totals,
)
from evenhand.findings.rules import p_value
from evenhand.findings.scored import Scored
from evenhand.findings.totals import (
    STREAMED,
    SUMS,
    cluster_values,
    coverage_of,
    keys_of,
    reason_of,
    row_values,
    rows_of,
    sums_of_ratios,
    sums_per_cluster,
    totals_table,
)
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.clusters import (
    NO_ROWS,
    Interval,
    ratio_change_from_totals,
    ratio_from_totals,
    sum_of_ratios_from_totals,
)
from evenhand.statistics.paired import mcnemar_p

_AFTER = ":after"


class PairTotals:
    """The totals hold all that a comparison needs of two runs' outcomes, added up batch by
    batch."""

    def __init__(self, instrument: Scored) -> None:
        self._instrument = instrument
        self._groups = [one for one in instrument.groups if one.compared]
        self._keys = keys_of(instrument, self._groups)
        self._streamed = [m for m in instrument.measures if isinstance(m.statistic, STREAMED)]
        self._held_measures = [
            m for m in instrument.measures if m not in self._streamed or m.better == "fifty"
        ]  # the distance from 50 is resampled, so that its rows are needed too
        self._sums: pl.DataFrame | None = None
        self._held: list[pl.DataFrame] = []
        self.transitions: Counter[tuple[str, str]] = Counter()
        self._values: dict[str, set[str]] = {one.column: set() for one in self._groups}
        self._states: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
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
            new.waiting.drop(self._keys), on="item_id", suffix=_AFTER, maintain_order="left"
        )
        if joined.is_empty():
            return
        for side in (old, new):
            assert side.waiting is not None
            side.waiting = side.waiting.join(joined.select("item_id"), on="item_id", how="anti")
        self._add(joined)

    def _add(self, pairs: pl.DataFrame) -> None:
        self.items += len(pairs)
        for counted, name in zip(self._states, ("state", f"state{_AFTER}"), strict=True):
            counted.update(dict(pairs[name].value_counts().iter_rows()))
        column = self._instrument.transitions
        if column is not None:
            moved = pairs.group_by(column, f"{column}{_AFTER}").len()
            self.transitions.update({(a, b): n for a, b, n in moved.iter_rows()})
        sums = pairs.group_by(self._keys, maintain_order=True).agg(
            pl.len().alias("rows"), *(expr for m in self._streamed for expr in _sums(m))
        )
        if self._sums is not None:
            both = pl.concat([self._sums, sums]).group_by(self._keys, maintain_order=True)
            sums = both.agg(pl.exclude(self._keys).sum())
        self._sums = sums
        if self._held_measures:
            names = [name for m in self._held_measures for name in m.columns()]
            self._held.append(pairs.select(*self._keys, *names, *(f"{n}{_AFTER}" for n in names)))

    def _note_groups(self, rows: pl.DataFrame) -> None:
        for column, values in self._values.items():
            values.update(rows[column].drop_nulls().unique())

    def coverage(self) -> tuple[Coverage, Coverage]:
        """How much of the shared items each run has a score for."""
        return coverage_of(self._states[0]), coverage_of(self._states[1])

    def values_of(self, column: str) -> list[str]:
        """List the groups of the first run: one that the second run has no answer in is not left
        out."""
        return sorted(self._values[column])

    def change(self, measure: Measure, **where: str) -> Change:
        """Compute after minus before, over all pairs or those of one group."""
        try:
            return self._change(measure, where)
        except Undefined as undefined:
            reason = reason_of(measure, str(undefined))
            return Change(
                name=measure.name, before=None, after=None, difference=None, undefined=reason
            )

    def distance(self, measure: Measure) -> Change:
        """Compute how far the measure is from the value that says "no bias", after minus before."""
        null = measure.null
        assert null is not None

        def apart(totals: Totals) -> Totals:
            return np.abs(totals[:, 0] / totals[:, 1] - null)

        name = f"{measure.name}_distance"
        try:
            old, new = self._both(measure, self._rows({}, measure))
            table = np.column_stack([_means_table(measure, side) for side in (old, new)])
            return _resampled(name, table, 2, apart, len(old))
        except Undefined as reason:
            return Change(
                name=name, before=None, after=None, difference=None, undefined=str(reason)
            )

    def flips(self, measure: Measure) -> Flips:
        """Count how many rows of a yes-or-no measure became yes, and how many became no."""
        frame = self._part(self._sums, {}, measure)
        fixed, broken = (int(frame[f"{measure.name}:{n}"].sum()) for n in ("fixed", "broken"))
        return Flips(fixed=fixed, broken=broken, p_mcnemar=mcnemar_p(fixed, broken))

    def _change(self, measure: Measure, where: dict[str, str]) -> Change:
        match measure.statistic:
            case Mean() | Share() | Ratio() | SumOfRatios():
                return self._streamed_change(measure, self._part(self._sums, where, measure))
            case MeanOfClusters():
                return self._change_of_clusters(measure, self._rows(where, measure))
            case OfTotals(_, value):
                old, new = self._both(measure, self._rows(where, measure))
                n, made = len(old), [totals_table(measure, rows) for rows in (old, new)]
                both = made[0].join(made[1], on="cluster", suffix=_AFTER, maintain_order="left")
                width = made[0].width - 1
                return _resampled(measure.name, both.drop("cluster").to_numpy(), width, value, n)

    def _streamed_change(self, measure: Measure, frame: pl.DataFrame) -> Change:
        found, reason = [], None
        for cluster in ("cluster", *self._instrument.also_clusters):
            try:
                found.append(_change_from(measure, frame, cluster))
            except Undefined as undefined:
                reason = reason or undefined
        if not found:
            raise reason or Undefined(NO_ROWS)
        widest = max(found, key=lambda change: change.se)
        most = 1.0 if isinstance(measure.statistic, Share) else math.inf
        return replace(
            widest,
            low=max(-most, min(c.low for c in found if c.low is not None)),
            high=min(most, max(c.high for c in found if c.high is not None)),
            p=max(c.p for c in found if c.p is not None),
            clusters=min(c.clusters for c in found),
        )

    def _change_of_clusters(self, measure: Measure, rows: pl.DataFrame) -> Change:
        old, new = (cluster_values(measure, side) for side in self._both(measure, rows))
        both = old.join(new, on="cluster", suffix=_AFTER).sort("cluster")
        before, after = both["value"].to_numpy(), both[f"value{_AFTER}"].to_numpy()
        difference = after - before
        one = np.ones_like(difference)
        table = np.column_stack([one, difference, one, np.abs(difference), one])
        means = (float(side.mean()) if len(side) else 0.0 for side in (before, after))
        return _change_of(measure.name, ratio_from_totals(table), *means)

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
        after = [f"{name}{_AFTER}" for name in names]
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


def _means_table(measure: Measure, rows: pl.DataFrame) -> np.ndarray:
    """Give per cluster the sum and the number of what the measure averages."""
    if isinstance(measure.statistic, MeanOfClusters):
        values = cluster_values(measure, rows)["value"].to_numpy()
        return np.column_stack([values, np.ones_like(values)])
    value = pl.col(f"{measure.name}.value")
    sums = rows.group_by("cluster", maintain_order=True).agg(
        value.sum(), pl.len().cast(pl.Float64).alias("n")
    )
    return sums.drop("cluster").to_numpy()


def _sums(measure: Measure) -> list[pl.Expr]:
    name = measure.name
    if isinstance(measure.statistic, SumOfRatios):
        return sums_of_ratios(measure, ("", _AFTER))
    if isinstance(measure.statistic, Ratio):
        parts = [f"{name}.{part}{side}" for side in ("", _AFTER) for part in ("y", "x")]
        known = pl.all_horizontal(pl.col(parts).is_not_null())
        old_y, old_x, new_y, new_x = (pl.when(known).then(pl.col(part)) for part in parts)
        found: dict[str, pl.Expr] = {}
        for side, y, x in (("", old_y, old_x), (_AFTER, new_y, new_x)):
            n = ((y != 0) | (x != 0)).sum()
            sums = (n, y.sum(), x.sum(), y.abs().sum(), x.abs().sum())
            found |= {f"{part}{side}": one for part, one in zip(SUMS, sums, strict=True)}
    else:
        old, new = pl.col(f"{name}.value"), pl.col(f"{name}.value{_AFTER}")
        known = old.is_not_null() & new.is_not_null()
        difference, n = new - old, known.sum()
        found = {"n": n, "y": difference.sum(), "x": n, "ay": difference.abs().sum(), "ax": n}
        found |= {f: pl.when(known).then(v).sum() for f, v in (("b", old), ("e", new))}
        if measure.counts_flips:
            found |= {"fixed": (difference > 0).sum(), "broken": (difference < 0).sum()}
    return [expr.cast(pl.Float64).alias(f"{name}:{part}") for part, expr in found.items()]


def _change_from(measure: Measure, frame: pl.DataFrame, cluster: str) -> Change:
    """Compute the change of a streamed statistic, its uncertainty over one way to cluster."""
    name = measure.name

    def table(parts: Sequence[str]) -> np.ndarray:
        return sums_per_cluster(frame, name, parts, cluster).to_numpy()

    match measure.statistic:
        case SumOfRatios(parts, shift):
            sides = [[(part[0], table([f"{s}{place}{side}" for s in SUMS]))
                      for place, part in enumerate(parts)] for side in ("", _AFTER)]  # fmt: skip
            n = int(frame[f"{name}:n"].sum())
            lost = [(-weight, sums) for weight, sums in sides[0]]
            interval = sum_of_ratios_from_totals([*lost, *sides[1]], n)
            before, after = (
                shift + sum(weight * t[:, 1].sum() / t[:, 2].sum() for weight, t in side)
                for side in sides
            )
        case Ratio(_, _, scale, shift):
            old, new = table(SUMS), table([f"{part}{_AFTER}" for part in SUMS])
            interval = ratio_change_from_totals(old, new).rescaled(scale)
            before, after = (scale * t[:, 1].sum() / t[:, 2].sum() + shift for t in (old, new))
        case _:
            numbers = table([*SUMS, "b", "e"])
            interval = ratio_from_totals(numbers[:, :5])
            before, after = (numbers[:, place].sum() / numbers[:, 0].sum() for place in (5, 6))
    return _change_of(name, interval, float(before), float(after))


def _change_of(name: str, interval: Interval, before: float, after: float) -> Change:
    p = p_value(interval.estimate, interval.se, interval.clusters, interval.p_two_sided)
    return Change(
        name=name,
        before=before,
        after=after,
        difference=interval.estimate,
        low=interval.low,
        high=interval.high,
        se=interval.se,
        p=p,
        n=interval.n,
        clusters=interval.clusters,
    )


def _resampled(
    name: str, table: np.ndarray, width: int, value: Callable[[Totals], Totals], n: int
) -> Change:
    """Compute the change of a function of totals by resampling whole clusters of both runs at once:
    an interval without a p-value."""

    def difference(totals: Totals) -> Totals:
        return value(totals[:, width:]) - value(totals[:, :width])

    drawn = cluster_bootstrap(table, difference, kind="percentile")
    totals = table.sum(axis=0, keepdims=True)
    return Change(
        name=name,
        before=float(value(totals[:, :width])[0]),
        after=float(value(totals[:, width:])[0]),
        difference=drawn.estimate,
        low=drawn.low,
        high=drawn.high,
        se=drawn.se,
        n=int(n),
        clusters=drawn.clusters,
    )
