"""How good scores are: against labels, against other scores, and as shares.

Missing scores have no place here: the caller leaves them out and says how many they are.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its stats are loaded when first used  # its stats are loaded when first used
from numpy.typing import ArrayLike, NDArray

from evenhand.core.errors import Undefined
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.agreement import quadratic_weighted_kappa
from evenhand.statistics.clusters import cluster_sums
from evenhand.statistics.proportions import clustered_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    low: float
    high: float
    n: int
    score: float  # mean of the scores in it
    target: float  # mean of what they should have been


@dataclass(frozen=True, slots=True, kw_only=True)
class TextShare:
    """A share of texts, with an interval that allows texts of one template to be alike."""

    estimate: float
    low: float
    high: float
    n: int
    clusters: int


def auc(scores: ArrayLike, labels: Sequence[bool]) -> float:
    """P(a positive scores higher than a negative), a tie counting half.

    (Σ ranks of positives − P(P+1)/2) / (P·N), ranks of ties averaged. Source: Mann & Whitney 1947;
    Hanley & McNeil 1982. Range: 0 to 1. Undefined: no positives or no negatives.
    """
    values, positive = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        raise Undefined("all labels are equal: nothing to tell apart")
    ranks = scipy.stats.rankdata(values)
    above = float(ranks[positive].sum()) - positives * (positives + 1) / 2
    return above / (positives * negatives)


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Pearson's correlation of the ranks, ties averaged.

    Source: Spearman 1904. Range: −1 to 1. Undefined: fewer than two pairs, or all values of one
    side equal (0/0).
    """
    first_ranks, second_ranks = (
        scipy.stats.rankdata(np.asarray(side, dtype=np.float64)) for side in (first, second)
    )
    if first_ranks.size < 2 or np.ptp(first_ranks) == 0 or np.ptp(second_ranks) == 0:
        raise Undefined("one side has no order: 0/0")
    return float(np.corrcoef(first_ranks, second_ranks)[0, 1])


def kappa_at(first: ArrayLike, second: ArrayLike, threshold: float) -> float:
    """Compute Cohen's kappa of "at or above the threshold" by two scorers.

    Source: Cohen 1960, as the case of two categories of the weighted one. Range: −1 to 1.

    Args:
        first: The scores of one scorer.
        second: The scores of the other scorer, in the same order.
        threshold: The smallest score that counts as positive.

    Raises:
        Undefined: Without pairs, or if both are always on the same side (0/0).
    """
    first_above, second_above = (
        np.asarray(side, dtype=np.float64) >= threshold for side in (first, second)
    )
    return quadratic_weighted_kappa(first_above.astype(float), second_above.astype(float))


def reliability(scores: ArrayLike, targets: ArrayLike, bins: int = 10) -> list[Bin]:
    """Group scores into equal steps from 0 to 1, and average what they should have been in each
    step. A score on a border belongs to the step above.

    Args:
        scores: The score of each text, from 0 to 1.
        targets: What each score should have been.
        bins: The number of steps.

    Returns:
        The steps that have a score.
    """
    predicted = np.asarray(scores, dtype=np.float64)
    observed = np.asarray(targets, dtype=np.float64)
    places = steps(predicted, bins)
    curve = []
    for step in np.unique(places):
        inside = places == step
        curve.append(
            Bin(
                low=float(step / bins),
                high=float((step + 1) / bins),
                n=int(inside.sum()),
                score=float(predicted[inside].mean()),
                target=float(observed[inside].mean()),
            )
        )
    return curve


def steps(scores: FloatArray, bins: int = 10) -> NDArray[np.int64]:
    """The number of each score's step, of equal ones from 0 to 1."""
    # Rounded: 0.3 · 10 is 3 and not 2.9999999999999996.
    return np.minimum(np.floor(np.round(scores * bins, 9)).astype(np.int64), bins - 1)


def calibration_error(curve: Sequence[Bin]) -> float:
    """Expected calibration error: Σ n_b/n · |mean score − mean target| over the steps.

    Source: Naeini et al. 2015. Range: 0 to 1. Undefined: no scores.
    """
    total = sum(step.n for step in curve)
    if not total:
        raise Undefined("no scores: 0/0")
    return sum(step.n * abs(step.score - step.target) for step in curve) / total


def defined(formula: Callable[..., float], *arguments: Any) -> float | None:
    """None where the formula has no value: never a 0."""
    try:
        return formula(*arguments)
    except Undefined:
        return None


def share(events: Sequence[bool], clusters: Sequence[Hashable]) -> TextShare:
    """The share of events with a 95% interval over clusters (`clustered_share`).

    Undefined: no rows.
    """
    hits = np.asarray(events, dtype=np.float64)
    ones = np.ones_like(hits)
    interval = clustered_share(cluster_sums(clusters, ones, hits, ones, hits, ones))
    return TextShare(estimate=interval.estimate, low=interval.low, high=interval.high, n=interval.n,
                     clusters=interval.clusters)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCalibration:
    auroc: float | None  # None: all labels are equal
    brier: float
    ece: float
    bins: int
    n: int


def brier(probabilities: Sequence[float], labels: Sequence[bool]) -> float:
    """Mean of (probability − label)². Source: Brier 1950, for two outcomes. Range: 0 to 1.

    Undefined: nothing to compare.
    """
    forecasts, outcomes = np.asarray(probabilities, np.float64), np.asarray(labels, np.float64)
    if not forecasts.size:
        raise Undefined("no labels: 0/0")
    return float(((forecasts - outcomes) ** 2).mean())


def calibration(
    probabilities: Sequence[float], labels: Sequence[bool], bins: int = 10
) -> JudgeCalibration:
    """Compute AUROC, Brier score and expected calibration error, steps closed to the left.

    A score from 0 to 10 is divided by 10 first. Source: `scorer_quality`. Range: 0 to 1 each.

    Args:
        probabilities: The score of each text, from 0 to 1.
        labels: Whether each text is positive.
        bins: The number of steps of the calibration error.

    Raises:
        Undefined: If there is nothing to compare.
    """
    squared = brier(probabilities, labels)
    try:
        ranked = auc(probabilities, labels)
    except Undefined:
        ranked = None
    curve = reliability(probabilities, np.asarray(labels, np.float64), bins)
    return JudgeCalibration(
        auroc=ranked, brier=squared, ece=calibration_error(curve), bins=bins, n=len(labels)
    )


def auroc_interval(
    probabilities: Sequence[float], labels: Sequence[bool]
) -> tuple[float, float, float]:
    """The 95% interval of the AUROC, cut off at 0 and 1, and the p-value of its being one half.

    se² = S₁₀/P + S₀₁/N, the variances of each positive's share of negatives below it and of each
    negative's share of positives above it (DeLong et al. 1988); p by Mann & Whitney 1947, which has
    a value also where all pairs are in order and the interval is a point.
    Undefined: fewer than two of either label.
    """
    scores, positive = np.asarray(probabilities, np.float64), np.asarray(labels, bool)
    high, low = scores[positive], scores[~positive]
    if min(high.size, low.size) < 2:
        raise Undefined("an interval needs two texts of either label")
    won = (high[:, None] > low).astype(float) + (high[:, None] == low) / 2
    spread = won.mean(axis=1).var(ddof=1) / high.size + won.mean(axis=0).var(ddof=1) / low.size
    middle, reach = float(won.mean()), float(scipy.stats.norm.ppf(0.975) * np.sqrt(spread))
    p = float(scipy.stats.mannwhitneyu(high, low).pvalue)
    return max(0.0, middle - reach), min(1.0, middle + reach), p


def auroc_of_few(estimate: float, positives: int, negatives: int) -> tuple[float, float]:
    """Compute the 95% interval of an AUROC of a few texts by inverting a score test. It has a width
    even where all pairs are in order.

    All θ with |θ̂ − θ| ≤ z·√V(θ), V(θ) = θ(1 − θ)·(1 + N·((1 − θ)/(2 − θ) + θ/(1 + θ))) / (P·M), N
    = (P + M)/2 − 1. Source: Newcombe 2006, part 2, method 5. Range: within 0 to 1.

    Args:
        estimate: The AUROC.
        positives: The number of positive texts, P.
        negatives: The number of negative texts, M.

    Raises:
        Undefined: Without positives or without negatives.
    """
    if min(positives, negatives) < 1:
        raise Undefined("all labels are equal: nothing to tell apart")
    low = _lower_end(estimate, positives, negatives)
    return low, 1.0 - _lower_end(1.0 - estimate, positives, negatives)


def _lower_end(estimate: float, positives: int, negatives: int) -> float:
    """The θ below the estimate where the score test begins to reject: V is the same at θ and at
    1 − θ, so that the upper end is the mirror image."""
    if estimate <= 0.0:
        return 0.0
    more, z = (positives + negatives) / 2 - 1, float(scipy.stats.norm.ppf(0.975))

    def short(theta: float) -> float:
        alike = (1 - theta) / (2 - theta) + theta / (1 + theta)
        variance = theta * (1 - theta) * (1 + more * alike) / (positives * negatives)
        return float(estimate - theta - z * variance**0.5)

    # At an estimate of 1 the end itself is a root too, of no meaning: the search ends before it.
    return float(scipy.optimize.brentq(short, 0.0, estimate * (1 - 1e-9)))
