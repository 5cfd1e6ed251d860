"""Claims about the mean of a bounded number, from few clusters of any shape.

A sign-flip or t test of one run needs clusters that are symmetric around their mean. Nothing makes
the clusters of a group symmetric: where most are slightly below 0 and few are far above, sign flips
"show" a mean below 0 that is not there. The test here needs no shape, only the ends of the number.

It moves one way only: a larger value in any cluster never raises the p-value of a mean above 0. So
a value that is missing, put in at its worst, cannot make a claim better. A t test has no such
property: one large value more can widen its interval.
"""

import math
from collections.abc import Callable

import numpy as np
import scipy  # its parts are loaded when first used
from numpy.typing import ArrayLike

from evenhand.errors import Undefined, UserError
from evenhand.statistics._shared import FloatArray, finite

_STEPS, _FAR = 128, 8.0  # our choice: the integral is then right to three digits and more
_PLACES = np.linspace(0.0, _FAR, _STEPS + 1)
_ALONG = 1j * np.sinh(_PLACES)  # the line of integration, in units of its width
_WEIGHTS = np.cosh(_PLACES) * np.where(_PLACES == 0, 0.5, 1) * (_FAR / _STEPS) / math.pi
_ROUNDS, _PARTS = 3, np.linspace(0, 1, 18)[1:-1]  # any point near the saddle will do
_TINY = 1e-300


def p_mean_above(values: ArrayLike, least: float) -> float:
    """Give the p-value, one-sided, of the mean being above 0.

    p = P(Σ w_g·x_g + w_0·least ≤ 0), the weights w uniform on the simplex: the mean of what was
    seen and of one more cluster with the smallest value there can be. Of zeros and ones, each less
    a share m, it is the exact binomial test of a share above m. Source: Gaffke 2005; Learned-Miller
    & Thomas 2019. The p-value is computed exactly, by inverting the moment generating function.

    Args:
        values: One number per cluster, counted from the value that is to be excluded.
        least: The smallest such number that a cluster can have, below 0.

    Returns:
        The p-value, from 0 to 1. Undefined: no clusters.
    """
    sample = finite(values, "values")
    if not sample.size:
        raise Undefined("no clusters")
    if not -math.inf < least < 0:
        raise UserError(f"the smallest value of a cluster must be below 0, not {least}")
    if sample.max() <= 0:
        return 1.0
    return _share_of_weights_below(np.append(sample, min(least, float(sample.min()))))


def lowest_mean(
    p_above: Callable[[float], float], least: float, most: float, error: float
) -> float:
    """Give the lower end of a confidence interval: the inversion of a one-sided test.

    Args:
        p_above: The p-value of the mean being above a value; it rises with the value.
        least: The smallest mean there can be.
        most: The largest mean that is asked about, such as the one that was seen.
        error: The share of cases in which the end may lie above the mean.

    Returns:
        The value at which the p-value is `error`; `least` where it is larger everywhere, and `most`
        where it is smaller.
    """
    reach = 1e-9 * (most - least)
    ends = (least + reach, most - reach)

    def beyond(value: float) -> float:
        return math.log(max(p_above(value), _TINY) / error)

    if most <= least or beyond(ends[0]) >= 0:
        return least
    if beyond(ends[1]) <= 0:
        return most
    return float(scipy.optimize.brentq(beyond, *ends, xtol=1e-7 * (most - least)))


def p_below(values: ArrayLike, margin: float, largest: float) -> float:
    """Is the mean below `margin`? A small p-value shows it: `p_mean_above` of margin − value.

    Of clusters that are all 0 this is (1 − margin/largest)^G, what "0 of G" still allows.
    Where `margin` is not well below `largest`, twice the margin is taken as the largest value.
    Range: 0 to 1. Undefined: no clusters.
    """
    return p_mean_above(margin - finite(values, "values"), margin - max(largest, 2 * margin))


def _share_of_weights_below(values: FloatArray) -> float:
    """P(Σ E_g·x_g ≤ 0) with independent standard exponential weights E, some x above 0 and some
    below: the integral of M(s)/(−s) over the line through its saddle point, M(s) = Π 1/(1 − s·x).
    """
    ordered = np.sort(values) / np.abs(values).max()
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    x, times = ordered[first], np.diff(np.append(first, len(ordered))).astype(np.float64)
    low, high = 1 / x[0], 0.0  # M is finite between them, as x[0] < 0
    for _ in range(_ROUNDS):
        tried = low + (high - low) * _PARTS
        slopes = (1 / (1 - tried[:, None] * x)) @ (times * x) - 1 / tried  # they rise with s
        index = int((slopes < 0).sum())
        low = float(tried[index - 1]) if index else low
        high = float(tried[index]) if index < len(tried) else high
    s = (low + high) / 2
    ratios = x / (1 - s * x)
    width = 1 / math.sqrt(float(times @ ratios**2) + 1 / s**2)
    line = width * _ALONG
    # M(s + line) is M(s) over the product of 1 − line·x/(1 − s·x); where that is beyond what a
    # number can hold, nothing is added.
    factors = 1 - line[:, None] * ratios
    with np.errstate(over="ignore", invalid="ignore"):
        if len(x) < len(ordered):
            factors **= times
        heights = (_WEIGHTS / (factors.prod(axis=1) * -(s + line))).real
    at_saddle = math.exp(-float(times @ np.log(1 - s * x)))
    share = width * at_saddle * float(heights[np.isfinite(heights)].sum())
    return min(1.0, max(0.0, share))
