"""How far raters agree beyond what chance would give.

For scores on a scale use `krippendorff_alpha` (ordinal or interval) or `quadratic_weighted_kappa`:
Fleiss' kappa takes 3 against 4 for as large a disagreement as 0 against 10.

Each of them is a function of sums over subjects: `…_sums` gives one row of them per subject and
`…_of_totals` the value, so that `jackknife.jackknife_agreement` can put an interval around it.

Intervals of agreement, from what it is without each cluster in turn.

Resamples hold some clusters twice and others never, so their ranks have other ties than the data:
of 15 items, resampled intervals of ordinal alpha held the truth in 74% of simulations
(docs/annotation.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import (
    ROUNDING,
    FloatArray,
    IntArray,
    added,
    counts,
    finite,
    open_share,
    same_length,
    t_quantile,
)
from evenhand.statistics.bootstrap import Statistic, of_all


@dataclass(frozen=True, slots=True, kw_only=True)
class JackknifeInterval:
    estimate: float
    low: float
    high: float
    confidence: float
    clusters: int


def jackknife_agreement(
    sums: ArrayLike, statistic: Statistic, *, confidence: float = 0.95
) -> JackknifeInterval:
    """Estimate an agreement from totals, with a t interval on the scale ζ = log(1 − agreement).

    se² = (G−1)/G · Σ (ζ₋g − mean)², ζ₋g without cluster g; t with G − 1 degrees of freedom. Source:
    Tukey 1958; Efron & Tibshirani 1993, chapter 11. The scale is our choice: near 1 an agreement
    can be off by much downwards and by little upwards.

    Args:
        sums: One row of sums per cluster.
        statistic: Computes the agreement, at most 1, from the totals of the columns.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: With fewer than two clusters, or without a value or any disagreement, for all
            clusters or with one left out.
    """
    estimate, without = _left_out(sums, statistic)
    if estimate >= 1 or (without >= 1).any():
        raise Undefined("no disagreement, or none without one of the clusters")
    size, logs = len(without), np.log(1 - without)
    apart = logs - logs.mean()
    se = math.sqrt((size - 1) / size * float(apart @ apart))
    factor = math.exp(t_quantile(size - 1, (1 + open_share(confidence, "confidence")) / 2) * se)
    return JackknifeInterval(
        estimate=estimate,
        low=1 - (1 - estimate) * factor,
        high=1 - (1 - estimate) / factor,
        confidence=confidence,
        clusters=size,
    )


def jackknife_difference(
    first: ArrayLike, second: ArrayLike, statistic: Statistic, *, confidence: float = 0.95
) -> JackknifeInterval:
    """Estimate the first agreement minus the second over the same clusters.

    The distances to the ends of both are joined as in `shares.clustered_balance`, with the
    correlation ρ of their values without each cluster. Source: Zou 2007.

    Args:
        first: One row of sums per cluster.
        second: The sums of the agreement to subtract, with the same clusters in the same order.
        statistic: Computes an agreement, at most 1, from the totals of the columns.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: If `jackknife_agreement` has no value for one of them.
    """
    left = jackknife_agreement(first, statistic, confidence=confidence)
    right = jackknife_agreement(second, statistic, confidence=confidence)
    moved = [_left_out(sums, statistic)[1] for sums in (first, second)]
    x, y = (values - values.mean() for values in moved)
    both = math.sqrt(float(x @ x) * float(y @ y))
    rho = float(x @ y) / both if both else 0.0
    value = left.estimate - right.estimate
    return JackknifeInterval(
        estimate=value,
        low=value - added(left.estimate - left.low, right.high - right.estimate, rho),
        high=value + added(left.high - left.estimate, right.estimate - right.low, rho),
        confidence=confidence,
        clusters=left.clusters,
    )


def _left_out(sums: ArrayLike, statistic: Statistic) -> tuple[float, FloatArray]:
    """The statistic of all clusters, and without each."""
    table = np.asarray(sums, dtype=np.float64)
    if len(table) < 2:
        raise Undefined(f"{len(table)} cluster(s): there is none to leave out")
    estimate = of_all(table, statistic)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = statistic(table.sum(axis=0) - table)
    if not np.isfinite(without).all():
        raise Undefined("leaving out one of the clusters gives no value")
    return estimate, without


Level = Literal["nominal", "ordinal", "interval"]
Ratings = Sequence[Sequence[float | None]] | ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Shares of agreeing pairs of raters: seen, and by chance."""

    observed: float
    by_use: float  # chance if raters use the categories as often as they did
    subjects: int
    raters: int


def rater_agreement(table: Sequence[Sequence[int]] | ArrayLike) -> Agreement:
    """The parts of Fleiss' kappa. `table`: one row per subject, one column per category, counts.

    observed = mean over subjects of Σ n_j(n_j − 1) / (r(r − 1)); by_use = Σ p_j².
    Source: Fleiss 1971. Range: 0 to 1. Undefined: no subjects; one rater; unequal numbers of
    raters (there `krippendorff_alpha` still has a value).
    """
    cells = counts(table)
    raters = cells.sum(axis=1)
    if not cells.size or not raters.any():
        raise Undefined("no ratings")
    if np.ptp(raters):
        raise Undefined("subjects have unequal numbers of raters; use krippendorff_alpha")
    r, shares = int(raters[0]), cells.sum(axis=0) / cells.sum()
    if r < 2:
        raise Undefined("one rater a subject: nobody to agree with")
    return Agreement(
        observed=float((cells * (cells - 1)).sum()) / (len(cells) * r * (r - 1)),
        by_use=float(shares @ shares),
        subjects=len(cells),
        raters=r,
    )


def fleiss_sums(table: Sequence[Sequence[int]] | ArrayLike) -> FloatArray:
    """A row per subject: 1, its share of agreeing pairs, and the share of each category."""
    raters = rater_agreement(table).raters
    cells = counts(table)
    agreeing = (cells * (cells - 1)).sum(axis=1) / (raters * (raters - 1))
    return np.column_stack([np.ones(len(cells)), agreeing, cells / raters])


def fleiss_of_totals(totals: FloatArray) -> FloatArray:
    """Fleiss' kappa from totals of `fleiss_sums`; NaN where one category alone is in use."""
    observed, shares = totals[:, 1] / totals[:, 0], totals[:, 2:] / totals[:, :1]
    by_use = (shares**2).sum(axis=1)
    several = np.count_nonzero(totals[:, 2:], axis=1) > 1
    return np.where(several, (observed - by_use) / np.where(several, 1 - by_use, 1), np.nan)


def krippendorff_alpha(raters_by_units: Ratings, level: Level) -> float:
    """1 − D_o/D_e: disagreement within units over disagreement between any two ratings.

    From coincidences o_ck = Σ_units (n_uc·n_uk − [c = k]·n_uc)/(m_u − 1) and a squared distance:
    nominal [c ≠ k], interval (c − k)², ordinal (ratings from c to k, half of those at the ends)².
    Source: Krippendorff 2011 (Computing Krippendorff's Alpha-Reliability). None or NaN = not rated;
    units with fewer than two ratings pair with nothing and drop out. Range: at most 1.
    Undefined: no unit with two ratings; all paired ratings equal (0/0).
    """
    values, uses = _uses(raters_by_units)
    each = uses / _others(uses)
    together = uses.T @ each - np.diag(each.sum(axis=0))
    return of_all(together.reshape(1, -1), _alpha(values, level))


def alpha_sums(raters_by_units: Ratings, level: Level) -> tuple[FloatArray, Statistic]:
    """A row of coincidences per unit, 0 where it has no two ratings, and alpha of their totals.

    It has a column for every two values, so it is for marks on a scale.
    """
    values, uses = _uses(raters_by_units)
    each = (uses / _others(uses))[:, :, None]
    together = each * uses[:, None, :] - each * np.eye(values.size)
    return together.reshape(len(uses), -1), _alpha(values, level)


def quadratic_weighted_kappa(
    first: ArrayLike, second: ArrayLike, scale: tuple[float, float] | None = None
) -> float:
    """Compute the quadratic-weighted kappa of two raters: 1 − mean (x_i − y_i)² / mean over all i,
    j of (x_i − y_j)².

    The usual matrix form with weights (i − j)², whose norm cancels. Source: Cohen 1968. Range: −1
    to 1.

    Args:
        first: The ratings of the first rater.
        second: The ratings of the second rater, in the same order.
        scale: The smallest and the largest rating allowed; it does not change the value.

    Raises:
        UserError: If a rating is outside the scale.
        Undefined: Without ratings, or if all ratings of both are equal (0/0).
    """
    x, y = finite(first, "ratings"), finite(second, "ratings")
    same_length(x, y, "the two raters")
    both = np.concatenate([x, y])
    if not both.size:
        raise Undefined("no ratings")
    if scale is not None and (both.min() < scale[0] or both.max() > scale[1]):
        raise UserError(f"a rating lies outside the scale {scale[0]} to {scale[1]}")
    if np.ptp(both) == 0:
        raise Undefined("all ratings are equal: 0/0")
    return of_all(weighted_sums(x, y), weighted_of_totals)


def weighted_sums(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """A row per subject for the weighted kappa of two raters, 0 where one of them is NaN.

    1, x, y, x² + y², (x − y)²; ratings count from their common mean, which changes no distance.
    """
    first_ratings, second_ratings = (
        np.asarray(ratings, dtype=np.float64) for ratings in (first, second)
    )
    both = ~(np.isnan(first_ratings) | np.isnan(second_ratings))
    if not both.any():
        return np.zeros((first_ratings.size, 5))
    middle = np.concatenate([first_ratings[both], second_ratings[both]]).mean()
    x, y = np.where(both, first_ratings - middle, 0.0), np.where(both, second_ratings - middle, 0.0)
    return np.column_stack([both, x, y, x**2 + y**2, (x - y) ** 2])


def weighted_of_totals(totals: FloatArray) -> FloatArray:
    """The quadratic weighted kappa from totals of `weighted_sums`; NaN where all are equal."""
    x, y, squares, apart = (totals[:, 1:] / totals[:, :1]).T
    by_chance = squares - 2 * x * y
    some = by_chance > ROUNDING * squares
    return np.where(some, 1 - apart / np.where(some, by_chance, 1), np.nan)


def _uses(raters_by_units: Ratings) -> tuple[FloatArray, IntArray]:
    """The distinct values, and how often each unit got each; 0 where it has no two ratings."""
    ratings = np.asarray(raters_by_units, dtype=np.float64)
    if ratings.ndim != 2:
        raise UserError("ratings must have one row per rater and one column per unit")
    if np.isinf(ratings).any():
        raise Undefined("an infinite rating has no distance to another")
    paired = np.where((~np.isnan(ratings)).sum(axis=0) >= 2, ratings, np.nan)
    values = np.unique(paired[~np.isnan(paired)])
    if not values.size:
        raise Undefined("no unit has two ratings")
    if values.size == 1:
        raise Undefined("all ratings are equal: 0/0")
    return values, (paired[:, :, None] == values).sum(axis=0)


def _others(uses: IntArray) -> IntArray:
    """How many ratings of its unit each rating is paired with."""
    return np.asarray(np.maximum(uses.sum(axis=1, keepdims=True) - 1, 1), dtype=np.int64)


def _alpha(values: FloatArray, level: Level) -> Statistic:
    """1 − D_o/D_e from coincidences of these values, one table of them per row."""

    def alpha(totals: FloatArray) -> FloatArray:
        together = totals.reshape(-1, values.size, values.size)
        used = together.sum(axis=2)
        distance = _squared_distance(values, used, level)
        by_chance = np.einsum("rc,rck,rk->r", used, distance, used) / (used.sum(axis=1) - 1)
        return np.asarray(1 - (together * distance).sum(axis=(1, 2)) / by_chance)

    return alpha


def _squared_distance(values: FloatArray, used: FloatArray, level: Level) -> FloatArray:
    """A table of distances for each row of `used`, how often each value is."""
    if level == "interval":
        places = np.broadcast_to(values, used.shape)
    elif level == "ordinal":
        # the middle of each value's ratings, in order
        places = np.cumsum(used, axis=1) - used / 2
    else:
        return np.broadcast_to(1 - np.eye(values.size), (*used.shape, values.size))
    return np.asarray((places[:, :, None] - places[:, None, :]) ** 2, dtype=np.float64)
