"""SQuAD v2's scores, word for word as its own evaluate-v2.0.py has them (Rajpurkar et al. 2018).

An answer is a text; the empty text says that the passage holds no answer. Only that is right on a
question without one: "unanswerable" is a wrong answer there.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Score:
    """Of one answer: `exact` is 0 or 1, `f1` from 0 to 1."""

    exact: float
    f1: float


def normalised(text: str) -> str:
    """Lower case, without punctuation, articles and extra blanks. A hyphen is deleted, not split:
    "second-largest" becomes one word."""
    plain = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def has_words(golds: Sequence[str]) -> list[str]:
    """The gold answers that count: those that are not empty once normalised."""
    return [gold for gold in golds if normalised(gold)]


def score(prediction: str, golds: Sequence[str]) -> Score:
    """Exact match and the F1 of shared words, each the best over the gold answers.

    Without a gold answer both are 1 for an empty prediction and 0 for any other. Range: 0 to 1.
    Undefined: never.
    """
    predicted = normalised(prediction)
    accepted = [normalised(gold) for gold in has_words(golds)] or [""]
    return Score(
        exact=max(float(predicted == gold) for gold in accepted),
        f1=max(_f1(predicted.split(), gold.split()) for gold in accepted),
    )


def _f1(predicted: list[str], gold: list[str]) -> float:
    """2 · shared / (predicted + gold), words counted as often as they stand in both."""
    if not predicted or not gold:
        return float(predicted == gold)
    shared = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * shared / (len(predicted) + len(gold))
