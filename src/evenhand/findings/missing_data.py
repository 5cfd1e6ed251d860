"""An estimate and a change are held to their missing answers: what these could change, and what may
be claimed all the same."""

import math
from collections.abc import Sequence
from dataclasses import replace

from evenhand.findings import worst_case
from evenhand.findings.change_test import ChangeTest
from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.estimates import NO_SPREAD, Bounds, Change, Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.worst_case import Filled, FilledPair, Filling


def defended(
    found: Estimate,
    measure: Measure,
    ways: Sequence[Filling],
    reach: float | None,
    error: float = ALPHA,
) -> Estimate:
    """Add what the missing answers could change, and the p-value against "no bias". Of several ways
    to cluster, the largest p-value counts. The interval of a bounded number is the inversion of the
    test, at this error, so that it holds "no bias" exactly where none is shown."""
    known, from_null = _known(ways), ways[0].from_null
    if not known or from_null is None:
        return _by_ends(found, measure, ways[0])
    bounds = worst_case.bounds(measure, known[0], from_null)
    if measure.null is None or found.value is None:
        return replace(found, bounds=bounds)
    small = [worst_case.p_of_small_bias(measure, one, reach) for one in known if reach is not None]
    p = max(worst_case.p_of_bias(measure, one) for one in known)
    return replace(
        with_ends(replace(found, p=p), measure, known, error),
        p_small=max(small, default=None),
        bounds=bounds,
    )


def with_ends(found: Estimate, measure: Measure, known: Sequence[Filled], error: float) -> Estimate:
    """Give a bounded number the interval of its own test: over several ways to cluster, all that
    any of them holds."""
    if not measure.bounded or measure.null is None or found.p is None:
        return found
    ends = [worst_case.interval(measure, one, error) for one in known]
    joined = min(low for low, _ in ends), max(high for _, high in ends)
    low, high = _agreeing(joined, measure.null, shown=found.p <= error)
    return replace(found, low=low, high=high)


def p_of_defended(found: Estimate, measure: Measure, ways: Sequence[Filling]) -> float | None:
    """Give the p-value that `defended` adds, without the interval, which takes longer."""
    known = _known(ways)
    if not known or ways[0].from_null is None:
        return _by_ends(found, measure, ways[0]).p
    if measure.null is None or found.value is None:
        return found.p
    return max(worst_case.p_of_bias(measure, one) for one in known)


def _known(ways: Sequence[Filling]) -> list[Filled]:
    return [one.sums for one in ways if one.sums is not None and len(one.sums.rows) > 1]


def _agreeing(ends: tuple[float, float], null: float, *, shown: bool) -> tuple[float, float]:
    """Give the ends of an interval that holds "no bias" where none is shown, and else not: an end
    is found to seven digits, so that it could lie on the other side of a p-value near the error."""
    low, high = ends
    if not shown:
        return min(low, null), max(high, null)
    if high - null > null - low:
        return max(low, math.nextafter(null, math.inf)), high
    return low, min(high, math.nextafter(null, -math.inf))


def _by_ends(found: Estimate, measure: Measure, way: Filling) -> Estimate:
    """Of a number that is no mean: what is shown holds only if its ends lie on one side."""
    if not way.missing:
        return found
    low, high = way.ends or (None, None)
    none = measure.null
    sure = low is not None and high is not None and none is not None and not low <= none <= high
    p = found.p if sure or found.p is None else 1.0
    return replace(found, p=p, bounds=Bounds(missing=way.missing, low=low, high=high))


def defended_change(
    change: Change,
    measure: Measure,
    ways: Sequence[FilledPair | None],
    *,
    missing: int,
) -> Change:
    """Test a change: add what is tested, its interval, its limits, p-value and bounds. A number
    without a test, or whose missing answers could be anything, keeps what it has or has none."""
    known = [pair for pair in ways if pair is not None and len(pair.missing)]
    lost = Bounds(missing=missing) if missing else None
    if change.difference is None:
        return replace(change, bounds=lost)
    effect = _effect(change, measure) if ways else change.effect
    if len(known) < len(ways) or not known:
        untested = replace(change, effect=effect, bounds=lost)
        return untested if not missing else replace(untested, low=None, high=None, limits=None)
    bounds = worst_case.bounds_of_change(measure, known[0])
    if missing and not measure.bounded:
        return replace(change, effect=effect, bounds=bounds)
    test = ChangeTest.of(measure, known)
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
