"""Differences per prompt, tested by sign flips, with the interval that is this test inverted.

What is claimed and what is printed are one thing: a difference is shown where its interval excludes
0, and is small where its interval lies within what matters. Missing answers are at their worst in
both ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.findings.decision_rules import ALPHA, adjusted_estimates
from evenhand.findings.estimates import NO_SPREAD, Bounds, Estimate
from evenhand.statistics.clusters import NO_ROWS
from evenhand.statistics.proportions import without_spread
from evenhand.statistics.sign_flips import lower_bounds, p_of_columns

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences of each prompt, added up: those that are known, and all of them with what is
    missing at its smallest and at its largest.

    Args:
        known: the sum of a prompt's known differences.
        n: how many of them are known.
        low: the sum of all of them, the missing ones at their smallest.
        high: the same, the missing ones at their largest.
        rows: how many differences a prompt has, missing ones too.
        within: the smallest and the largest difference that there can be.
        one_sided: the expectation is never below 0, so that only a value above it is shown.
    """

    known: Numbers
    n: Numbers
    low: Numbers
    high: Numbers
    rows: Numbers
    within: tuple[float, float] = (-1.0, 1.0)
    one_sided: bool = False

    @classmethod
    def of(
        cls, rows: pl.DataFrame, within: tuple[float, float], *, one_sided: bool = False
    ) -> "Differences":
        """Add up rows of `cluster`, `value` (null where missing), `low` and `high`."""
        sums = (
            rows.group_by("cluster")
            .agg(pl.col("value").sum(), pl.col("value").count().alias("n"),
                 pl.col("low", "high").sum(), pl.len().alias("rows"))
            .sort("cluster")
            .select(pl.col("value", "n", "low", "high", "rows").cast(pl.Float64))
        )  # fmt: skip
        values, n, low, high, many = sums.to_numpy().T
        return cls(values, n, low, high, many, within, one_sided)

    @property
    def missing(self) -> int:
        return int((self.rows - self.n).sum())

    @property
    def without_spread(self) -> bool:
        """Whether every prompt gave the same, and nothing is missing."""
        return not self.missing and not np.ptp(self.known / self.rows)

    @property
    def p(self) -> float:
        """The p-value of a difference other than 0; of a one-sided one, of a difference above 0, at
        half of the level, so that the ends of a 95 % interval say the same."""
        sides = self.low, self.low if self.one_sided else -self.high
        return min(1.0, 2 * float(p_of_columns(np.column_stack(sides)).min()))

    def interval(self, alpha: float) -> tuple[float, float]:
        """Give the interval at level 1 − `alpha`. The end next to 0 is that of the test. In the
        other one, or in both where 0 is within, a further prompt counts that differs by all it
        could: what was never seen in so many prompts may still be there."""
        least, most = self.within
        low, high = self._ends(alpha, self.low, self.high, self.rows)
        if self.without_spread:
            value = float(self.known.sum() / self.rows.sum())
            far_low, far_high = without_spread(value, len(self.rows), self.within, 1 - alpha)
        else:
            size = float(self.rows.mean())
            far_low, far_high = self._ends(
                alpha,
                np.append(self.low, size * least),
                np.append(self.high, size * most),
                np.append(self.rows, size),
            )
        bounds = low if low > 0 else far_low, high if high < 0 else far_high
        if self.one_sided:  # below 0 there is nothing to be seen, so the end of the test stands
            bounds = low, max(far_high, 0.0)
        return max(bounds[0], least), min(bounds[1], most)

    def _ends(self, alpha: float, low: Numbers, high: Numbers, rows: Numbers) -> Sequence[float]:
        bounds = lower_bounds(np.column_stack([low, -high]), rows, alpha / 2).round(10) + 0.0
        return float(bounds[0]), float(0.0 - bounds[1])

    def estimate(self, name: str) -> Estimate:
        """Give the mean difference with its p-value, not adjusted; the interval comes with the
        adjustment."""
        n = float(self.n.sum())
        if not n:
            return Estimate(name=name, value=None, undefined=NO_ROWS)
        total, missing = float(self.rows.sum()), self.missing
        ends = float(self.low.sum()) / total, float(self.high.sum()) / total
        bounds = Bounds(missing=missing, low=ends[0], high=ends[1]) if missing else None
        return Estimate(
            name=name, value=float(self.known.sum()) / n, n=int(n),
            clusters=int((self.n > 0).sum()), p=self.p if len(self.rows) > 1 else 1.0,
            undefined=NO_SPREAD if self.without_spread else None, bounds=bounds,
        )  # fmt: skip


def adjusted(family: Sequence[tuple[Estimate, Differences]]) -> list[Estimate]:
    """Adjust the p-values of a family by Holm, and give each its interval at the level at which
    Holm looked at it: it excludes 0 where the adjusted p-value is at most 0.05, and only there."""
    after = adjusted_estimates([estimate for estimate, _ in family])
    levels = _levels([1.0 if estimate.p is None else estimate.p for estimate in after])
    results = []
    for estimate, (_, differences), level in zip(after, family, levels, strict=True):
        if estimate.value is None:
            results.append(replace(estimate, p_holm=None))
            continue
        low, high = differences.interval(level)
        results.append(replace(estimate, low=low, high=high))
    return results


def _levels(p: Sequence[float]) -> list[float]:
    """The level at which Holm tests each p-value: 0.05 divided by how many are left when its turn
    comes. All that come after the first which is not shown are tested at the level of that one."""
    order = sorted(range(len(p)), key=lambda index: p[index])
    levels, level, significant = [0.0] * len(p), ALPHA, True
    for turn, index in enumerate(order):
        if significant:
            level = ALPHA / (len(p) - turn)
            significant = p[index] <= level
        levels[index] = level
    return levels
