"""Which words are over-used in one set of texts: log-odds with an informative Dirichlet prior.

Source: Monroe, Colaresi and Quinn 2008, "Fightin' Words", Political Analysis 16(4), 3.3.3 to 3.5.1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

PRIOR_WORDS = 1000.0  # our choice: the prior weighs as much as a thousand words of all texts


@dataclass(frozen=True, slots=True)
class WordOdds:
    """A word with its counts in both sets, its log-odds (above 0: over-used in the first) and z."""

    word: str
    first: int
    second: int
    log_odds: float
    z: float


def word_odds(
    first: Mapping[str, int], second: Mapping[str, int], least: int = 1
) -> tuple[WordOdds, ...]:
    """Give each word that occurs `least` times or more in both sets together, the most over-used in
    the first one first.

    With y the count of a word, n that of all words, a = PRIOR_WORDS · (y₁ + y₂)/(n₁ + n₂) and
    A = PRIOR_WORDS: δ = ln((y₁ + a)/(n₁ + A − y₁ − a)) − ln((y₂ + a)/(n₂ + A − y₂ − a)), and
    z = δ/√(1/(y₁ + a) + 1/(y₂ + a)). Range: any. Undefined: a word that is the only one, which is
    left out; a set without words gives none. z takes words for independent, which they are not.
    """
    n1, n2 = sum(first.values()), sum(second.values())
    if not n1 or not n2:
        return ()
    rows = []
    for word in sorted(first.keys() | second.keys()):
        y1, y2 = first.get(word, 0), second.get(word, 0)
        if not least <= y1 + y2 < n1 + n2:
            continue
        a = PRIOR_WORDS * (y1 + y2) / (n1 + n2)
        odds1, odds2 = ((y + a) / (n + PRIOR_WORDS - y - a) for y, n in ((y1, n1), (y2, n2)))
        delta = math.log(odds1) - math.log(odds2)
        z = delta / math.sqrt(1 / (y1 + a) + 1 / (y2 + a))
        rows.append(WordOdds(word, y1, y2, delta, z))
    return tuple(sorted(rows, key=lambda row: (-row.z, row.word)))
