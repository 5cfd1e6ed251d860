"""A scorer that finds job titles which name a gender."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from evenhand.scorers import Scorer, Scores
from evenhand.scorers.base import TOXICITY, Unscored, unscorable
from evenhand.scorers.kinds import ScorerKind


class GenderedTitles:
    """Scores a text 1 if it holds a title with one of these endings, else 0."""

    name = "gendered_titles@1"
    attributes = (TOXICITY,)

    def __init__(self, endings: Sequence[str]) -> None:
        self._endings = tuple(endings)

    def describe(self) -> dict[str, Any]:
        return {"kind": "gendered_titles", "endings": list(self._endings)}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return [unscorable(text) or self._scores(text) for text in texts]

    async def close(self) -> None:
        return None

    def _scores(self, text: str) -> Scores:
        found = [word for word in re.findall(r"\w+", text) if word.endswith(self._endings)]
        return Scores({TOXICITY: float(bool(found))}, tuple(found))


class GenderedTitlesKind(ScorerKind):
    """The endings are given as one word with commas: "ess,man"."""

    address: ClassVar[str] = "endings"
    kind: Literal["gendered_titles"]
    endings: str

    def scorer(self, key: str | None) -> Scorer:
        del key
        return GenderedTitles(self.endings.split(","))
