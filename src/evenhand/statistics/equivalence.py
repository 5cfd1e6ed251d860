"""Claims that a difference is small: equivalence, and being no worse than by a margin.

"Not significant" is no such claim. The margin is fixed before the data are seen. Each test takes
any estimate with a t distribution: `i = clustered_mean(…)`, then `tost(i.estimate, i.se, i.df, …)`.
"""

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from evenhand.errors import Undefined, UserError
from evenhand.statistics._shared import finite, open_share, same_length, t_above, t_quantile
from evenhand.statistics.clusters import Interval, naive_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Equivalent if the 1 − 2·alpha interval from `low` to `high` lies within ± margin."""

    estimate: float
    se: float
    df: float
    margin: float
    low: float
    high: float
    p_value: float
    alpha: float

    @property
    def equivalent(self) -> bool:
        return self.p_value < self.alpha


@dataclass(frozen=True, slots=True, kw_only=True)
class NonInferiority:
    """Not inferior if `low`, the one-sided 1 − alpha bound, lies above −margin."""

    estimate: float
    se: float
    df: float
    margin: float
    low: float
    p_value: float
    alpha: float

    @property
    def not_inferior(self) -> bool:
        return self.p_value < self.alpha


def tost(estimate: float, se: float, df: float, margin: float, alpha: float = 0.05) -> Equivalence:
    """Two one-sided tests: is the true value within ± margin?

    p = max(P(T > (estimate + margin)/se), P(T > (margin − estimate)/se)), T with df degrees of
    freedom. Source: Schuirmann 1987. Range: 0 to 1. Undefined: se = 0.
    """
    _check(se, df, margin)
    reach = t_quantile(df, 1 - open_share(alpha, "alpha")) * se
    return Equivalence(
        estimate=estimate,
        se=se,
        df=df,
        margin=margin,
        low=estimate - reach,
        high=estimate + reach,
        p_value=t_above(df, (margin - abs(estimate)) / se),  # the nearer margin decides
        alpha=alpha,
    )


def tost_paired(
    first: ArrayLike, second: ArrayLike, margin: float, alpha: float = 0.05
) -> Equivalence:
    """`tost` for the mean of first − second over independent pairs, n − 1 degrees of freedom.

    Undefined: fewer than two pairs; all differences equal.
    """
    i = _paired(first, second)
    return tost(i.estimate, i.se, i.df, margin, alpha)


def non_inferiority(
    estimate: float, se: float, df: float, margin: float, alpha: float = 0.025
) -> NonInferiority:
    """Is the true change above −margin? Higher is better: negate where lower is.

    p = P(T > (estimate + margin)/se). Source: Wellek 2010, chapter 1. Range: 0 to 1.
    alpha is one-sided; 0.025 (ours) agrees with the lower end of a printed 95 % interval.
    Undefined: se = 0.
    """
    _check(se, df, margin)
    return NonInferiority(
        estimate=estimate,
        se=se,
        df=df,
        margin=margin,
        low=estimate - t_quantile(df, 1 - open_share(alpha, "alpha")) * se,
        p_value=t_above(df, (estimate + margin) / se),
        alpha=alpha,
    )


def non_inferiority_paired(
    after: ArrayLike, before: ArrayLike, margin: float, alpha: float = 0.025
) -> NonInferiority:
    """`non_inferiority` for the mean of after − before over independent pairs.

    Undefined: fewer than two pairs; all differences equal.
    """
    i = _paired(after, before)
    return non_inferiority(i.estimate, i.se, i.df, margin, alpha)


def _paired(first: ArrayLike, second: ArrayLike) -> Interval:
    one, two = finite(first, "values"), finite(second, "values")
    same_length(one, two, "the two lists")
    return naive_mean(one - two)


def _check(se: float, df: float, margin: float) -> None:
    if not margin > 0:
        raise UserError(f"a margin is a positive distance, not {margin}")
    if not (se >= 0 and math.isfinite(se) and df > 0):
        raise UserError(f"no t distribution has standard error {se} and {df} degrees of freedom")
    if se == 0:
        raise Undefined(
            "no spread, so no t test: if nothing changed at all, compare the margin with "
            "proportions.zero_event_upper(clusters)"
        )
