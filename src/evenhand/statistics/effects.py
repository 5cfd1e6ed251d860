"""How large a difference is, free of its scale. For an interval around one: `bootstrap`."""

import math

import numpy as np
import scipy  # its parts are loaded when first used
from numpy.typing import ArrayLike

from evenhand.errors import Undefined
from evenhand.statistics._shared import ROUNDING, FloatArray, finite, probability


def cohen_dz(differences: ArrayLike) -> float:
    """Paired: mean of the differences over their standard deviation.

    dz = d̄ / s_d (n − 1 in s_d). Source: Cohen 1988, chapter 2. Range: any.
    Undefined: fewer than two differences; all of them equal (x/0).
    """
    values = finite(differences, "differences")
    deviation = _deviation(values, "differences")
    return float(values.mean()) / deviation


def hedges_gz(differences: ArrayLike, *, exact: bool = True) -> float:
    """Paired: dz without its upward bias in small samples, dz · J(n − 1).

    Source: Hedges 1981. Range: any. Undefined: as `cohen_dz`, and for fewer than three differences.
    """
    values = finite(differences, "differences")
    return cohen_dz(values) * hedges_correction(values.size - 1, exact=exact)


def hedges_correction(df: int, *, exact: bool = True) -> float:
    """J(m) = Γ(m/2) / (√(m/2)·Γ((m − 1)/2)), or approximately 1 − 3/(4m − 1).

    Source: Hedges 1981. Range: 0 to 1. Undefined: m < 2, where the bias that
    it removes is infinite.
    """
    if df < 2:
        raise Undefined(f"{df} degrees of freedom: the correction needs at least 2")
    if not exact:
        return 1 - 3 / (4 * df - 1)
    half = df / 2
    return math.exp(
        float(scipy.special.gammaln(half) - scipy.special.gammaln(half - 0.5))
    ) / math.sqrt(half)


def cohen_d_pooled(first: ArrayLike, second: ArrayLike) -> float:
    """Two groups: difference of the means over the pooled standard deviation.

    d = (x̄₁ − x̄₂)/s_p, s_p² = (Σ(x₁ − x̄₁)² + Σ(x₂ − x̄₂)²)/(n₁ + n₂ − 2). Source: Cohen 1988.
    Range: any. Undefined: an empty group; fewer than three values in all; no spread in either.
    """
    one, two = finite(first, "values"), finite(second, "values")
    if not one.size or not two.size or one.size + two.size < 3:
        raise Undefined("a pooled deviation needs two groups and three values")
    centred = np.concatenate([one - one.mean(), two - two.mean()])
    largest = max(float(np.abs(one).max()), float(np.abs(two).max()))
    pooled = math.sqrt(float(centred @ centred) / (centred.size - 2))
    if pooled <= ROUNDING * largest:
        raise Undefined("neither group has any spread: x/0")
    return float(one.mean() - two.mean()) / pooled


def cliffs_delta(first: ArrayLike, second: ArrayLike) -> float:
    """Two groups, ranks only: P(first > second) − P(first < second), over all pairs.

    δ = (#(x > y) − #(x < y)) / (n₁·n₂). Source: Cliff 1993. Range: −1 to 1.
    Undefined: an empty group.
    """
    one, two = finite(first, "values"), np.sort(finite(second, "values"))
    if not one.size or not two.size:
        raise Undefined("an empty group: no pairs to compare")
    smaller = np.searchsorted(two, one, side="left").sum()
    not_larger = np.searchsorted(two, one, side="right").sum()
    larger = one.size * two.size - not_larger
    return float(smaller - larger) / (one.size * two.size)


def cohen_h(first: float, second: float) -> float:
    """Two shares: 2·asin√p₁ − 2·asin√p₂. Source: Cohen 1988, chapter 6. Range: −π to π.

    Always defined for shares.
    """
    one, two = probability(first, "first"), probability(second, "second")
    return 2 * math.asin(math.sqrt(one)) - 2 * math.asin(math.sqrt(two))


def _deviation(values: FloatArray, name: str) -> float:
    if values.size < 2:
        raise Undefined(f"{values.size} {name}: a standard deviation needs two")
    deviation = float(values.std(ddof=1))
    if deviation <= ROUNDING * float(np.abs(values).max()):
        raise Undefined(f"all {name} are equal: x/0")
    return deviation
