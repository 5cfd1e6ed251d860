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
    return _printed(auc_draws(scores, labels, clusters))


def auc_draws(scores: ArrayLike, labels: Sequence[bool], clusters: Clusters) -> Resampled | None:
    """The resamples behind `auc`."""
    ranks = _ranks_of(np.asarray(scores, dtype=np.float64))
    toxic = np.asarray(labels, dtype=np.float64)

    def value(times: Floats) -> Floats:
        positives, negatives = times @ toxic, times @ (1 - toxic)
        above = (ranks(times) * times) @ toxic - positives * (positives + 1) / 2
        return np.asarray(above / (positives * negatives))

    return _resampled(clusters, lambda: rows_bootstrap(clusters, value))


def spearman(first: ArrayLike, second: ArrayLike, clusters: Clusters) -> Ends | None:
    """The 95 % interval of `scorer_quality.spearman`; ranks are those within each resample."""
    sides = [_ranks_of(np.asarray(side, dtype=np.float64)) for side in (first, second)]

    def value(times: Floats) -> Floats:
        n = times.sum(axis=1, keepdims=True)
        x, y = (ranks(times) - (n + 1) / 2 for ranks in sides)  # the mean of ranks 1 … n
        together, *alone = ((times * a * b).sum(axis=1) for a, b in ((x, y), (x, x), (y, y)))
        return np.asarray(together / np.sqrt(alone[0] * alone[1]))

    return _printed(_resampled(clusters, lambda: rows_bootstrap(clusters, value)))


def kappa_at(
    first: ArrayLike, second: ArrayLike, threshold: float, clusters: Clusters
) -> Ends | None:
    """The 95 % interval of `scorer_quality.kappa_at`."""
    first_above, second_above = (
        np.asarray(side, dtype=np.float64) >= threshold for side in (first, second)
    )
    columns = np.column_stack(
        [first_above == second_above, first_above, second_above, np.ones(len(first_above))]
    ).astype(np.float64)

    def value(totals: Floats) -> Floats:
        agreed, yes_one, yes_two = (totals[:, column] / totals[:, 3] for column in range(3))
        by_chance = yes_one * yes_two + (1 - yes_one) * (1 - yes_two)
        return np.asarray((agreed - by_chance) / (1 - by_chance))

    def resample() -> Resampled:
        return cluster_bootstrap(cluster_sums(clusters, *columns.T), value)

    return _printed(_resampled(clusters, resample))


def calibration_error(scores: ArrayLike, targets: ArrayLike, clusters: Clusters) -> Ends | None:
    """The 95 % interval of `scorer_quality.calibration_error`. Our choice: that of percentiles and
    its mirror image at the figure, from the lower to the higher end. Noise only adds to a sum of
    absolute values, so that resamples lie above the figure, and this above the truth."""
    resampled = error_draws(scores, targets, clusters)
    if resampled is None:
        return None
    mirrored = 2 * resampled.estimate - resampled.high, 2 * resampled.estimate - resampled.low
    low, high = max(0.0, min(resampled.low, mirrored[0])), max(resampled.high, mirrored[1])
    return _printed(replace(resampled, low=low, high=high))


def error_draws(
    scores: ArrayLike, targets: ArrayLike, clusters: Clusters, more: ArrayLike | None = None
) -> Resampled | None:
    """The resamples behind `calibration_error`. A text with `more` is in no step: its distance is
    added to the sum of them as it is, and a sum below 0 is 0."""
    predicted = np.asarray(scores, dtype=np.float64)
    observed = np.asarray(targets, dtype=np.float64)
    added = np.zeros_like(predicted) if more is None else np.asarray(more, dtype=np.float64)
    places = steps(predicted)
    inside = (places[:, None] == np.unique(places)) & (added == 0)[:, None]
    columns = np.column_stack(
        [(predicted - observed)[:, None] * inside, added, np.ones(len(predicted))]
    )

    def value(totals: Floats) -> Floats:
        distances = np.abs(totals[:, :-2]).sum(axis=1) + totals[:, -2]
        return np.asarray(np.maximum(distances, 0.0) / totals[:, -1])

    def resample() -> Resampled:
        return cluster_bootstrap(cluster_sums(clusters, *columns.T), value, kind="percentile")

    return _resampled(clusters, resample)


def _resampled(clusters: Clusters, resample: Callable[[], Resampled]) -> Resampled | None:
    if len(set(clusters)) < LEAST:
        return None
    try:
        return resample()
    except Undefined:
        return None


def _printed(resampled: Resampled | None) -> Ends | None:
    return None if resampled is None or resampled.no_spread else Ends(resampled.low, resampled.high)


def _ranks_of(values: Floats) -> Callable[[Floats], Floats]:
    """A function that gives each row its rank within each resample, ties averaged."""
    order = np.argsort(values, kind="stable")
    _, first, index = np.unique(values[order], return_index=True, return_inverse=True)
    back = np.empty(len(values), dtype=np.int64)
    back[order] = index

    def ranks(times: Floats) -> Floats:
        copies = np.add.reduceat(times[:, order], first, axis=1)
        middle = np.cumsum(copies, axis=1) - copies + (copies + 1) / 2
        return np.asarray(middle[:, back])

    return ranks
