"""A judge against labels that people gave: does it rank them right, and is it as sure as it may be?

Labels that the judge gave no answer to have no place here: the caller leaves them out and says how
many they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its stats are loaded when first used

from evenhand.core.errors import Undefined
from evenhand.statistics.metrics.scorer_quality import auc, calibration_error, reliability


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
    """AUROC, Brier score and expected calibration error, steps closed to the left.

    A score from 0 to 10 is divided by 10 first. Source: `scorer_quality`. Range: 0 to 1 each.
    Undefined: nothing to compare.
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
    """The 95 % interval of the AUROC, cut off at 0 and 1, and the p-value of its being one half.

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
    """The 95 % interval of an AUROC of a few texts, by inverting a score test: also where all pairs
    are in order it is no point.

    All θ with |θ̂ − θ| ≤ z·√V(θ), V(θ) = θ(1 − θ)·(1 + N·((1 − θ)/(2 − θ) + θ/(1 + θ))) / (P·M),
    N = (P + M)/2 − 1. Source: Newcombe 2006, part 2, method 5. Range: within 0 to 1.
    Undefined: no positives or no negatives.
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
