"""Intervals of agreement, from what it is without each cluster in turn.

Resamples hold some clusters twice and others never, so their ranks have other ties than the data:
of 15 items, resampled intervals of ordinal alpha held the truth in 74 % of simulations
(docs/rating.md).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import Undefined
from evenhand.statistics._shared import FloatArray, added, open_share, t_quantile
from evenhand.statistics.bootstrap import Statistic, of_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Jackknifed:
    estimate: float
    low: float
    high: float
    confidence: float
    clusters: int


def jackknife_agreement(
    sums: ArrayLike, statistic: Statistic, *, confidence: float = 0.95
) -> Jackknifed:
    """An agreement of totals, at most 1, with a t interval on the scale ζ = log(1 − agreement).

    se² = (G−1)/G · Σ (ζ₋g − mean)², ζ₋g without cluster g; t with G − 1 degrees of freedom. One row
    of sums per cluster. Source: Tukey 1958; Efron & Tibshirani 1993, chapter 11. The scale is our
    choice: near 1 an agreement can be off by much downwards and by little upwards.
    Undefined: fewer than two clusters; no value, or no disagreement, with all or without one.
    """
    estimate, without = _left_out(sums, statistic)
    if estimate >= 1 or (without >= 1).any():
        raise Undefined("no disagreement, or none without one of the clusters")
    size, logs = len(without), np.log(1 - without)
    apart = logs - logs.mean()
    se = math.sqrt((size - 1) / size * float(apart @ apart))
    factor = math.exp(t_quantile(size - 1, (1 + open_share(confidence, "confidence")) / 2) * se)
    return Jackknifed(
        estimate=estimate,
        low=1 - (1 - estimate) * factor,
        high=1 - (1 - estimate) / factor,
        confidence=confidence,
        clusters=size,
    )


def jackknife_difference(
    first: ArrayLike, second: ArrayLike, statistic: Statistic, *, confidence: float = 0.95
) -> Jackknifed:
    """The first agreement minus the second over the same clusters.

    The distances to the ends of both are joined as in `shares.clustered_balance`, with the
    correlation ρ of their values without each cluster. Source: Zou 2007. Undefined: as above.
    """
    left = jackknife_agreement(first, statistic, confidence=confidence)
    right = jackknife_agreement(second, statistic, confidence=confidence)
    moved = [_left_out(sums, statistic)[1] for sums in (first, second)]
    x, y = (values - values.mean() for values in moved)
    both = math.sqrt(float(x @ x) * float(y @ y))
    rho = float(x @ y) / both if both else 0.0
    value = left.estimate - right.estimate
    return Jackknifed(
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
        raise Undefined("without one of the clusters there is no value")
    return estimate, without
