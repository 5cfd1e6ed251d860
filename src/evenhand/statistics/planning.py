"""How many items a question needs, and what n items can show. All tests two-sided at `alpha`.

Normal approximations that leave out the far tail: a millionth of the power at alpha .05, power .8.
"""

import math
from dataclasses import dataclass

from scipy.special import ndtri

from evenhand.errors import Undefined, UserError
from evenhand.statistics._shared import open_share, probability
from evenhand.statistics.effects import cohen_h


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


def items_for_two_proportions(
    first: float, second: float, alpha: float = 0.05, power: float = 0.8
) -> Needed:
    """Items per arm, two independent arms: n = 2·((z_{1−α/2} + z_power)/h)², h = `cohen_h`.

    Source: Cohen 1988, chapter 6. Range: above 0. Undefined: equal shares.
    """
    effect = cohen_h(first, second)
    if effect == 0:
        raise Undefined("equal shares: no number of items shows a difference of 0")
    return Needed(exact=2 * (_z(alpha, power) / effect) ** 2)


def pairs_for_mcnemar(
    fixed: float, broken: float, alpha: float = 0.05, power: float = 0.8
) -> Needed:
    """Paired items, given the shares of all items that a change fixes and breaks.

    n = (z_{1−α/2}·√(f + b) + z_power·√(f + b − (f − b)²))² / (f − b)². Source: Connor 1987.
    Range: above 0. Undefined: equal shares.
    """
    discordant = probability(fixed, "fixed") + probability(broken, "broken")
    if discordant > 1:
        raise UserError(f"fixed {fixed} and broken {broken} are shares of the same items")
    net = fixed - broken
    if net == 0:
        raise Undefined("as many fixed as broken: no number of items shows a difference of 0")
    wide = float(ndtri(1 - open_share(alpha, "alpha") / 2)) * math.sqrt(discordant)
    narrow = float(ndtri(open_share(power, "power"))) * math.sqrt(discordant - net**2)
    return Needed(exact=((wide + narrow) / net) ** 2)


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


def detectable_change(se: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The true change that a comparison with this standard error shows with that power.

    (z_{1−α/2} + z_power)·se: 2.80·se as a rule. Source: Bloom 1995. Range: from 0. Always defined,
    but 0 for se = 0 means that no spread was seen, not that anything would be.
    """
    return _z(alpha, power) * se


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
    return float(ndtri(1 - open_share(alpha, "alpha") / 2) + ndtri(open_share(power, "power")))


def _positive(value: float, name: str) -> float:
    if not 0 < value < math.inf:
        raise UserError(f"{name} must be positive and finite, not {value}")
    return value


def _up(value: float) -> int:
    """Rounded up, but 100.00000000000001 is 100."""
    return max(1, math.ceil(value * (1 - 1e-12)))
