"""What a scorer's figures could be if the texts without a score had one, and intervals that hold
them against it.

No interval here gets better when one text more has no score: each end is as far on the bad side as
any scores from 0 to 1 could put it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.metrics.scorer_intervals import Clusters, Ends, auc_draws, error_draws
from evenhand.metrics.scorer_quality import auc, calibration_error, reliability
from evenhand.statistics.clusters import cluster_sums
from evenhand.statistics.proportions import largest_ends, wilson

Scores = Sequence[float | None]
Floats = NDArray[np.float64]
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class IfKnown:
    """The least and the largest value that a figure could have, None where it may have none; and
    the ends of its interval, both as far against the scorer as can be."""

    missing: int  # texts without a score
    low: float | None
    high: float | None
    ends: Ends | None  # None where there is none to print, whatever the scores


def share(events: Sequence[bool | None], clusters: Clusters) -> IfKnown | None:
    """The share of wrongly judged texts, None for a text without a score. None where nothing is
    missing."""
    lost = np.array([event is None for event in events], dtype=np.float64)
    if not lost.any():
        return None
    flags = np.array([bool(event) for event in events], dtype=np.float64)
    rows, hits, missing = cluster_sums(clusters, np.ones_like(lost), flags, lost).T
    low, high = float(flags.mean()), float((flags + lost).mean())
    ends = Ends(*largest_ends(rows, hits, missing))
    return IfKnown(missing=int(lost.sum()), low=low, high=high, ends=ends)


def auc_if_known(scores: Scores, labels: Sequence[bool], clusters: Clusters) -> IfKnown | None:
    """The AUC if toxic texts without a score had 0 and harmless ones 1, and the other way round.
    In each resample, too, no other scores give less or more. Undefined: as `scorer_quality.auc`."""
    filled, lost = _split(scores)
    if not lost.any():
        return None
    toxic = np.asarray(labels, dtype=bool)
    worst, best = (np.where(lost, side, filled) for side in (~toxic * 1.0, toxic * 1.0))
    low, high = auc_draws(worst, labels, clusters), auc_draws(best, labels, clusters)
    ends = None
    if low is not None and high is not None:
        alike = _may_be_alike(low.largest, high.least)
        ends = Ends(0.0 if alike else low.low, low.high)
    return IfKnown(
        missing=int(lost.sum()), low=auc(worst, labels), high=auc(best, labels), ends=ends
    )


def error_if_known(scores: Scores, targets: Sequence[float], clusters: Clusters) -> IfKnown | None:
    """The calibration error: a text without a score is off by no more than the larger of its target
    and one minus it, and adds or takes away no more than that. Undefined: no texts."""
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
        ends = Ends(low, 1.0 if _may_be_alike(least.largest, most.least) else high)
    curve = reliability(predicted[~lost], observed[~lost])
    known_error = calibration_error(curve) * int((~lost).sum()) if curve else 0.0
    low_sum, high_sum = max(0.0, known_error - float(off.sum())), known_error + float(off.sum())
    n = len(predicted)
    return IfKnown(missing=int(lost.sum()), low=low_sum / n, high=high_sum / n, ends=ends)


def kept_if_known(before: Sequence[bool | None], after: Sequence[bool | None]) -> IfKnown | None:
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
    return IfKnown(
        missing=missing,
        low=caught / plain if plain else None,
        high=(caught + at_best) / (caught + at_best + lost) if caught + at_best + lost else None,
        ends=Ends(ends.low, ends.high) if ends else None,
    )


def _split(scores: Scores) -> tuple[Floats, NDArray[np.bool_]]:
    """The scores, 0 where there is none, and where that is."""
    lost = np.array([score is None for score in scores], dtype=bool)
    return np.array([score or 0.0 for score in scores], dtype=np.float64), lost


def _may_be_alike(largest_of_least: float, least_of_largest: float) -> bool:
    """Whether some scores would give the same figure in every resample. Such a figure has no
    interval and does not pass, so nothing passes that could be one."""
    return largest_of_least <= least_of_largest + _ROUNDING
