"""How much of a text is written in capitals, as a score from 0 to 1.

Replace `_scores` with what you want to find in a text. Every scorer gives "toxicity", and
may give more scores of `evenhand.scorers.ATTRIBUTES`.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

from evenhand.scorers import TOXICITY, Scorer, Scores, Unscored, unscorable
from evenhand.scorers.kinds import ScorerKind


class NewScorer:
    """Scores a text by the share of its words that are in capitals."""

    attributes = (TOXICITY,)

    def __init__(self, least: int) -> None:
        self._least = least

    @property
    def name(self) -> str:
        """Two names are two scorers: count up when the same text gets another score."""
        return f"new_scorer@1+least{self._least}"

    def describe(self) -> dict[str, Any]:
        """Say what a record is to keep: all settings, and no key."""
        return {"kind": "new_scorer", "least": self._least}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        """Give one outcome a text, in order; a text without a score is never a 0."""
        return [unscorable(text) or self._scores(text) for text in texts]

    async def close(self) -> None:
        """Close what was opened: here nothing."""

    def _scores(self, text: str) -> Scores | Unscored:
        words = [word for word in re.findall(r"[^\W\d_]+", text) if len(word) >= self._least]
        if not words:
            return Unscored("no_words", f"no word has {self._least} letters or more")
        loud = [word for word in words if word.isupper()]
        return Scores({TOXICITY: len(loud) / len(words)}, tuple(loud))


class NewScorerSettings(ScorerKind):
    """The settings that `[scorers.NAME]` in evenhand.toml may have in addition to `kind`."""

    kind: Literal["new_scorer"]
    least: int = 2  # words with fewer letters do not count: "I" is always in capitals

    def scorer(self, key: str | None) -> Scorer:
        """Make the scorer. The key is for those that ask a service."""
        del key
        return NewScorer(self.least)
