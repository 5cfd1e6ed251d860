"""Audits drawn from a known truth: each function draws one and gives what the toolkit concludes.

They are the null scenarios of estimates from few labels, of screens and of one run's groups. A test
repeats them and counts how often the conclusion is false.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.statistics.prediction_powered import chances_to_label, powered_mean

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
