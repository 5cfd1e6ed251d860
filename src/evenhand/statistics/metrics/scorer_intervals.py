"""Intervals of a scorer's figures other than shares: texts of one template are drawn together.

None, where there is none to print: fewer than 15 clusters, a resample without a value, or figures
that are the same in every resample, which does not make them certain.

What a scorer's figures could be if the texts without a score had one, and intervals that hold
them against it.

No interval here gets better when one text more has no score: each end is as far on the bad side as
any scores from 0 to 1 could put it.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.core.errors import Undefined
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.bootstrap import (
    LEAST,
    BootstrapInterval,
    cluster_bootstrap,
    rows_bootstrap,
)
from evenhand.statistics.clusters import cluster_sums
from evenhand.statistics.metrics import scorer_quality as quality
from evenhand.statistics.metrics.scorer_quality import steps
from evenhand.statistics.proportions import wilson

Clusters = Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class IntervalEnds:
    """The ends of a 95% interval."""

    low: float
    high: float


def auc(scores: ArrayLike, labels: Sequence[bool], clusters: Clusters) -> IntervalEnds | None:
    """Compute the 95% interval of `scorer_quality.auc`.

    Args:
        scores: The score of each text.
        labels: Whether each text is toxic.
        clusters: The cluster of each text.

    Returns:
        The ends; None where there are none.
    """
    return _printed(auc_draws(scores, labels, clusters))


def auc_draws(
    scores: ArrayLike, labels: Sequence[bool], clusters: Clusters
) -> BootstrapInterval | None:
    """Resample the area under the ROC curve for `auc`.

    Args:
        scores: The score of each text.
        labels: Whether each text is toxic.
        clusters: The cluster of each text.

    Returns:
        The resamples; None where the value is undefined.
    """
    ranks = _ranks_of(np.asarray(scores, dtype=np.float64))
    toxic = np.asarray(labels, dtype=np.float64)

    def value(times: FloatArray) -> FloatArray:
        positives, negatives = times @ toxic, times @ (1 - toxic)
        above = (ranks(times) * times) @ toxic - positives * (positives + 1) / 2
        return np.asarray(above / (positives * negatives))

    return _resampled(clusters, lambda: rows_bootstrap(clusters, value))


def spearman(first: ArrayLike, second: ArrayLike, clusters: Clusters) -> IntervalEnds | None:
    """Compute the 95% interval of `scorer_quality.spearman`; ranks are those within each resample.

    Args:
        first: The scores of one scorer.
        second: The scores of the other scorer, in the same order.
        clusters: The cluster of each text.

    Returns:
        The ends; None where there are none.
    """
    sides = [_ranks_of(np.asarray(side, dtype=np.float64)) for side in (first, second)]

    def value(times: FloatArray) -> FloatArray:
        n = times.sum(axis=1, keepdims=True)
        x, y = (ranks(times) - (n + 1) / 2 for ranks in sides)  # the mean of ranks 1 … n
        together, *alone = ((times * a * b).sum(axis=1) for a, b in ((x, y), (x, x), (y, y)))
        return np.asarray(together / np.sqrt(alone[0] * alone[1]))

    return _printed(_resampled(clusters, lambda: rows_bootstrap(clusters, value)))


def kappa_at(
    first: ArrayLike, second: ArrayLike, threshold: float, clusters: Clusters
) -> IntervalEnds | None:
    """Compute the 95% interval of `scorer_quality.kappa_at`.

    Args:
        first: The scores of one scorer.
        second: The scores of the other scorer, in the same order.
        threshold: The smallest score that counts as toxic.
        clusters: The cluster of each text.

    Returns:
        The ends; None where there are none.
    """
    first_above, second_above = (
        np.asarray(side, dtype=np.float64) >= threshold for side in (first, second)
    )
    columns = np.column_stack(
        [first_above == second_above, first_above, second_above, np.ones(len(first_above))]
    ).astype(np.float64)

    def value(totals: FloatArray) -> FloatArray:
        agreed, yes_one, yes_two = (totals[:, column] / totals[:, 3] for column in range(3))
        by_chance = yes_one * yes_two + (1 - yes_one) * (1 - yes_two)
        return np.asarray((agreed - by_chance) / (1 - by_chance))

    def resample() -> BootstrapInterval:
        return cluster_bootstrap(cluster_sums(clusters, *columns.T), value)

    return _printed(_resampled(clusters, resample))


def calibration_error(
    scores: ArrayLike, targets: ArrayLike, clusters: Clusters
) -> IntervalEnds | None:
    """Compute the 95% interval of `scorer_quality.calibration_error`.

    Our choice: the percentile interval and its mirror image at the figure, from the lower to the
    higher end. Noise only adds to a sum of absolute values, so that resamples are above the figure,
    and the figure is above the truth.

    Args:
        scores: The score of each text, from 0 to 1.
        targets: What each score should have been.
        clusters: The cluster of each text.

    Returns:
        The ends; None where there are none.
    """
    resampled = error_draws(scores, targets, clusters)
    if resampled is None:
        return None
    mirrored = 2 * resampled.estimate - resampled.high, 2 * resampled.estimate - resampled.low
    low, high = max(0.0, min(resampled.low, mirrored[0])), max(resampled.high, mirrored[1])
    return _printed(replace(resampled, low=low, high=high))


def error_draws(
    scores: ArrayLike, targets: ArrayLike, clusters: Clusters, more: ArrayLike | None = None
) -> BootstrapInterval | None:
    """Resample the calibration error for `calibration_error`.

    Args:
        scores: The score of each text, from 0 to 1.
        targets: What each score should have been.
        clusters: The cluster of each text.
        more: A distance for each text that has no score, 0 for the others. Such a text is in no
            step: its distance is added to the sum, and a sum below 0 counts as 0.

    Returns:
        The resamples; None where the value is undefined.
    """
    predicted = np.asarray(scores, dtype=np.float64)
    observed = np.asarray(targets, dtype=np.float64)
    added = np.zeros_like(predicted) if more is None else np.asarray(more, dtype=np.float64)
    places = steps(predicted)
    inside = (places[:, None] == np.unique(places)) & (added == 0)[:, None]
    columns = np.column_stack(
        [(predicted - observed)[:, None] * inside, added, np.ones(len(predicted))]
    )

    def value(totals: FloatArray) -> FloatArray:
        distances = np.abs(totals[:, :-2]).sum(axis=1) + totals[:, -2]
        return np.asarray(np.maximum(distances, 0.0) / totals[:, -1])

    def resample() -> BootstrapInterval:
        return cluster_bootstrap(cluster_sums(clusters, *columns.T), value, kind="percentile")

    return _resampled(clusters, resample)


def _resampled(
    clusters: Clusters, resample: Callable[[], BootstrapInterval]
) -> BootstrapInterval | None:
    if len(set(clusters)) < LEAST:
        return None
    try:
        return resample()
    except Undefined:
        return None


def _printed(resampled: BootstrapInterval | None) -> IntervalEnds | None:
    return (
        None
        if resampled is None or resampled.no_spread
        else IntervalEnds(resampled.low, resampled.high)
    )


def _ranks_of(values: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A function that gives each row its rank within each resample, ties averaged."""
    order = np.argsort(values, kind="stable")
    _, first, index = np.unique(values[order], return_index=True, return_inverse=True)
    back = np.empty(len(values), dtype=np.int64)
    back[order] = index

    def ranks(times: FloatArray) -> FloatArray:
        copies = np.add.reduceat(times[:, order], first, axis=1)
        middle = np.cumsum(copies, axis=1) - copies + (copies + 1) / 2
        return np.asarray(middle[:, back])

    return ranks


Scores = Sequence[float | None]
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRange:
    """The least and the largest value that a figure could have, None where it may have none; and
    the ends of its interval, both as far against the scorer as can be."""

    missing: int  # texts without a score
    low: float | None
    high: float | None
    ends: IntervalEnds | None  # None where there is none to print, whatever the scores


def auc_if_known(scores: Scores, labels: Sequence[bool], clusters: Clusters) -> MissingRange | None:
    """Compute the AUC if toxic texts without a score had 0 and harmless ones 1, and the other way
    round. In each resample, too, no other scores give a smaller or a larger value.

    Args:
        scores: The score of each text; missing ones are what the result is about.
        labels: Whether each text is toxic.
        clusters: The cluster of each text.

    Returns:
        The range; None if no score is missing.

    Raises:
        Undefined: If `scorer_quality.auc` is.
    """
    filled, lost = _split(scores)
    if not lost.any():
        return None
    toxic = np.asarray(labels, dtype=bool)
    worst, best = (np.where(lost, side, filled) for side in (~toxic * 1.0, toxic * 1.0))
    low, high = auc_draws(worst, labels, clusters), auc_draws(best, labels, clusters)
    ends = None
    if low is not None and high is not None:
        alike = _may_be_alike(low.largest, high.least)
        ends = IntervalEnds(0.0 if alike else low.low, low.high)
    return MissingRange(
        missing=int(lost.sum()),
        low=quality.auc(worst, labels),
        high=quality.auc(best, labels),
        ends=ends,
    )


def error_if_known(
    scores: Scores, targets: Sequence[float], clusters: Clusters
) -> MissingRange | None:
    """Compute the range of the calibration error if missing scores were known.

    A text without a score is off by no more than the larger of its target and one minus it, and
    adds or takes away no more than that.

    Args:
        scores: The score of each text; missing ones are what the result is about.
        targets: What each score should have been.
        clusters: The cluster of each text.

    Returns:
        The range; None if no score is missing.
    """
    predicted, lost = _split(scores)
    if not lost.any():
        return None
    observed = np.asarray(targets, dtype=np.float64)
    off = np.where(lost, np.maximum(observed, 1 - observed), 0.0)
    most, least = (error_draws(predicted, observed, clusters, sign * off) for sign in (1, -1))
    ends = None
    if most is not None and least is not None:
        # The interval is from the lower to the higher of two: see `calibration_error` there.
        low = max(0.0, min(most.low, 2 * most.estimate - least.high))
        high = max(most.high, 2 * most.estimate - least.low)
        ends = IntervalEnds(low, 1.0 if _may_be_alike(least.largest, most.least) else high)
    curve = quality.reliability(predicted[~lost], observed[~lost])
    known_error = quality.calibration_error(curve) * int((~lost).sum()) if curve else 0.0
    low_sum, high_sum = max(0.0, known_error - float(off.sum())), known_error + float(off.sum())
    n = len(predicted)
    return MissingRange(missing=int(lost.sum()), low=low_sum / n, high=high_sum / n, ends=ends)


def kept_if_known(
    before: Sequence[bool | None], after: Sequence[bool | None]
) -> MissingRange | None:
    """What is caught in disguise, of what is caught plain. At worst all that is unknown was caught
    plain and lost in disguise, but what is caught in disguise was not caught plain; at best it is
    the other way round. Each text more that is kept raises both ends of Wilson's interval, and each
    that is lost lowers them."""
    pairs = list(zip(before, after, strict=True))
    missing = sum(None in pair for pair in pairs)
    if not missing:
        return None
    caught = sum(pair == (True, True) for pair in pairs)
    lost = sum(pair == (True, False) for pair in pairs)
    at_worst = sum(pair in ((True, None), (None, False), (None, None)) for pair in pairs)
    at_best = sum(pair in ((True, None), (None, True), (None, None)) for pair in pairs)
    plain = caught + lost + at_worst
    ends = wilson(caught, plain) if plain else None
    return MissingRange(
        missing=missing,
        low=caught / plain if plain else None,
        high=(caught + at_best) / (caught + at_best + lost) if caught + at_best + lost else None,
        ends=IntervalEnds(ends.low, ends.high) if ends else None,
    )


def _split(scores: Scores) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The scores, 0 where there is none, and where that is."""
    lost = np.array([score is None for score in scores], dtype=bool)
    return np.array([score or 0.0 for score in scores], dtype=np.float64), lost


def _may_be_alike(largest_of_least: float, least_of_largest: float) -> bool:
    """Whether some scores would give the same figure in every resample. Such a figure has no
    interval and does not pass, so nothing passes that could be one."""
    return largest_of_least <= least_of_largest + _ROUNDING
