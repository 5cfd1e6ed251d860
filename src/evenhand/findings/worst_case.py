"""Missing answers are filled the best and the worst way, so that no finding is better for them.

A measure with a smallest and a largest value says what a missing answer can add to a sum. Claims
about one run are tested by a bound that needs no symmetry of the clusters (`p_mean_above`), claims
about a change by sign flips. Both p-values are monotone: the worst filling is the worst of all ways
in which the missing answers could have come out, and one more of them never helps.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.findings.change_test import ChangeTest
from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.estimates import (
    NO_SPREAD,
    Bounds,
    Change,
    Estimate,
    IntervalBounds,
)
from evenhand.findings.measures import Measure
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.bounded import lowest_mean, p_mean_above
from evenhand.statistics.sign_flips import p_above_zero


@dataclass(frozen=True, slots=True)
class WorstCaseSums:
    """The sums of one run's clusters with every missing answer at its smallest and at its largest,
    and how many are missing."""

    low: FloatArray
    high: FloatArray
    rows: FloatArray  # answers, missing ones too
    missing: FloatArray

    @classmethod
    def of(
        cls, measure: Measure, y: FloatArray, n: FloatArray, missing: FloatArray
    ) -> "WorstCaseSums":
        least, most = measure.range
        return cls(y + _times(least, missing), y + _times(most, missing), n + missing, missing)


@dataclass(frozen=True, slots=True)
class WorstCaseRun:
    """What is known of a run with its missing answers filled both ways: sums per cluster where the
    number is a mean of them, else only the ends of the number itself."""

    missing: int
    sums: WorstCaseSums | None = None
    from_null: FloatArray | None = None  # of the answers that are there, from "no bias"
    ends: tuple[float, float] | None = None
    interval: tuple[float, float] | None = None  # of the number, both ends moved as far as can be


def _times(value: float, missing: FloatArray) -> FloatArray:
    """An unbounded value times no missing answer is 0."""
    return np.where(missing > 0, value, 0.0) * missing


# -- one run ---------------------------------------------------------------------------------------


def p_of_bias(measure: Measure, fill: WorstCaseSums) -> float:
    """Give the p-value of a number being other than "no bias", its missing answers at "no bias" or
    beyond it: what is shown must be shown by the answers that there are.

    By a bound that needs no symmetry of the clusters. Sign flips decide where they are symmetric by
    design, as where two answers of a pair could be exchanged, and of a number without ends, of
    which no test holds for every shape.
    """
    assert measure.null is not None
    if not measure.bounded and fill.missing.any():
        return 1.0
    above = _p_above(measure, fill, measure.null)
    if measure.one_sided:  # half of the level is left for the side that cannot be
        return min(1.0, 2 * above)
    return min(1.0, 2 * min(above, _p_above(*_mirrored(measure, fill, measure.null))))


def p_of_small_bias(measure: Measure, fill: WorstCaseSums, reach: float) -> float:
    """Return the one-sided p-value of the claim that a number is close to "no bias".

    Args:
        measure: The metric, which names the value for "no bias". Clusters that were not seen may be
            at an end of its range.
        fill: The sums of the clusters with missing answers filled both ways.
        reach: The largest distance that counts as close.

    Returns:
        The p-value; 1 for a metric without a range.
    """
    assert measure.null is not None
    if not measure.bounded:
        return 1.0
    any_shape = replace(measure, symmetric=False)
    above = _p_above(any_shape, fill, measure.null - reach)
    return max(above, _p_above(*_mirrored(any_shape, fill, measure.null + reach)))


def interval(measure: Measure, fill: WorstCaseSums, error: float) -> tuple[float, float]:
    """Return the interval of a bounded number: all values that `p_of_bias` does not reject, however
    the missing answers came out.

    Args:
        measure: The metric with its range.
        fill: The sums of the clusters with missing answers filled both ways.
        error: The two-sided error of the interval.
    """
    low, high = (
        _lowest(oriented, sums, error / 2)
        for oriented, sums, _ in ((measure, fill, 0.0), _mirrored(measure, fill, 0.0))
    )
    return low, -high


def _lowest(measure: Measure, fill: WorstCaseSums, error: float) -> float:
    mean = float(fill.low.sum()) / float(fill.rows.sum())
    least = measure.range[0]
    return lowest_mean(lambda value: _p_above(measure, fill, value), least, mean, error)


def _p_above(measure: Measure, fill: WorstCaseSums, value: float) -> float:
    """Give the p-value, one-sided, of the mean being above a value, its missing answers at their
    smallest. A cluster that was not seen may be as large as the largest, and all at the low end."""
    least, sums = measure.range[0], fill.low - value * fill.rows
    if measure.symmetric or not measure.bounded:
        return p_above_zero(sums)
    if value <= least:
        return 1.0  # our choice: what must be so is not evidence
    return p_mean_above(sums, float(fill.rows.max()) * (least - value))


def _mirrored(
    measure: Measure, fill: WorstCaseSums, value: float
) -> tuple[Measure, WorstCaseSums, float]:
    """Return the same with all values negated, so that below becomes above."""
    least, most = measure.range
    return replace(measure, within=(-most, -least)), _negated(fill), -value


def _negated(fill: WorstCaseSums) -> WorstCaseSums:
    return WorstCaseSums(-fill.high, -fill.low, fill.rows, fill.missing)


def bounds_of(measure: Measure, fill: WorstCaseSums, apart: FloatArray) -> Bounds | None:
    """Compute the worst-case bounds of a number, and how many missing answers would overturn its
    difference from "no bias".

    Args:
        measure: The metric.
        fill: The sums of the clusters with missing answers filled both ways.
        apart: The distance of each cluster's known answers from "no bias".

    Returns:
        The bounds; None without missing answers.
    """
    missing, rows = int(fill.missing.sum()), float(fill.rows.sum())
    if not missing:
        return None
    if not measure.bounded:
        return Bounds(missing=missing)
    low, high = float(fill.low.sum()) / rows, float(fill.high.sum()) / rows
    overturn = None
    if measure.null is not None and not (measure.one_sided and apart.sum() <= 0):
        none, up = measure.null * fill.rows, float(apart.sum()) > 0
        best, worst = (fill.high, fill.low) if up else (-fill.low, -fill.high)
        sign = none if up else -none
        claim = apart if up else -apart
        end = measure.range[0] - measure.null if up else measure.null - measure.range[1]
        unseen = None if measure.symmetric else float(fill.rows.max()) * end
        overturn = tipping(claim, best - sign, worst - sign, fill.missing, unseen)
    return Bounds(missing=missing, low=low, high=high, overturn=overturn)


# -- two runs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorstCasePair:
    """The sums of two runs over the same clusters, and of what is known in both."""

    before: WorstCaseSums
    after: WorstCaseSums
    missing: FloatArray  # pairs of which one answer is missing
    difference: FloatArray  # after − before over the pairs that are complete


def bounds_of_change(measure: Measure, pair: WorstCasePair) -> Bounds | None:
    """Give what the change could be if the missing answers were known, and how many of them would
    overturn that there is one."""
    missing, rows = int(pair.missing.sum()), float(pair.after.rows.sum())
    if not missing:
        return None
    if not measure.bounded:
        return Bounds(missing=missing)
    if measure.center is not None:
        return _bounds_of_distance(measure.center, pair, missing)
    low, high = pair.after.low - pair.before.high, pair.after.high - pair.before.low
    rose = float(pair.difference.sum()) > 0
    best, worst = (high, low) if rose else (-low, -high)
    claim = pair.difference if rose else -pair.difference
    return Bounds(
        missing=missing,
        low=float(low.sum()) / rows,
        high=float(high.sum()) / rows,
        overturn=tipping(claim, best, worst, pair.missing),
    )


def _bounds_of_distance(center: float, pair: WorstCasePair, missing: int) -> Bounds:
    """Give what the change of the distance from the unbiased value could be. How many answers would
    overturn it is not counted: the distance is not a sum over clusters."""
    (before_near, before_far), (after_near, after_far) = (
        _distances(center, fill) for fill in (pair.before, pair.after)
    )
    return Bounds(missing=missing, low=after_near - before_far, high=after_far - before_near)


def _distances(center: float, fill: WorstCaseSums) -> tuple[float, float]:
    """Return the smallest and the largest distance of a mean from a value, however the missing
    answers came out."""
    rows = float(fill.rows.sum())
    low, high = float(fill.low.sum()) / rows - center, float(fill.high.sum()) / rows - center
    near = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return near, max(abs(low), abs(high))


# -- what it would take ----------------------------------------------------------------------------


def tipping(
    claim: FloatArray,
    best: FloatArray,
    worst: FloatArray,
    missing: FloatArray,
    unseen: float | None = None,
) -> int | None:
    """Count how many missing answers would overturn that the mean is above 0, if each came out the
    worst way and the others the best way.

    Those that cost the claim most are taken first, so that it takes no fewer by another choice of
    clusters than by this one, as far as means within a cluster tell.

    Args:
        claim: The sum of each cluster's known answers.
        best: The sums with all missing answers at their best.
        worst: The sums with all missing answers at their worst.
        missing: How many answers of each cluster are missing.
        unseen: The smallest value of a cluster, for a claim about one run; None for a claim about a
            change.

    Returns:
        The number; None where the known answers show nothing, or where all missing answers together
        would not overturn it.
    """

    def _p(sums: FloatArray) -> float:
        one_sided = p_above_zero(sums) if unseen is None else p_mean_above(sums, unseen)
        return min(1.0, 2 * one_sided)

    if not len(claim) or _p(claim) > ALPHA or _p(worst) <= ALPHA:
        return None
    total = int(missing.sum())
    each = (best - worst) / np.maximum(missing, 1)
    order = np.argsort(-each, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(missing[order])[:-1]])

    def overturned(count: int) -> bool:
        taken = np.zeros(len(claim))
        taken[order] = np.clip(count - before, 0, missing[order])
        return _p(best - each * taken) > ALPHA

    return bisect_left(range(total), True, key=overturned)


def defended(
    estimate: Estimate,
    measure: Measure,
    ways: Sequence[WorstCaseRun],
    reach: float | None,
    error: float = ALPHA,
) -> Estimate:
    """Add the worst-case bounds and the p-value against "no bias" to an estimate. The interval of a
    bounded number inverts the test, so that it contains "no bias" exactly where no bias is
    detected.

    Args:
        estimate: The estimate from the answers that there are.
        measure: The metric.
        ways: The run with missing answers filled, for each way to cluster it; the largest p-value
            counts.
        reach: The largest distance that counts as close to "no bias"; None to skip that test.
        error: The two-sided error of the test and of the interval.
    """
    fills, from_null = _known(ways), ways[0].from_null
    if not fills or from_null is None:
        return _by_ends(estimate, measure, ways[0])
    p = p_of_defended(estimate, measure, ways)
    estimate = replace(estimate, p=p, bounds=bounds_of(measure, fills[0], from_null))
    if measure.null is None or estimate.value is None or p is None:
        return estimate
    if reach is not None:
        small = max(p_of_small_bias(measure, fill, reach) for fill in fills)
        estimate = replace(estimate, p_small=small)
    if not measure.bounded:
        return estimate
    ends = [interval(measure, fill, error) for fill in fills]  # all that any clustering holds
    joined = min(low for low, _ in ends), max(high for _, high in ends)
    low, high = _agreeing(joined, measure.null, significant=p <= error)
    return replace(estimate, low=low, high=high)


def p_of_defended(
    estimate: Estimate, measure: Measure, ways: Sequence[WorstCaseRun]
) -> float | None:
    """Return the p-value that `defended` adds, without the interval, which takes longer.

    Args:
        estimate: The estimate from the answers that there are.
        measure: The metric.
        ways: The run with missing answers filled, for each way to cluster it.

    Returns:
        The p-value; None without a test.
    """
    fills = _known(ways)
    if not fills or ways[0].from_null is None:
        return _by_ends(estimate, measure, ways[0]).p
    if measure.null is None or estimate.value is None:
        return estimate.p
    return max(p_of_bias(measure, fill) for fill in fills)


def _known(ways: Sequence[WorstCaseRun]) -> list[WorstCaseSums]:
    return [
        filling.sums for filling in ways if filling.sums is not None and len(filling.sums.rows) > 1
    ]


def _agreeing(ends: tuple[float, float], null: float, *, significant: bool) -> tuple[float, float]:
    """Give the ends of an interval that holds "no bias" where none is shown, and else not: an end
    is found to seven digits, so that it could lie on the other side of a p-value near the error."""
    low, high = ends
    if not significant:
        return min(low, null), max(high, null)
    if high - null > null - low:
        return max(low, math.nextafter(null, math.inf)), high
    return low, min(high, math.nextafter(null, -math.inf))


def _by_ends(estimate: Estimate, measure: Measure, way: WorstCaseRun) -> Estimate:
    """Test a number other than a mean: a finding holds only if both ends are on one side."""
    if not way.missing:
        return estimate
    low, high = way.ends or (None, None)
    none = measure.null
    sure = low is not None and high is not None and none is not None and not low <= none <= high
    p = estimate.p if sure or estimate.p is None else 1.0
    bounds = Bounds(missing=way.missing, low=low, high=high)
    if way.interval is not None:
        bounds = IntervalBounds(missing=way.missing, low=low, high=high, interval=way.interval)
    return replace(estimate, p=p, bounds=bounds)


def defended_change(
    change: Change,
    measure: Measure,
    ways: Sequence[WorstCasePair | None],
    *,
    missing: int,
) -> Change:
    """Test a change, and add its interval, limits, p-value and worst-case bounds. A number without
    a test, or whose missing answers allow any value, has no new interval.

    Args:
        change: The change as it was estimated.
        measure: The metric that changed.
        ways: Both runs with missing answers filled, for each way to cluster them.
        missing: The number of pairs of which an answer is missing.
    """
    pairs = [pair for pair in ways if pair is not None and len(pair.missing)]
    lost = Bounds(missing=missing) if missing else None
    if change.difference is None:
        return replace(change, bounds=lost)
    effect = _effect(change, measure) if ways else change.effect
    if len(pairs) < len(ways) or not pairs:
        untested = replace(change, effect=effect, bounds=lost)
        return untested if not missing else replace(untested, low=None, high=None, limits=None)
    bounds = bounds_of_change(measure, pairs[0])
    if missing and not measure.bounded:
        return replace(change, effect=effect, bounds=bounds)
    test = ChangeTest.of(measure, pairs)
    if change.undefined == NO_SPREAD and not measure.bounded:
        return replace(change, effect=effect, p=test.p, bounds=bounds)
    low, high = test.interval(ALPHA)
    return replace(change, effect=effect, low=low, high=high, p=test.p, bounds=bounds, test=test,
                   limits=test.limits(ALPHA / 2))  # fmt: skip


def _effect(change: Change, measure: Measure) -> float:
    """Give the change that is tested: of the distance from the unbiased value, where there is
    one."""
    assert change.difference is not None
    center = measure.center
    if center is None or change.before is None or change.after is None:
        return change.difference
    return abs(change.after - center) - abs(change.before - center)
