"""The test of a change between two runs, and the confidence limits that are its inversion.

The tested change is after minus before; of a score that has an unbiased value it is the change of
the distance from that value. "Better" and "worse" are tested by sign flips, which are exact for
exchangeable pairs. "Within a margin" is tested by Gaffke's bound, which needs no symmetry and
allows for what so many clusters may not show. A missing answer counts against every claim: it is
evidence neither of good news nor of bad news.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from evenhand.findings.measures import Measure
from evenhand.statistics._shared import FloatArray, last_shown, t_above
from evenhand.statistics.bounded import (
    BoundedMean,
    LinearTest,
    SignFlips,
    lowest_mean,
)

if TYPE_CHECKING:
    from evenhand.findings.worst_case import WorstCasePair

_PValue = Callable[[float], float]
_OLD_LOW, _OLD_HIGH, _NEW_LOW, _NEW_HIGH, _ = np.eye(5)
_TINY = 1e-12  # a limit that the test puts next to 0 is not printed as 0


class _StudentT:
    """The t test over clusters: for a number without a smallest or a largest value."""

    def __init__(self, table: FloatArray) -> None:
        self._table = table

    def p_positive(self, claim: ArrayLike, room: float, unseen: float) -> float:  # noqa: ARG002
        values = self._table @ np.asarray(claim, dtype=np.float64) + room * self._table[:, -1]
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        if spread <= 1e-12 * float(np.abs(values).max(initial=0.0)):
            return 1.0  # no spread is not certainty
        return t_above(len(values) - 1, float(values.mean()) / spread * len(values) ** 0.5)


@dataclass(frozen=True)
class _Clustering:
    """One way to cluster the pairs, as the claims need it."""

    pair: "WorstCasePair"
    null: float | None
    range: tuple[float, float]

    @cached_property
    def table(self) -> FloatArray:
        pair = self.pair
        zero = (self.null or 0.0) * pair.after.rows
        sums = (pair.before.low, pair.before.high, pair.after.low, pair.after.high)
        return np.column_stack([*(side - zero for side in sums), pair.after.rows])

    @cached_property
    def flips(self) -> LinearTest:
        return SignFlips(self.table)

    @cached_property
    def bound(self) -> LinearTest:
        bounded = all(np.isfinite(self.range))
        return BoundedMean(self.table) if bounded else _StudentT(self.table)

    def p(self, test: LinearTest, change: float, *, above: bool) -> float:
        """Return the one-sided p-value of a change above, or below, a number.

        Args:
            test: The test of sums of clusters.
            change: The number, in the unit of the metric.
            above: Test for a change above the number, else for one below it.
        """
        size = float(self.pair.after.rows.mean())  # a cluster of the usual size
        least, most = (end - (self.null or 0.0) for end in self.range)
        down, both = least - most, (2 * least, -2 * most)  # how far a cluster may be
        if self.null is None:
            moved = _NEW_LOW - _OLD_HIGH if above else _OLD_LOW - _NEW_HIGH
            room = -change if above else change
            return test.p_positive(moved, room, size * (down + room))
        # |after| > |before| + change: some sign s has s·after − change above both ±before; or
        # |after| < |before| + change: some sign s has s·before + change above both ±after.
        big_low, big_high, small_low, small_high = (
            (_NEW_LOW, _NEW_HIGH, _OLD_LOW, _OLD_HIGH)
            if above
            else (_OLD_LOW, _OLD_HIGH, _NEW_LOW, _NEW_HIGH)
        )
        room = -change if above else change
        smaller = 1.0
        for side, low_end in ((big_low, both[0]), (-big_high, both[1])):
            minus, plus = side - small_high, side + small_low
            ends = (down, low_end) if side is big_low else (low_end, down)
            larger = 0.0
            for claim, end in zip((minus, plus), ends, strict=True):
                larger = max(larger, test.p_positive(claim, room, size * (end + room)))
                if larger >= smaller:  # this way cannot be the smaller one
                    break
            smaller = min(smaller, larger)
        # With room on both sides of the unbiased value there are two ways to be within it.
        return min(1.0, smaller * (2 if room > 0 else 1))


@dataclass(frozen=True)
class ChangeTest:
    """Tests one change; of several ways to cluster the pairs the largest p-value counts."""

    ways: tuple[_Clustering, ...]

    @classmethod
    def of(cls, measure: Measure, pairs: "Sequence[WorstCasePair]") -> "ChangeTest":
        """Make the test of a measure from the sums of both runs, for each way to cluster them."""
        return cls(tuple(_Clustering(pair, measure.center, measure.range) for pair in pairs))

    @cached_property
    def _limits(self) -> dict[float, tuple[float, float]]:
        """The limits that were asked for, by level."""
        return {}

    @property
    def bounded(self) -> bool:
        """Whether the number has a smallest and a largest value."""
        return all(np.isfinite(self.ways[0].range))

    @property
    def spread_of_both(self) -> float:
        """The standard error of both runs' scores together, each from the unbiased value."""
        largest = 0.0
        for way in self.ways:
            sums, rows = way.table[:, :4].sum(axis=1) / 2, way.table[:, 4]
            apart = sums - sums.sum() / rows.sum() * rows
            more = len(rows) / max(len(rows) - 1, 1)
            largest = max(largest, float(np.sqrt(more * (apart**2).sum()) / rows.sum()))
        return largest

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest change there can be."""
        way = self.ways[0]
        least, most = way.range
        if not self.bounded:
            return self._observed_ends()
        reach = most - least
        if way.null is not None:
            reach = max(way.null - least, most - way.null)
        return -reach, reach

    def _observed_ends(self) -> tuple[float, float]:
        """Ten times the largest mean of a cluster: no limit lies beyond it."""
        reach = 1e-9
        for way in self.ways:
            rows = way.table[:, 4]
            reach = max(reach, 10 * float(np.abs(way.table[:, :4].T / rows).max()))
        return -reach, reach

    def p_above(self, change: float = 0.0) -> float:
        """Return the one-sided p-value of a change above this number."""
        return max(way.p(way.flips, change, above=True) for way in self.ways)

    def p_below(self, change: float = 0.0) -> float:
        """Return the one-sided p-value of a change below this number."""
        return max(way.p(way.flips, change, above=False) for way in self.ways)

    @property
    def p(self) -> float:
        """The two-sided p-value of a change other than 0."""
        return min(1.0, 2 * min(self.p_above(), self.p_below()))

    def interval(self, level: float) -> tuple[float, float]:
        """Return the confidence interval at 1 − level: it excludes 0 where `p` ≤ level.

        Its far ends are the limits that margins are compared with, so that a rare change is covered
        from both sides. The end next to 0 is that of the sign flips, which decide.
        """
        low, high = self.limits(level / 2)
        if self.p_above() <= level / 2:
            return self._flipped(self.p_above, level / 2), high
        if self.p_below() <= level / 2:
            return low, -self._flipped(lambda change: self.p_below(-change), level / 2)
        return min(low, 0.0), max(high, 0.0)

    def _flipped(self, p_above: _PValue, level: float) -> float:
        """Return the lower limit by sign flips of a change that they show to be above 0."""
        return max(last_shown(lambda value: p_above(value) <= level, 0.0, self.ends[1]), _TINY)

    def p_within(self, most: float) -> float:
        """Return the one-sided p-value of a change below `most`, with Gaffke's bound."""
        return max(way.p(way.bound, most, above=False) for way in self.ways)

    def p_beyond(self, least: float) -> float:
        """Return the one-sided p-value of a change above `least`, with Gaffke's bound."""
        return max(way.p(way.bound, least, above=True) for way in self.ways)

    def limits(self, level: float) -> tuple[float, float]:
        """Return the one-sided limits, each at 1 − level, that margins are compared with."""
        if level not in self._limits:
            low = _lowest(self.p_beyond, level, self.ends)
            high = -_lowest(lambda change: self.p_within(-change), level, self.ends)
            self._limits[level] = low, high
        return self._limits[level]


def _lowest(p_above: _PValue, level: float, ends: tuple[float, float]) -> float:
    """Return the lower limit. A p-value of a distance jumps at 0, so each side is searched."""
    least, most = ends
    if p_above(0.0) <= level:
        return lowest_mean(p_above, 0.0, most, level)
    return lowest_mean(p_above, least, 0.0, level)
