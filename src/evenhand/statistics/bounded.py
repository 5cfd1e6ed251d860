"""Claims about the mean of a bounded number, from few clusters of any shape.

A sign-flip or t test of one run needs clusters that are symmetric around their mean. Nothing makes
the clusters of a group symmetric: where most are slightly below 0 and few are far above, sign flips
"show" a mean below 0 that is not there. The test here needs no shape, only the ends of the number.

It moves one way only: a larger value in any cluster never raises the p-value of a mean above 0. So
a value that is missing, put in at its worst, cannot make a claim better. A t test has no such
property: one large value more can widen its interval.

Confidence limits by inverting the test that decides, so that an interval and an outcome agree.

A claim about clusters is linear: "the mean of c·x_g is above 0", where x_g holds the sums of one
cluster and c the coefficients. A confidence limit is the value at which the claim is just no longer
significant. Both tests here are monotone in every sum, so a limit exists and is unique.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy  # its parts are loaded when first used
from numpy.typing import ArrayLike

from evenhand.core.conclusions import Outcome
from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import ROUNDING, FloatArray, finite
from evenhand.statistics.sign_flips import lower_bounds, p_two_sided, subset_sums

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
    """Return the p-value of the claim that the mean is below a margin.

    It is `p_mean_above` of margin − value. Of clusters that are all 0 it is (1 − margin/largest)^G,
    what "0 of G" still allows. Where the margin is not well below `largest`, twice the margin is
    taken as the largest value.

    Args:
        values: One number per cluster.
        margin: The value that the mean should be below.
        largest: The largest number that a cluster can have.

    Returns:
        The p-value, from 0 to 1.

    Raises:
        Undefined: Without clusters.
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


_DIGITS = 12


class LinearTest(Protocol):
    """A one-sided test of linear claims about a table of sums, one row per cluster. The last column
    of the table is the size of the cluster."""

    def p_positive(self, claim: ArrayLike, room: float, unseen: float) -> float:
        """Return the p-value of "the mean of c·x_g + room·size_g is above 0".

        Args:
            claim: The coefficients c, one for each column of the table.
            room: What is added to each unit of size; the p-value never rises with it.
            unseen: The smallest value that a cluster that was not drawn can have.
        """


class SignFlips:
    """The sign-flip test: exact where the sign of each value is as likely + as −.

    Source: Fisher 1935; its inversion: Hartigan 1969.
    """

    def __init__(self, table: ArrayLike) -> None:
        values: FloatArray = np.asarray(table, dtype=np.float64)
        self._sums, self._added = subset_sums(values)
        self._slack = ROUNDING * float(np.abs(values).sum())
        self._turns: dict[bytes, tuple[int, FloatArray]] = {}

    def p_positive(self, claim: ArrayLike, room: float, unseen: float) -> float:  # noqa: ARG002
        always, turns = self._turning(np.asarray(claim, dtype=np.float64))
        hits = always + len(turns) - int(np.searchsorted(turns, room))
        return (hits + self._added) / (len(self._sums) + self._added)

    def _turning(self, claim: FloatArray) -> tuple[int, FloatArray]:
        """Give the room up to which each subset contradicts the claim, sorted, and how many do
        whatever the room is."""
        key = claim.tobytes()
        if key not in self._turns:
            value, size = self._slack - self._sums @ claim, self._sums[:, -1]
            turns = np.sort(value[size > 0] / size[size > 0])
            self._turns[key] = int((value[size <= 0] >= 0).sum()), turns
        return self._turns[key]


class BoundedMean:
    """Gaffke's test: needs no symmetry, and allows for one cluster that was not drawn
    (`bounded.p_mean_above`)."""

    def __init__(self, table: ArrayLike) -> None:
        self._table: FloatArray = np.asarray(table, dtype=np.float64)

    def p_positive(self, claim: ArrayLike, room: float, unseen: float) -> float:
        values = self._table @ np.asarray(claim, dtype=np.float64) + room * self._table[:, -1]
        if unseen >= 0:  # no cluster can contradict it
            return 0.0 if values.max(initial=0.0) > 0 else 1.0
        # Sums that are equal but for rounding are one value, so that they are summed up as one.
        return p_mean_above(np.round(values, _DIGITS), unseen)


ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class WorstCaseDifference:
    """A difference has one value per cluster, twice: with what is missing put where it makes the
    value smallest, and where it makes it largest. Where nothing is missing the two are one.

    `largest` is the largest value, on either side of 0, that a cluster not yet seen may have.
    """

    low: FloatArray
    high: FloatArray
    largest: float

    @property
    def clusters(self) -> int:
        return len(self.low)


def whole(values: ArrayLike, largest: float) -> WorstCaseDifference:
    """A difference of which nothing is missing."""
    per_cluster = np.asarray(values, dtype=np.float64)
    return WorstCaseDifference(per_cluster, per_cluster, largest)


def p_shifted(found: WorstCaseDifference) -> float:
    """The p-value against 0, two-sided: sign flips, with what is missing at its worst.

    Twice the smaller of two one-sided p-values. Source: `sign_flips`. Range: 0 to 1.
    """
    if not found.clusters:
        return 1.0
    return p_two_sided(found.high, -found.low)


def p_within(found: WorstCaseDifference, margin: float) -> float:
    """The p-value of lying within ± margin: the larger of two one-sided ones, with what is missing
    at its worst. Source: Schuirmann 1987 for the two sides, `bounded.p_below` for each."""
    if not found.clusters:
        return 1.0
    sides = (p_below(-found.low, margin, found.largest), p_below(found.high, margin, found.largest))
    return max(sides)


def limits_of(found: WorstCaseDifference, margin: float, error: float) -> tuple[float, float]:
    """Return the one-sided limits that invert `p_within`: both lie within ± margin exactly where
    its p-value is below `error`. Undefined: no clusters."""
    return -_upper(-found.low, found.largest, margin, error), _upper(
        found.high, found.largest, margin, error
    )


def _upper(values: FloatArray, largest: float, margin: float, error: float) -> float:
    """Return the smallest margin below which `p_below` shows the mean to be, its largest value as
    at the margin that decides."""
    reach = max(largest, 2 * margin)

    def p_above(turned: float) -> float:
        return p_mean_above(-turned - values, min(-turned - reach, -_TINY))

    most = max(reach, float(values.max(initial=0.0)))
    return -lowest_mean(p_above, -most, -float(values.mean()), error)


def shift_interval(
    found: WorstCaseDifference,
    read: ArrayLike,
    margin: float,
    error: float,
    alpha: float = ALPHA,
) -> tuple[float, float]:
    """Return the interval that agrees with `outcome_of`: it excludes 0 exactly where sign flips
    show a shift at `error`, and otherwise lies within ± margin exactly where `p_within` does.

    The end next to 0 is that of the sign flips, the far ends are the limits of Gaffke's bound, as
    of a change between two runs. Undefined: no clusters.

    Args:
        found: One value per cluster with what is missing at its worst, for the far ends.
        read: One value per cluster of the answers that are there, for the end next to 0.
        margin: The largest shift that is allowed.
        error: The two-sided error at which a shift is shown, adjusted for its family.
        alpha: The error of each far end.
    """
    values = finite(read, "values")
    low, high = limits_of(found, margin, alpha)
    within = -margin < low and high < margin
    low, high = min(low, float(values.mean())), max(high, float(values.mean()))
    ends = lower_bounds(np.column_stack([values, -values]), np.ones(values.size), error / 2)
    above, below = (float(end) for end in ends)
    if above > 0:
        return above, high if within else max(high, margin)
    if below > 0:
        return low if within else min(low, -margin), -below
    return min(low, 0.0), max(high, 0.0)


def rise_interval(
    at_worst: ArrayLike, read: ArrayLike, margin: float, largest: float, error: float
) -> tuple[float, float]:
    """Return the interval of a number that only a rise makes a fault: above 0 exactly where sign
    flips show a rise at `error`, below the margin exactly where `p_below` is below `ALPHA`.
    Undefined: no clusters.

    Args:
        at_worst: One value per cluster with what is missing at its worst, for the upper end.
        read: One value per cluster of the answers that are there, for the lower end.
        margin: The largest rise that is allowed.
        largest: The largest value that one cluster can have.
        error: The one-sided error at which a rise is shown.
    """
    values = finite(read, "values")
    high = max(_upper(finite(at_worst, "values"), largest, margin, ALPHA), float(values.mean()))
    low = float(lower_bounds(values, np.ones(values.size), error)[0])
    return (low if low > 0 else min(0.0, -_upper(-values, largest, margin, ALPHA))), high


def outcome_of(within: float, shifted: float, alpha: float = ALPHA) -> Outcome:
    """Return the outcome of two tests.

    A difference that is there and shown to be smaller than the margin is ruled out: that is what
    the margin is for. A whole family is ruled out only if every member is, so each is tested at
    `alpha` without adjustment (intersection-union: Berger 1982).

    Args:
        within: The p-value of the difference being within the margin (`p_within`).
        shifted: The p-value of there being a difference (`p_shifted`), adjusted for its family.
        alpha: The error of each test.
    """
    if within < alpha:
        return Outcome.RULED_OUT
    return Outcome.DETECTED if shifted <= alpha else Outcome.INCONCLUSIVE
