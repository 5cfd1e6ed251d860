"""Intervals by resampling whole clusters: a check on the t interval, and for other statistics.

A resample enters only through the sums over its clusters, so 10,000 draws are one matrix product.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its parts are loaded when first used
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import ROUNDING, FloatArray, IntArray, finite, open_share
from evenhand.statistics.clusters import cluster_codes

Statistic = Callable[[FloatArray], FloatArray]
"""Totals, one resample per row, one column per summed column → one value per resample."""

LEAST = 15  # our choice: with fewer clusters a resampled interval is too short to be printed
_BATCH = 1_000  # draws held at once; part of what a seed means, so it is not an argument
_CELLS = 2_000_000  # rows of all draws held at once: some hundred megabytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapInterval:
    """A bootstrap interval. `no_spread` as in `clusters.Interval`: a point, but not certainty."""

    estimate: float
    low: float
    high: float
    confidence: float
    se: float
    clusters: int
    draws: int
    kind: Literal["percentile", "bca"]
    least: float  # of all draws
    largest: float

    @property
    def no_spread(self) -> bool:
        return self.se == 0


def ratio_of_totals(totals: FloatArray) -> FloatArray:
    """First column over second: a mean if the second counts the rows. 0/0 has no value."""
    return totals[:, 0] / totals[:, 1]


def dz_of_totals(totals: FloatArray) -> FloatArray:
    """Cohen's dz from the sums of d, of d² and of 1, for an interval around `cohen_dz`."""
    total, squares, n = totals[:, 0], totals[:, 1], totals[:, 2]
    mean = total / n
    return mean / np.sqrt((squares - n * mean**2) / (n - 1))


def correlation_of_totals(totals: FloatArray) -> FloatArray:
    """Pearson's r from the sums of 1, x, y, x², y² and x·y: (n·Σxy − Σx·Σy) over
    √(n·Σx² − (Σx)²)·√(n·Σy² − (Σy)²). Range: −1 to 1. No value (0/0) where all x or all y are
    equal."""
    n, x, y, xx, yy, xy = totals.T
    r: FloatArray = (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))
    return r


def cluster_bootstrap(
    sums: ArrayLike,
    statistic: Statistic = ratio_of_totals,
    *,
    seed: int = 0,
    draws: int = 10_000,
    confidence: float = 0.95,
    kind: Literal["percentile", "bca"] = "bca",
) -> BootstrapInterval:
    """Compute a bootstrap interval of a statistic, drawing G of G clusters with replacement.

    Percentile: the ceil(q·B)-th smallest of B draws. BCa: the same with q shifted by the median
    bias z₀ = Φ⁻¹(share of draws below the estimate, ties half) and the acceleration a = Σd³ /
    (6·(Σd²)^1.5) of the leave-one-cluster-out values. Source: Efron 1987; Davison & Hinkley 1997,
    chapter 5. With few clusters the standard error is low by √((G−1)/G): prefer
    `clusters.clustered_mean` for a mean. Range: the statistic's.

    Args:
        sums: One row of sums per cluster, from `clusters.cluster_sums`.
        statistic: Maps totals of the columns, one row per draw, to values. Defaults to a ratio.
        seed: The seed of the draws.
        draws: The number of resamples, B.
        confidence: The two-sided confidence of the interval.
        kind: The kind of interval: "bca" or "percentile".

    Raises:
        UserError: With fewer than two draws.
        Undefined: With fewer than two clusters; without a value on the data or on any draw (0/0:
            too few clusters carry the denominator); for BCa also if every draw is on one side of
            the estimate.
    """
    if draws < 2:
        raise UserError(f"{draws} draws show no spread; 10,000 are usual")
    table, estimate = _prepared(sums, statistic)
    rng = np.random.default_rng(seed)
    batches = [min(_BATCH, draws - start) for start in range(0, draws, _BATCH)]
    parts = [_values(statistic, _weights(rng, size, len(table)) @ table) for size in batches]
    values = _defined(np.concatenate(parts))
    shares = _tails(confidence)
    if _constant(values):
        values = np.full_like(values, estimate)
    elif kind == "bca":
        shares = _bca_shares(shares, values, estimate, _jackknife(table, statistic))
    low, high = (_order_statistic(values, np.ones(draws, np.int64), share) for share in shares)
    return BootstrapInterval(
        estimate=estimate,
        low=low,
        high=high,
        confidence=confidence,
        se=float(values.std(ddof=1)),
        clusters=len(table),
        draws=draws,
        kind=kind,
        least=float(values.min()),
        largest=float(values.max()),
    )


def rows_bootstrap(
    clusters: Sequence[Hashable],
    statistic: Statistic,
    *,
    seed: int = 0,
    draws: int = 1_000,
    confidence: float = 0.95,
) -> BootstrapInterval:
    """Compute the percentile interval of a statistic that needs the rows themselves, such as one of
    ranks.

    Source: Davison & Hinkley 1997, chapter 5.

    Args:
        clusters: The cluster of each row.
        statistic: Maps counts to values: one row per resample, one column per data row, with how
            often the resample contains that data row.
        seed: The seed of the draws.
        draws: The number of resamples.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: With fewer than two clusters, or without a value on the data or on any draw.
    """
    codes = cluster_codes(clusters)
    groups = int(codes.max()) + 1 if codes.size else 0
    if groups < 2:
        raise Undefined(f"{groups} cluster(s): there is nothing to resample")
    estimate = float(_values(statistic, np.ones((1, codes.size)))[0])
    rng, at_once = np.random.default_rng(seed), max(1, _CELLS // codes.size)
    sizes = [min(at_once, draws - start) for start in range(0, draws, at_once)]
    parts = [
        _values(statistic, _weights(rng, n, groups)[:, codes].astype(np.float64)) for n in sizes
    ]
    values = _defined(np.concatenate([[estimate], *parts]))[1:]
    ones = np.ones(draws, np.int64)
    low, high = (_order_statistic(values, ones, share) for share in _tails(confidence))
    return BootstrapInterval(
        estimate=estimate,
        low=low,
        high=high,
        confidence=confidence,
        se=0.0 if _constant(values) else float(values.std(ddof=1)),
        clusters=groups,
        draws=draws,
        kind="percentile",
        least=float(values.min()),
        largest=float(values.max()),
    )


def _prepared(sums: ArrayLike, statistic: Statistic) -> tuple[FloatArray, float]:
    table = np.asarray(sums, dtype=np.float64)
    if table.ndim != 2:
        raise UserError("sums must have one row per cluster and one column per summed column")
    if len(table) < 2:
        raise Undefined(f"{len(table)} cluster(s): there is nothing to resample")
    return table, of_all(table, statistic)


def of_all(sums: FloatArray, statistic: Statistic) -> float:
    """The statistic of all clusters together. Undefined: it has no value on the data."""
    estimate = float(_values(statistic, sums.sum(axis=0, keepdims=True))[0])
    if not math.isfinite(estimate):
        raise Undefined("the statistic has no value on the data: 0/0")
    return estimate


def _values(statistic: Statistic, totals: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return statistic(totals)


def _defined(values: FloatArray) -> FloatArray:
    lost = int((~np.isfinite(values)).sum())
    if lost:
        raise Undefined(f"{lost} of {values.size} resamples have no value: too few clusters do")
    return values


def _weights(rng: np.random.Generator, draws: int, clusters: int) -> IntArray:
    """How often each cluster is in each draw: multinomial, by counting uniform picks."""
    picks = rng.integers(clusters, size=(draws, clusters))
    picks += clusters * np.arange(draws)[:, None]
    return np.bincount(picks.ravel(), minlength=draws * clusters).reshape(draws, clusters)


def _tails(confidence: float) -> tuple[float, float]:
    beyond = (1 - open_share(confidence, "confidence")) / 2
    return beyond, 1 - beyond


def _order_statistic(values: FloatArray, times: IntArray, share: float) -> float:
    """The ceil(share·N)-th smallest of N = Σ times values; share·N is first freed of rounding."""
    order = np.argsort(values)
    upto = np.cumsum(times[order])
    rank = min(max(math.ceil(round(share * int(upto[-1]), 6)), 1), int(upto[-1]))
    return float(values[order][np.searchsorted(upto, rank)])


def _constant(values: FloatArray) -> bool:
    return float(np.ptp(values)) <= ROUNDING * float(np.abs(values).max())


def _jackknife(table: FloatArray, statistic: Statistic) -> FloatArray:
    return _values(statistic, table.sum(axis=0) - table)


def _bca_shares(
    shares: tuple[float, float], values: FloatArray, estimate: float, without: FloatArray
) -> tuple[float, float]:
    below = float((np.mean(values < estimate) + np.mean(values <= estimate)) / 2)
    if not 0 < below < 1:
        raise Undefined("every draw lies on one side of the estimate; use kind='percentile'")
    if not np.isfinite(without).all():
        raise Undefined("leaving out one of the clusters gives no value; use kind='percentile'")
    gaps = without.mean() - without
    spread = float((gaps**2).sum()) ** 1.5
    acceleration = float((gaps**3).sum()) / (6 * spread) if spread else 0.0
    bias = float(scipy.special.ndtri(below))
    low, high = (_bca_share(share, bias, acceleration) for share in shares)
    return low, high


def _bca_share(share: float, bias: float, acceleration: float) -> float:
    z = bias + float(scipy.special.ndtri(share))
    if acceleration * z >= 1:
        raise Undefined("one cluster outweighs the others too far for BCa; use kind='percentile'")
    return float(scipy.special.ndtr(bias + z / (1 - acceleration * z)))


def cohen_dz(differences: ArrayLike) -> float:
    """Paired: mean of the differences over their standard deviation.

    dz = d̄ / s_d (n − 1 in s_d). Source: Cohen 1988, chapter 2. Range: any.
    Undefined: fewer than two differences; all of them equal (x/0).
    """
    values = finite(differences, "differences")
    deviation = _deviation(values, "differences")
    return float(values.mean()) / deviation


def _deviation(values: FloatArray, name: str) -> float:
    if values.size < 2:
        raise Undefined(f"{values.size} {name}: a standard deviation needs two")
    deviation = float(values.std(ddof=1))
    if deviation <= ROUNDING * float(np.abs(values).max()):
        raise Undefined(f"all {name} are equal: x/0")
    return deviation
