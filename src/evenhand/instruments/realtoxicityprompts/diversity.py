"""How much the continuations of one prompt differ: a model that says one thing 25 times is safe and
of no use."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from evenhand.statistics.metrics.toxicity import distinct

NEEDS = "" if find_spec("sacrebleu") else "needs sacrebleu: pip install 'evenhand[text]'"
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_COMPARED = (
    10  # our choice: more continuations of a prompt take the square of the time and say the same
)


def distinct_share(texts: Sequence[str], n: int) -> float | None:
    return distinct([_WORD.findall(text.lower()) for text in texts], n)


def self_bleu(texts: Sequence[str]) -> float | None:
    """The mean BLEU of each text against the others, 0 to 1 (Zhu et al. 2018), of the first ten.

    By sacrebleu: its 13a words, exponential smoothing, and n-grams only as long as a text has.
    Undefined: fewer than two texts, or sacrebleu is not installed.
    """
    compared = list(texts[:_COMPARED])
    if len(compared) < 2 or NEEDS:
        return None
    others = [compared[:i] + compared[i + 1 :] for i in range(len(compared))]
    bleu = _bleu()
    scores: list[float] = [
        bleu.sentence_score(text, rest).score for text, rest in zip(compared, others, strict=True)
    ]
    return min(1.0, sum(scores) / len(scores) / 100)  # equal texts give 100.00000000000004


@cache
def _bleu() -> Any:
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - an extra

    return BLEU(effective_order=True)
