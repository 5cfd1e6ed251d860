"""The clustered sign-flip test decides every claim, because missing answers cannot help it.

A t test can gain from a loss: an answer that turns out worse may lower the spread more than the
mean. The one-sided sign-flip test cannot: its p-value falls, and never rises, with every cluster's
sum. So the worst way in which missing answers could have come out is found by filling each of them
the worst way, and what holds then holds however they came out.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined
from evenhand.statistics._shared import ROUNDING, FloatArray

ENUMERABLE = 16  # our choice: 2¹⁶ subsets take a millisecond, and 16 clusters show p down to 10⁻⁵
DRAWS = 10_000
FEWER_DRAWS = 2_000  # our choice: for more than 5,000 clusters, so that a test stays below a second
_MANY = 5_000
_CACHED = 400  # our choice: subsets of so many clusters, 32 MB, are kept for the next test
_AT_ONCE = 4_000_000  # entries of the sign matrix held at once
_SEED = 20_250_301  # fixed: the same clusters are flipped in every test, so that p stays monotone


def p_of_columns(sums: ArrayLike) -> FloatArray:
    """Give the p-value of each column's mean being above 0, one-sided.

    p = share of subsets A of the clusters with Σ_{g in A} S_g ≤ 0, which is the share of sign
    patterns with a total at least as large as the one seen. All subsets for up to 16 clusters, else
    random ones and p = (1 + hits)/(1 + draws). Every p-value falls when a sum rises.
    Source: Fisher 1935; Phipson & Smyth 2010. Range: above 0 to 1. Undefined: no clusters.
    """
    table = _as_table(sums)
    slack = ROUNDING * np.abs(table).sum(axis=0)
    hits, subsets = np.zeros(table.shape[1]), 0
    for totals in _totals_of_subsets(table):
        hits += (totals <= slack).sum(axis=0)
        subsets += len(totals)
    if len(table) <= ENUMERABLE:
        return np.asarray(hits / subsets)
    return np.asarray((1 + hits) / (1 + subsets))


def lower_bounds(sums: ArrayLike, rows: ArrayLike, alpha: float) -> FloatArray:
    """Compute the one-sided lower confidence bound of each column's mean per row. It inverts the
    test of `p_of_columns`, so the bound is above 0 exactly where p ≤ alpha.

    A mean above θ is shown where few subsets of the clusters have a mean of at most θ, so the bound
    is an order statistic of the subsets' means. Source: Hartigan 1969, typical values. Range: −∞,
    where so few clusters show nothing, to the largest mean of a cluster.

    Args:
        sums: The sums of each cluster, one row per cluster.
        rows: The number of rows of each cluster, above 0.
        alpha: The one-sided error.

    Raises:
        Undefined: Without clusters.
    """
    table = _as_table(sums)
    slack = ROUNDING * np.abs(table).sum(axis=0)
    weights = np.asarray(rows, dtype=np.float64).reshape(-1, 1)
    parts = []
    for totals in _totals_of_subsets(np.hstack([table, weights])):
        size = totals[:, -1:]
        means = (totals[:, :-1] - slack) / np.where(size > 0, size, 1.0)
        parts.append(np.where(size > 0, means, -np.inf))
    means = np.concatenate(parts)
    sampled = len(table) > ENUMERABLE
    allowed = math.floor(alpha * (len(means) + sampled) + ROUNDING) - sampled
    if allowed < 0:
        return np.full(table.shape[1], -np.inf)
    return np.asarray(np.partition(means, allowed, axis=0)[allowed])


def _as_table(sums: ArrayLike) -> FloatArray:
    table = np.asarray(sums, dtype=np.float64)
    if not len(table):
        raise Undefined("no clusters")
    return table.reshape(len(table), -1)


def _totals_of_subsets(table: FloatArray) -> Iterator[FloatArray]:
    """The totals of subsets of the rows, the same ones for every table of so many rows: of all
    subsets for few rows, else of random ones, a part at a time."""
    if len(table) <= ENUMERABLE:
        yield _every_subset(table)
    elif len(table) <= _CACHED:
        yield _drawn(len(table)) @ table
    else:
        draws = DRAWS if len(table) <= _MANY else FEWER_DRAWS
        rng = np.random.default_rng(_SEED)
        size = max(1, _AT_ONCE // len(table))
        for start in range(0, draws, size):
            yield _subsets(rng, min(size, draws - start), len(table)) @ table


def subset_sums(table: FloatArray) -> tuple[FloatArray, int]:
    """Sum each column over subsets of the clusters.

    Returns:
        The sums, one row per subset, and what a count of them is raised by: 0 where every subset is
        there (up to 16 clusters), else 1, for the subset that was seen.
    """
    if not len(table):
        raise Undefined("no clusters")
    return np.concatenate(list(_totals_of_subsets(table))), int(len(table) > ENUMERABLE)


def p_above_zero(sums: ArrayLike) -> float:
    """Give the p-value of one mean being above 0, one-sided."""
    return float(p_of_columns(sums)[0])


def p_two_sided(above: ArrayLike, below: ArrayLike | None = None) -> float:
    """Give the p-value of the mean being other than 0: twice the smaller one-sided one. `below` are
    the sums against the claim of a mean below 0; those of `above` with the sign turned without it.
    """
    sums = np.asarray(above, dtype=np.float64).reshape(-1)
    other = -sums if below is None else np.asarray(below, dtype=np.float64)
    return min(1.0, 2 * float(p_of_columns(np.column_stack([sums, other])).min()))


def least_p(clusters: int) -> float:
    """Give the smallest two-sided p-value that so many clusters can have, all of one sign: 2^(1−G).
    Below it nothing is ever shown."""
    return min(1.0, 2.0 ** (1 - clusters))


def _every_subset(table: FloatArray) -> FloatArray:
    """The total of every subset of the rows, the empty one too."""
    totals = np.zeros((1, table.shape[1]))
    for row in table:
        totals = np.concatenate([totals, totals + row])
    return totals


def _subsets(rng: np.random.Generator, draws: int, clusters: int) -> FloatArray:
    octets = rng.integers(0, 256, size=(draws, -(-clusters // 8)), dtype=np.uint8)
    return np.unpackbits(octets, axis=1, count=clusters).astype(np.float64)


@lru_cache(maxsize=2)
def _drawn(clusters: int) -> FloatArray:
    return _subsets(np.random.default_rng(_SEED), DRAWS, clusters)


def sign_flip_without_spread(difference: float, clusters: int) -> float:
    """The two-sided p-value where every cluster changed by the same mean, so that t has no value.

    Of 2^G sign patterns only two are as extreme: 2^(1−G). Range: above 0 to 1; no change: 1.
    """
    return 1.0 if difference == 0 else float(2.0 ** (1 - clusters))
