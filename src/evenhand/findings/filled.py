"""Missing answers are filled the best and the worst way, so that no finding is better for them.

A measure with a smallest and a largest value says what a missing answer can add to a sum. All
claims are tested by sign flips, whose p-value is monotone: the worst filling is the worst of all
ways in which the missing answers could have come out, and one more of them never helps.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.findings.found import Bounds
from evenhand.findings.measures import Measure
from evenhand.statistics.sign_flips import p_above_zero, p_of_columns

Sums = NDArray[np.float64]
_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Filled:
    """The sums of one run's clusters with every missing answer at its smallest and at its largest,
    and how many are missing."""

    low: Sums
    high: Sums
    rows: Sums  # answers, missing ones too
    missing: Sums

    @classmethod
    def of(cls, measure: Measure, y: Sums, n: Sums, missing: Sums) -> "Filled":
        least, most = measure.range
        return cls(y + _times(least, missing), y + _times(most, missing), n + missing, missing)


def _times(value: float, missing: Sums) -> Sums:
    """An unbounded value times no missing answer is 0."""
    return np.where(missing > 0, value, 0.0) * missing


# -- one run ---------------------------------------------------------------------------------------


def p_of_bias(measure: Measure, found: Filled) -> float:
    """Give the p-value of a number being other than "no bias", its missing answers at "no bias" or
    beyond it: what is shown must be shown by the answers that there are."""
    assert measure.null is not None
    if not measure.bounded and found.missing.any():
        return 1.0
    none = measure.null * found.rows
    return two_sided(found.low - none, none - found.high)


def p_of_small_bias(measure: Measure, found: Filled, reach: float) -> float:
    """Give the p-value, one-sided, of the distance from "no bias" being below `reach`.

    One cluster of the usual size is added at each end of the measure's range: what was never seen
    in so many clusters may still be there.
    """
    assert measure.null is not None
    if not measure.bounded:
        return 1.0
    least, most = measure.range
    size = float(found.rows.mean())
    below = (measure.null + reach) * found.rows - found.high
    above = found.low - (measure.null - reach) * found.rows
    ends = size * (measure.null + reach - most), size * (least - measure.null + reach)
    columns = np.column_stack([np.append(below, ends[0]), np.append(above, ends[1])])
    return float(p_of_columns(columns).max())


def bounds(measure: Measure, found: Filled, apart: Sums) -> Bounds | None:
    """Give what the number could be if the missing answers were known, and how many of them would
    overturn that it is other than "no bias". `apart` says how far from it the known ones are."""
    missing, rows = int(found.missing.sum()), float(found.rows.sum())
    if not missing:
        return None
    if not measure.bounded:
        return Bounds(missing=missing)
    low, high = float(found.low.sum()) / rows, float(found.high.sum()) / rows
    overturn = None
    if measure.null is not None:
        none, up = measure.null * found.rows, float(apart.sum()) > 0
        best, worst = (found.high, found.low) if up else (-found.low, -found.high)
        sign = none if up else -none
        claim = apart if up else -apart
        overturn = tipping(claim, best - sign, worst - sign, found.missing)
    return Bounds(missing=missing, low=low, high=high, overturn=overturn)


# -- two runs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilledPair:
    """The sums of two runs over the same clusters, and of what is known in both."""

    before: Filled
    after: Filled
    missing: Sums  # pairs of which one answer is missing
    difference: Sums  # after − before over the pairs that are complete


def bounds_of_change(measure: Measure, pair: FilledPair) -> Bounds | None:
    """Give what the change could be if the missing answers were known, and how many of them would
    overturn that there is one."""
    missing, rows = int(pair.missing.sum()), float(pair.after.rows.sum())
    if not missing:
        return None
    if not measure.bounded:
        return Bounds(missing=missing)
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


# -- what it would take ----------------------------------------------------------------------------


def tipping(claim: Sums, best: Sums, worst: Sums, missing: Sums) -> int | None:
    """Count how many missing answers, if each came out the worst way and the others the best way,
    would overturn that the mean is above 0; None where all of them would not, or where the complete
    answers show nothing.

    Those that cost the claim most are taken first, so that it takes no fewer by another choice of
    clusters than by this one, as far as means within a cluster tell.
    """
    if not len(claim) or _p(claim) > _ALPHA or _p(worst) <= _ALPHA:
        return None
    total = int(missing.sum())
    each = (best - worst) / np.maximum(missing, 1)
    order = np.argsort(-each, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(missing[order])[:-1]])
    least, most = 0, total
    while least < most:
        tried = (least + most) // 2
        taken = np.zeros(len(claim))
        taken[order] = np.clip(tried - before, 0, missing[order])
        if _p(best - each * taken) > _ALPHA:
            most = tried
        else:
            least = tried + 1
    return least


def _p(sums: Sums) -> float:
    """Give twice the one-sided p-value of the mean being above 0."""
    return min(1.0, 2 * p_above_zero(sums))


def two_sided(above: Sums, below: Sums) -> float:
    """Give the p-value of either claim, as a two-sided test has it."""
    return min(1.0, 2 * float(p_of_columns(np.column_stack([above, below])).min()))
