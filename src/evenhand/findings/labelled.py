"""A rate is estimated from a cheap scorer's numbers for all texts and labels for a chosen few.

Labels that were asked for and are missing are filled in every way: the interval holds all of what
they could have made of it, so that a missing label never makes it narrower.
"""

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from evenhand.core.errors import Undefined, UserError
from evenhand.findings.display import Displayable
from evenhand.statistics.prediction_powered import PoweredMean, powered_mean

MOST_MISSING = 8  # our choice: 256 ways to fill them are tried; each one more doubles them
Ends = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledText:
    """One text: what the scorer said of it, with which chance it was drawn, and its label."""

    id: str
    cluster: Hashable
    prediction: float | None
    chance: float
    drawn: bool
    label: int | None = None  # 0 or 1; None of a drawn text: missing


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRate(Displayable):
    """A rate with its interval, and with the interval that the labels alone would have given."""

    scorer: str
    texts: int
    without_prediction: int
    drawn: int
    missing: int  # labels that were asked for
    estimate: float | None  # None where a label is missing
    low: float
    high: float
    labels_alone: Ends
    share_used: float | None  # λ: how much of the predictions is used; None where that depends
    confidence: float

    @property
    def labels(self) -> int:
        return self.drawn - self.missing

    @property
    def width_ratio(self) -> float:
        """The width of the interval relative to that of the labels alone."""
        low, high = self.labels_alone
        return (self.high - self.low) / (high - low) if high > low else 1.0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "labels": self.labels, "width_ratio": self.width_ratio}


def labelled_rate(texts: Sequence[SampledText], scorer: str) -> LabelledRate:
    """Estimate the share of label 1 among all texts."""
    sample = [text for text in texts if text.drawn]
    missing = [index for index, text in enumerate(sample) if text.label is None]
    if len(missing) > MOST_MISSING:
        raise UserError(
            f"{len(missing)} of {len(sample)} labels are missing, and what nobody labelled may be "
            f"anything: fill in all but {MOST_MISSING} at most, then run `evenhand scorers "
            "estimate` again"
        )
    try:
        ways = [_filled(texts, sample, dict(zip(missing, way, strict=True)))
                for way in product((0, 1), repeat=len(missing))]  # fmt: skip
    except Undefined as reason:
        raise UserError(
            f"No estimate is possible: {reason}. Label more texts with `evenhand scorers sample`."
        ) from None
    alone = _joined([result.labels_alone for result in ways])
    low, high = _joined([(result.low, result.high) for result in ways])
    return LabelledRate(
        scorer=scorer,
        texts=len(texts),
        without_prediction=sum(text.prediction is None for text in texts),
        drawn=len(sample),
        missing=len(missing),
        estimate=None if missing else min(1.0, max(0.0, ways[0].estimate)),
        low=low,
        high=high,
        labels_alone=alone,
        share_used=None if missing else ways[0].share_used,
        confidence=ways[0].confidence,
    )


def _joined(ways: Sequence[Ends]) -> Ends:
    """All that any of the ways allows, cut to what a share can be."""
    return max(0.0, min(low for low, _ in ways)), min(1.0, max(high for _, high in ways))


def _filled(
    texts: Sequence[SampledText], sample: Sequence[SampledText], filled: dict[int, int]
) -> PoweredMean:
    labels = [
        filled[index] if text.label is None else text.label for index, text in enumerate(sample)
    ]
    return powered_mean(
        [np.nan if text.prediction is None else text.prediction for text in texts],
        labels,
        [index for index, text in enumerate(texts) if text.drawn],
        chances=[text.chance for text in sample],
        clusters=[text.cluster for text in texts],
    )
