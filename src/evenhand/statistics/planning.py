"""How many items a question needs, and what n items can show. All tests two-sided at `alpha`.

`power_of` and `detectable_change` are of t over clusters, after Holm, whose power is close to that
of the sign flips that decide. The others are normal approximations of one test. The far tail is
left out: a millionth of the power at alpha .05, power .8.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # its parts are loaded when first used

from evenhand.errors import Undefined, UserError
from evenhand.statistics._shared import FloatArray, open_share, t_quantile

# Two differences that share a run correlate by one half if all three runs vary alike.
_SHARED = 0.5
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_MOST_DF = 1e4  # from here on t is the normal distribution to four digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """`exact` is what the formula gives; `n` is rounded up to whole items."""

    exact: float
    cluster_size: float = 1.0

    @property
    def n(self) -> int:
        return _up(self.exact)

    @property
    def clusters(self) -> int:
        return _up(self.exact / self.cluster_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """The smallest true mean that n items would show with the wanted power."""

    mde: float
    design_effect: float
    n_effective: float


def design_effect(cluster_size: float = 1.0, icc: float = 0.0) -> float:
    """1 + (m − 1)·ICC: how many times more rows are needed than if they were independent.

    Of unequal clusters m is the size that a row meets, Σm_g²/Σm_g, not the mean size.
    Source: Kish 1965. Range: above 0. Undefined: an ICC so negative that nothing is left.
    """
    if not cluster_size >= 1:
        raise UserError(f"a cluster has at least one item, not {cluster_size}")
    if not -1 <= icc <= 1:
        raise UserError(f"a correlation lies in [-1, 1], not at {icc}")
    effect = 1 + (cluster_size - 1) * icc
    if effect <= 0:
        raise Undefined(f"no clusters of {cluster_size} can have a correlation of {icc}")
    return effect


def detectable_mean(
    n: float,
    sd: float,
    cluster_size: float = 1.0,
    icc: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Detectable:
    """(z_{1−α/2} + z_power)·sd·√(DEFF/n), for a mean of n items, `cluster_size` to a cluster.

    Source: Kish 1965; Bloom 1995. Range: above 0. Undefined: n = 0; as `design_effect`.
    """
    effect = design_effect(cluster_size, icc)
    if n == 0:
        raise Undefined("no items: nothing can be shown")
    _positive(n, "n")
    return Detectable(
        mde=_z(alpha, power) * _positive(sd, "sd") * math.sqrt(effect / n),
        design_effect=effect,
        n_effective=n / effect,
    )


def power_of(
    change: float, se: float, df: float, *, family: int = 1, together: int = 1, alpha: float = 0.05
) -> float:
    """The chance that a true change is shown after Holm over a family of `family` tests.

    One test: P(T > t_{1−α/(2m)}), T noncentral t with df degrees of freedom and change/se. Of
    `together` tests that must all be shown, such as a method against two others, the i-th smallest
    p must be within α/(m − i + 1); they share a run, so they correlate by one half.
    It takes nothing else in the family to be shown: what is makes the chance larger.
    Source: Johnson & Welch 1940; Holm 1979. Range: 0 to 1. Undefined: se = 0.
    """
    if se == 0:
        raise Undefined("no spread was seen, so that no chance can be computed from it")
    if not 1 <= together <= family:
        raise UserError(f"{together} of a family of {family} tests cannot be shown together")
    return _power(abs(change) / _positive(se, "se"), df, family, together, alpha)


def _power(distance: float, df: float, family: int, together: int, alpha: float) -> float:
    steps = [open_share(alpha, "alpha") / (family - i) for i in range(together)]
    alone = np.array([_one_power(distance, df, step) for step in steps])
    if together == 1:
        return float(alone[0])
    # Given what the shared run adds, the tests are independent: averaged over it.
    with np.errstate(divide="ignore"):
        reach = scipy.special.ndtri(alone)[:, None] + math.sqrt(_SHARED) * _NODES
    conditional = scipy.special.ndtr(reach / math.sqrt(1 - _SHARED))
    return float(_all_within(conditional) @ _WEIGHTS / _WEIGHTS.sum())


def _one_power(distance: float, df: float, alpha: float) -> float:
    if df > _MOST_DF:
        return float(scipy.special.ndtr(distance + scipy.special.ndtri(alpha / 2)))
    return float(1 - scipy.special.nctdtr(df, distance, t_quantile(df, 1 - alpha / 2)))


def _all_within(within: FloatArray) -> FloatArray:
    """The chance that of k alike tests at least i are within the i-th step, for every i. Row i of
    `within` is the chance of one test to be within step i."""
    tests = len(within)
    ways = {0: np.ones(within.shape[1])}  # tests placed so far -> chance, but for the k! orders
    for step, share in enumerate(np.diff(within, axis=0, prepend=0.0), 1):
        grown: dict[int, FloatArray] = {}
        for placed, chance in ways.items():
            for more in range(max(0, step - placed), tests - placed + 1):
                part = chance * share**more / math.factorial(more)
                grown[placed + more] = grown.get(placed + more, 0.0) + part
        ways = grown
    return math.factorial(tests) * ways[tests]


def detectable_change(
    se: float,
    df: float,
    *,
    family: int = 1,
    together: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float:
    """The smallest true change that is shown with that power: the inverse of `power_of`.

    2.80·se for one test and many clusters; 3.2·se in a family of 3; 4.2·se against two others in a
    family of 20. Source: Bloom 1995. Range: from 0. Always defined, but 0 for se = 0 means that no
    spread was seen, not that anything would be.
    """
    return se * _distance(df, family, together, alpha, open_share(power, "power"))


@cache
def _distance(df: float, family: int, together: int, alpha: float, power: float) -> float:
    """How many standard errors a change must be away for that power, by halving."""
    low, high = 0.0, 8.0
    while _power(high, df, family, together, alpha) < power:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        short = _power(middle, df, family, together, alpha) < power
        low, high = (middle, high) if short else (low, middle)
    return high


def items_needed(
    detect: float,
    sd: float,
    cluster_size: float = 1.0,
    icc: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Needed:
    """The inverse of `detectable_mean`: n = DEFF·((z_{1−α/2} + z_power)·sd/detect)².

    Measured on BBQ (UnifiedQA, ambiguous): sd of a +1/0/−1 score about 0.6 to 0.7; icc 0.10 for
    paired differences, 0.24 to 0.29 for one system.
    Source: as there. Range: above 0. Undefined: detect = 0; as `design_effect`.
    """
    effect = design_effect(cluster_size, icc)
    if detect == 0:
        raise Undefined("no number of items shows a difference of 0")
    exact = effect * (_z(alpha, power) * _positive(sd, "sd") / detect) ** 2
    return Needed(exact=exact, cluster_size=cluster_size)


def _z(alpha: float, power: float) -> float:
    return float(
        scipy.special.ndtri(1 - open_share(alpha, "alpha") / 2)
        + scipy.special.ndtri(open_share(power, "power"))
    )


def _positive(value: float, name: str) -> float:
    if not 0 < value < math.inf:
        raise UserError(f"{name} must be positive and finite, not {value}")
    return value


def _up(value: float) -> int:
    """Rounded up, but 100.00000000000001 is 100."""
    return max(1, math.ceil(value * (1 - 1e-12)))
