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
    said = normalised(prediction)
    wanted = [normalised(gold) for gold in has_words(golds)] or [""]
    return Score(
        exact=max(float(said == gold) for gold in wanted),
        f1=max(_f1(said.split(), gold.split()) for gold in wanted),
    )


def _f1(said: list[str], gold: list[str]) -> float:
    """2 · shared / (said + gold), words counted as often as they stand in both."""
    if not said or not gold:
        return float(said == gold)
    shared = sum((Counter(said) & Counter(gold)).values())
    return 2 * shared / (len(said) + len(gold))


def with_threshold(
    found: Score, *, has_answer: bool, no_answer_probability: float, threshold: float
) -> Score:
    """The score of a model that also says how likely it thinks there is no answer: above the
    threshold, and only above, its answer is taken for none."""
    if no_answer_probability <= threshold:
        return found
    right = float(not has_answer)
    return Score(right, right)
