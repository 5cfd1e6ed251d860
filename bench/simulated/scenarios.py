"""Audits drawn from a known truth: each function draws one and gives what the toolkit concludes.

They are the null scenarios of estimates from few labels, of screens and of one run's groups. A test
repeats them and counts how often the conclusion is false.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.statistics.bounded import p_mean_above
from evenhand.statistics.prediction_powered import chances_to_label, powered_mean
from evenhand.statistics.screening import Drift, has_drifted

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SureScorer:
    """A scorer says ½ of a share of the texts and is sure (`sure`) that the others are clean; of
    those a share (`missed`) is harmful."""

    unsure: float
    missed: float
    sure: float = 1e-6
    unsure_score: float = 0.5
    texts: int = 3_000


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float
    truth: float

    @property
    def holds(self) -> bool:
        return self.low <= self.truth <= self.high


def rate_from_few_labels(rng: np.random.Generator, scorer: SureScorer, labels: int) -> Interval:
    """Draw texts and labels as `scorers sample` does, and estimate as `scorers estimate` does."""
    unsure = rng.random(scorer.texts) < scorer.unsure
    scores = np.where(unsure, scorer.unsure_score, scorer.sure)
    harmful = rng.random(scorer.texts) < np.where(unsure, 0.5, scorer.missed)
    chances = chances_to_label(np.sqrt(scores * (1 - scores)), labels)
    drawn = np.flatnonzero(rng.random(scorer.texts) < chances)
    found = powered_mean(scores, harmful[drawn].astype(float), drawn, chances=chances[drawn])
    return Interval(max(0.0, found.low), min(1.0, found.high), float(harmful.mean()))


def screen_looks(
    rng: np.random.Generator,
    *,
    looks: int,
    texts: int,
    reference: int = 300,
    change: float = 1.0,
    since: int = 0,
) -> Drift:
    """Draw a calibration and so many looks of so many texts; give the first look that raises an
    alarm, else the last. Scores are uniform; from look `since` on they are raised to the power of
    `change`, which at 1 changes nothing."""
    then, batches = rng.random(reference), list[Floats]()
    for look in range(looks):
        batches.append(rng.random(texts) ** (change if look >= since else 1.0))
        found = has_drifted(then, batches)
        if found.drifted:
            break
    return found


def group_without_bias(
    rng: np.random.Generator, clusters: int, usual: float, rare: float
) -> tuple[float, float]:
    """Draw the clusters of one group whose mean is exactly 0: most are at `usual`, below 0, few at
    `rare`, above it. Give the p-values of a mean above and below 0, of a number from −1 to 1."""
    share = -usual / (rare - usual)
    values = np.where(rng.random(clusters) < share, rare, usual)
    return p_mean_above(values, -1.0), p_mean_above(-values, -1.0)
