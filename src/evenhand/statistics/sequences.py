"""A run may stop as soon as its question is decided, by intervals that hold at every look.

A t interval holds at a size that was fixed beforehand; looked at after every block until it says
what one hopes for, it errs far more often than it states. A confidence sequence is an interval
after each cluster such that *all* of them hold the truth together with the stated confidence. So
one may look as often as one likes, and stop for any reason.

What is estimated is the mean over clusters of one bounded value each: of BBQ's s_amb, the mean over
templates of the mean of a template's answers (1 stereotyped, −1 against it, 0 neither), where
templates weigh the same. Where they do not, as a template with two questions next to others with
four, weights make it what a report prints: the mean over answers. Two runs are compared by each
cluster's difference, whose bounds are those of a difference: −2 to 2 for s_amb.

Clusters must come in an order that was drawn before anything was answered. Those that answer first
are not a random part of all.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.conclusions import Outcome
from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import FloatArray, finite, last_shown, open_share, same_length

# Our choice of what is staked: fixed shares of all one has, so that none depends on what was seen.
# One starts with the more on a share the larger it is, as the small ones have more time.
_STAKES = np.array([1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16])
_STARTS = _STAKES / _STAKES.sum()
_ROUNDING = 1e-9  # our choice: a mean of the rest outside its bounds by less is one of rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class AnytimeInterval:
    """An interval for a mean over clusters holds whatever made one look, and look again."""

    estimate: float | None  # None while a value is missing
    low: float
    high: float
    confidence: float
    clusters: int

    def outcome(self, margin: float) -> Outcome:
        """The whole interval decides: beyond ± margin on one side, within it, or neither.

        Any of these is wrong with at most the chance that the interval is, at whatever look it is
        read, so that the first decided verdict may end the run. Ends that have crossed refute every
        mean, which is rare in clusters of a drawn order and common in others: nothing is decided.
        """
        if not margin > 0:
            raise UserError(f"a margin is a positive distance, not {margin}")
        if self.low > self.high:
            return Outcome.INCONCLUSIVE
        if self.low >= margin or self.high <= -margin:
            return Outcome.DETECTED
        inside = -margin <= self.low and self.high <= margin
        return Outcome.RULED_OUT if inside else Outcome.INCONCLUSIVE


def anytime_mean(
    values: ArrayLike,
    values_if_larger: ArrayLike | None = None,
    *,
    within: tuple[float, float] = (-1.0, 1.0),
    weights: ArrayLike | None = None,
    of: float | None = None,
    confidence: float = 0.95,
) -> AnytimeInterval:
    """Compute a confidence sequence for the mean over clusters: all means that no bet against them
    has refuted.

    Each end is wrong with at most (1 − confidence)/2, at all looks together. The low end goes by
    `values` and the high end by `values_if_larger`. As `wealth` only rises with the values, a
    missing answer never makes the interval narrower. Source: Waudby-Smith & Ramdas 2024 (betting,
    also without replacement); Ryu & Bhatt 2024 (mixed stakes).

    Args:
        values: One value per cluster in the sampled order, with missing answers at their smallest.
        values_if_larger: The same with missing answers at their largest; None if no answer is
            missing.
        within: The smallest and the largest possible value.
        weights: How much each cluster counts, relative to the largest of all, asked or not: from 0
            to 1. Defaults to 1 for each.
        of: The weight of all clusters that exist, which is their number without weights. The
            interval is then for the mean over exactly these, and becomes a point once all are
            asked. None for the mean of all clusters that might have been sampled, which the
            intervals of a report are for.
        confidence: The two-sided confidence at all looks together.

    Raises:
        Undefined: Without clusters.
    """
    small = finite(values, "values")
    large = small if values_if_larger is None else finite(values_if_larger, "values")
    same_length(small, large, "smallest and largest values")
    w = np.ones_like(small) if weights is None else finite(weights, "weights")
    same_length(small, w, "values and weights")
    _check(small, large, w, within, of)
    limit = np.log(2 / (1 - open_share(confidence, "confidence")))

    def refuted(sample: FloatArray, mean: float, ends: tuple[float, float]) -> bool:
        return bool(log_wealth(sample, mean, within=ends, weights=w, of=of).max() >= limit)

    mirrored = (-within[1], -within[0])
    complete = np.array_equal(small, large)
    if of is not None and w.sum() >= of * (1 - 1e-9):  # all were asked: nothing is left to bet on
        low, high = float(small @ w / w.sum()), float(large @ w / w.sum())
    else:
        low = last_shown(lambda mean: refuted(small, mean, within), *within)
        high = -last_shown(lambda mean: refuted(-large, mean, mirrored), *mirrored)
    return AnytimeInterval(
        estimate=float(small @ w / w.sum()) if complete else None,
        low=low,
        high=high,
        confidence=confidence,
        clusters=small.size,
    )


def log_wealth(
    values: ArrayLike,
    mean: float,
    *,
    within: tuple[float, float] = (-1.0, 1.0),
    weights: ArrayLike | None = None,
    of: float | None = None,
) -> FloatArray:
    """Compute the log of what bets that the mean is above `mean` have won after each cluster.

    The bets start with 1 and stake a share s of it on each cluster in turn, which pays x/m, x and m
    being value and mean on a scale from 0 to 1: the factor is 1 − s + s·x/m. If the true mean is m
    or less, nobody gains on average, and the chance of *ever* having c times the start is at most
    1/c (Ville 1939). The 1 is split beforehand on five such shares, each kept to throughout. A
    cluster of weight w is staked on with w·s: the factor is 1 + s·w·(x/m − 1), which nobody gains
    by where the mean of w·x is m times that of w.

    Of a set of N clusters without replacement, the mean of those still to come takes the place of
    m: (N·m − sum so far)/(N − number so far), with weights in place of numbers. Every factor rises
    with x, with all earlier x and against m: a larger value never lowers it.

    Args:
        values: One value per cluster in the sampled order. Several rows are as many separate runs.
        mean: The mean to refute.
        within: The smallest and the largest possible value.
        weights: The weight of each cluster from 0 to 1. Defaults to 1 for each.
        of: The weight of all clusters that exist, for sampling without replacement; None with
            replacement.
    """
    low, high = within
    x = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    w = np.ones(x.shape[-1]) if weights is None else np.asarray(weights, dtype=np.float64)
    rest = np.full(x.shape, (mean - low) / (high - low))
    if of is not None:
        before = np.cumsum(w * x, axis=-1) - w * x
        rest = (of * rest - before) / (of - (np.cumsum(w) - w))
    gains = w * (x / np.maximum(rest, _ROUNDING) - 1)
    with np.errstate(divide="ignore"):  # who stakes all can lose all
        won = np.cumsum(np.log1p(_STAKES[:, None] * gains[..., None, :]), axis=-1)
    log_total = np.logaddexp.reduce(won + np.log(_STARTS)[:, None], axis=-2)
    log_total[rest < -_ROUNDING] = np.inf  # what is left cannot be so small: refuted
    return np.asarray(log_total)


def _check(
    small: FloatArray,
    large: FloatArray,
    weights: FloatArray,
    within: tuple[float, float],
    of: float | None,
) -> None:
    low, high = within
    if not weights.any():
        raise Undefined("no clusters")
    if weights.min() < 0 or weights.max() > 1:
        raise UserError("a weight is a part of the largest one, from 0 to 1")
    if not low < high:
        raise UserError(f"values lie between two ends, not between {low} and {high}")
    if (small > large).any() or small.min() < low or large.max() > high:
        raise UserError(f"every value lies within {low} to {high}, the smallest below the largest")
    if of is not None and of < weights.sum() - _ROUNDING:
        raise UserError(f"{weights.sum():g} clusters were seen of {of:g}")
