"""Shares of independent trials: wins, refusals, biased answers; and what "0 of n" still allows.

Rows of one template or scenario are not independent: for those use `clusters`.
"""

import math
from dataclasses import dataclass

import scipy  # its stats are loaded when first used: that takes most of a second

from evenhand.errors import Undefined, UserError
from evenhand.statistics._shared import open_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """`events` of `n`, with an interval for the share behind them."""

    estimate: float
    low: float
    high: float
    confidence: float
    events: int
    n: int


def wilson(events: int, n: int, confidence: float = 0.95) -> Proportion:
    """The interval of shares p₀ that a score test does not reject: near its nominal coverage.

    (p̂ + z²/2n ± z·√(p̂(1 − p̂)/n + z²/4n²)) / (1 + z²/n). Source: Wilson 1927; Brown, Cai &
    DasGupta 2001. Range: within 0 to 1. Undefined: n = 0.
    """
    _check(events, n)
    # The lower tail: 0.5 + confidence / 2 would round to 1, whose quantile is not finite.
    z = -float(scipy.special.ndtri((1 - open_share(confidence, "confidence")) / 2))
    share = events / n
    middle = share + z**2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = ((middle + end) / (1 + z**2 / n) for end in (-half, half))
    return Proportion(
        estimate=share,
        low=low if events else 0.0,
        high=high if events < n else 1.0,
        confidence=confidence,
        events=events,
        n=n,
    )


def clopper_pearson(events: int, n: int, confidence: float = 0.95) -> Proportion:
    """The exact interval: never covers less than its confidence, often more.

    Beta quantiles B(α/2; k, n − k + 1) and B(1 − α/2; k + 1, n − k).
    Source: Clopper & Pearson 1934. Range: within 0 to 1. Undefined: n = 0.
    """
    _check(events, n)
    interval = scipy.stats.binomtest(events, n).proportion_ci(open_share(confidence, "confidence"))
    return Proportion(
        estimate=events / n,
        low=float(interval.low),
        high=float(interval.high),
        confidence=confidence,
        events=events,
        n=n,
    )


def zero_event_upper(n: float, confidence: float = 0.95) -> float:
    """What share "0 of n" still allows, one-sided: the p with (1 − p)ⁿ = 1 − confidence.

    1 − (1 − confidence)^(1/n). Source: Clopper & Pearson 1934. Range: 0 to 1. Undefined: n = 0.
    """
    _check(0, n)
    return -math.expm1(math.log1p(-open_share(confidence, "confidence")) / n)


def _check(events: int, n: float) -> None:
    if not 0 <= events <= n:
        raise UserError(f"{events} of {n} is not a share")
    if n == 0:
        raise Undefined("no trials: 0/0")
