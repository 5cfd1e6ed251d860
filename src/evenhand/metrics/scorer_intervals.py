"""Intervals of a scorer's figures that are no shares: texts of one template are drawn together.

None, where there is none to print: fewer than 15 clusters, a resample without a value, or figures
that are the same in every resample, which is no certainty.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import Undefined
from evenhand.metrics.scorer_quality import steps
from evenhand.statistics.bootstrap import LEAST, Resampled, cluster_bootstrap, rows_bootstrap
from evenhand.statistics.clusters import cluster_sums

Floats = NDArray[np.float64]
Clusters = Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of a 95 % interval."""

    low: float
    high: float


def auc(scores: ArrayLike, labels: Sequence[bool], clusters: Clusters) -> Ends | None:
    """The 95 % interval of `scorer_quality.auc`."""
    ranks = _ranks_of(np.asarray(scores, dtype=np.float64))
    toxic = np.asarray(labels, dtype=np.float64)

    def value(times: Floats) -> Floats:
        positives, negatives = times @ toxic, times @ (1 - toxic)
        above = (ranks(times) * times) @ toxic - positives * (positives + 1) / 2
        return np.asarray(above / (positives * negatives))

    return _printed(clusters, lambda: rows_bootstrap(clusters, value))


def spearman(first: ArrayLike, second: ArrayLike, clusters: Clusters) -> Ends | None:
    """The 95 % interval of `scorer_quality.spearman`; ranks are those within each resample."""
    sides = [_ranks_of(np.asarray(side, dtype=np.float64)) for side in (first, second)]

    def value(times: Floats) -> Floats:
        n = times.sum(axis=1, keepdims=True)
        one, two = (ranks(times) - (n + 1) / 2 for ranks in sides)  # the mean of ranks 1 … n
        together, *alone = (
            (times * a * b).sum(axis=1) for a, b in ((one, two), (one, one), (two, two))
        )
        return np.asarray(together / np.sqrt(alone[0] * alone[1]))

    return _printed(clusters, lambda: rows_bootstrap(clusters, value))


def kappa_at(
    first: ArrayLike, second: ArrayLike, threshold: float, clusters: Clusters
) -> Ends | None:
    """The 95 % interval of `scorer_quality.kappa_at`."""
    one, two = (np.asarray(side, dtype=np.float64) >= threshold for side in (first, second))
    columns = np.column_stack([one == two, one, two, np.ones(len(one))]).astype(np.float64)

    def value(totals: Floats) -> Floats:
        agreed, yes_one, yes_two = (totals[:, place] / totals[:, 3] for place in range(3))
        by_chance = yes_one * yes_two + (1 - yes_one) * (1 - yes_two)
        return np.asarray((agreed - by_chance) / (1 - by_chance))

    return _printed(clusters, lambda: cluster_bootstrap(cluster_sums(clusters, *columns.T), value))


def calibration_error(scores: ArrayLike, targets: ArrayLike, clusters: Clusters) -> Ends | None:
    """The 95 % interval of `scorer_quality.calibration_error`. Our choice: that of percentiles and
    its mirror image at the figure, from the lower to the higher end. Noise only adds to a sum of
    absolute values, so that resamples lie above the figure, and this above the truth."""
    given, wanted = np.asarray(scores, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    places = steps(given)
    off = (given - wanted)[:, None] * (places[:, None] == np.unique(places))
    columns = np.column_stack([off, np.ones(len(given))])

    def value(totals: Floats) -> Floats:
        return np.asarray(np.abs(totals[:, :-1]).sum(axis=1) / totals[:, -1])

    def both_ways() -> Resampled:
        sums = cluster_sums(clusters, *columns.T)
        found = cluster_bootstrap(sums, value, kind="percentile")
        mirrored = 2 * found.estimate - found.high, 2 * found.estimate - found.low
        low, high = max(0.0, min(found.low, mirrored[0])), max(found.high, mirrored[1])
        return replace(found, low=low, high=high)

    return _printed(clusters, both_ways)


def _printed(clusters: Clusters, resample: Callable[[], Resampled]) -> Ends | None:
    if len(set(clusters)) < LEAST:
        return None
    try:
        found = resample()
    except Undefined:
        return None
    return None if found.no_spread else Ends(found.low, found.high)


def _ranks_of(values: Floats) -> Callable[[Floats], Floats]:
    """A function that gives each row its rank within each resample, ties averaged."""
    order = np.argsort(values, kind="stable")
    _, first, place = np.unique(values[order], return_index=True, return_inverse=True)
    back = np.empty(len(values), dtype=np.int64)
    back[order] = place

    def ranks(times: Floats) -> Floats:
        copies = np.add.reduceat(times[:, order], first, axis=1)
        middle = np.cumsum(copies, axis=1) - copies + (copies + 1) / 2
        return np.asarray(middle[:, back])

    return ranks
