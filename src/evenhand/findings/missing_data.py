"""An estimate and a change are held to their missing answers: what these could change, and what may
be claimed all the same."""

import math
from collections.abc import Sequence
from dataclasses import replace

from evenhand.findings import worst_case
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
from evenhand.findings.worst_case import WorstCasePair, WorstCaseRun, WorstCaseSums


def defended(
    estimate: Estimate,
    measure: Measure,
    ways: Sequence[WorstCaseRun],
    reach: float | None,
    error: float = ALPHA,
) -> Estimate:
    """Add what the missing answers could change, and the p-value against "no bias". Of several ways
    to cluster, the largest p-value counts. The interval of a bounded number is the inversion of the
    test, at this error, so that it holds "no bias" exactly where none is shown."""
    fills, from_null = _known(ways), ways[0].from_null
    if not fills or from_null is None:
        return _by_ends(estimate, measure, ways[0])
    bounds = worst_case.bounds(measure, fills[0], from_null)
    if measure.null is None or estimate.value is None:
        return replace(estimate, bounds=bounds)
    small = [
        worst_case.p_of_small_bias(measure, fill, reach) for fill in fills if reach is not None
    ]
    p = max(worst_case.p_of_bias(measure, fill) for fill in fills)
    return replace(
        with_ends(replace(estimate, p=p), measure, fills, error),
        p_small=max(small, default=None),
        bounds=bounds,
    )


def with_ends(
    estimate: Estimate, measure: Measure, fills: Sequence[WorstCaseSums], error: float
) -> Estimate:
    """Give a bounded number the interval of its own test: over several ways to cluster, all that
    any of them holds."""
    if not measure.bounded or measure.null is None or estimate.p is None:
        return estimate
    ends = [worst_case.interval(measure, fill, error) for fill in fills]
    joined = min(low for low, _ in ends), max(high for _, high in ends)
    low, high = _agreeing(joined, measure.null, significant=estimate.p <= error)
    return replace(estimate, low=low, high=high)


def p_of_defended(
    estimate: Estimate, measure: Measure, ways: Sequence[WorstCaseRun]
) -> float | None:
    """Give the p-value that `defended` adds, without the interval, which takes longer."""
    fills = _known(ways)
    if not fills or ways[0].from_null is None:
        return _by_ends(estimate, measure, ways[0]).p
    if measure.null is None or estimate.value is None:
        return estimate.p
    return max(worst_case.p_of_bias(measure, fill) for fill in fills)


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
    """Of a number that is no mean: what is shown holds only if its ends lie on one side."""
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
    """Test a change: add what is tested, its interval, its limits, p-value and bounds. A number
    without a test, or whose missing answers could be anything, keeps what it has or has none."""
    pairs = [pair for pair in ways if pair is not None and len(pair.missing)]
    lost = Bounds(missing=missing) if missing else None
    if change.difference is None:
        return replace(change, bounds=lost)
    effect = _effect(change, measure) if ways else change.effect
    if len(pairs) < len(ways) or not pairs:
        untested = replace(change, effect=effect, bounds=lost)
        return untested if not missing else replace(untested, low=None, high=None, limits=None)
    bounds = worst_case.bounds_of_change(measure, pairs[0])
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
