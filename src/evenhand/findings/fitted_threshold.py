"""The threshold above which a scorer calls a text harmful, fitted to labeled texts: half of them
set it, and the other half shows what it does."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.errors import Undefined, UserError
from evenhand.findings.display import Displayable
from evenhand.statistics.metrics.scorer_quality import auc
from evenhand.statistics.proportions import Proportion, clopper_pearson
from evenhand.statistics.screening import labels_needed, seldom_exceeded

_DIGITS = 4  # our choice: a threshold that can be typed


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedThreshold(Displayable):
    """A threshold with its error rates on held-out texts. A text without a score counts as wrong.

    `threshold` is None where too few benign texts can carry `max_fpr` with `confidence`.
    """

    scorer: str
    attribute: str
    max_fpr: float
    confidence: float
    threshold: float | None
    fitted_benign: int
    needed_benign: int  # texts that set the threshold; as many again are held out
    false_positives: Proportion | None  # of held-out benign texts
    false_negatives: Proportion | None  # of held-out harmful texts
    auc: float | None  # over held-out texts with a score

    @property
    def holds(self) -> bool:
        """Whether a threshold was found and held-out texts do not contradict its rate."""
        return self.false_positives is not None and self.false_positives.low <= self.max_fpr

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}


def fit_threshold(
    texts: Sequence[str],
    scores: Sequence[float | None],
    harmful: Sequence[bool],
    *,
    scorer: str,
    attribute: str,
    max_fpr: float = 0.05,
    confidence: float = 0.95,
) -> FittedThreshold:
    """Find the lowest threshold that at most a share of benign texts reaches.

    Which half a text is in depends on the text alone, so further texts leave the halves as they
    are. The guarantee is that of `statistics.screening.seldom_exceeded`.

    Args:
        texts: The labeled texts, of which no two are alike.
        scores: The score of each text; None where the scorer failed.
        harmful: Whether each text is harmful.
        scorer: Name of the scorer.
        attribute: Which of its scores this is.
        max_fpr: The largest share of benign texts that reach the threshold.
        confidence: The one-sided confidence of that share.

    Returns:
        The threshold, with its error rates on the other half.

    Raises:
        UserError: If a half has no benign text or no harmful one.
    """
    values = np.array(scores, dtype=np.float64)  # None becomes NaN
    label = np.array(harmful, dtype=np.bool_)
    held_out = np.array([_is_held_out(text) for text in texts])
    for half in (held_out, ~held_out):
        if len(set(label[half].tolist())) < 2:
            raise UserError(
                f"{len(texts)} labeled texts are too few: half of them are held out, and each half "
                "needs benign and harmful texts. Add texts of both kinds."
            )
    setting = ~held_out & ~label
    highest = seldom_exceeded(values[setting], max_fpr, confidence)
    threshold = false_positives = false_negatives = None
    if math.isfinite(highest):
        threshold = _just_above(highest)
        reached = np.nan_to_num(values, nan=math.inf) >= threshold
        missed = np.nan_to_num(values, nan=-math.inf) < threshold
        false_positives = _share(reached[held_out & ~label])
        false_negatives = _share(missed[held_out & label])
    scored = held_out & ~np.isnan(values)
    return FittedThreshold(
        scorer=scorer,
        attribute=attribute,
        max_fpr=max_fpr,
        confidence=confidence,
        threshold=threshold,
        fitted_benign=int(setting.sum()),
        needed_benign=labels_needed(max_fpr, confidence),
        false_positives=false_positives,
        false_negatives=false_negatives,
        auc=_auc(values[scored], label[scored].tolist()),
    )


def _is_held_out(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 1


def _just_above(score: float) -> float:
    """A number of few digits that a text with this score does not reach."""
    above = math.floor(score * 10**_DIGITS + 1) / 10**_DIGITS
    return above if above > score else math.nextafter(score, math.inf)


def _share(wrong: NDArray[np.bool_]) -> Proportion:
    return clopper_pearson(int(wrong.sum()), wrong.size)


def _auc(values: Any, harmful: Sequence[bool]) -> float | None:
    try:
        return auc(values, harmful)
    except Undefined:
        return None
