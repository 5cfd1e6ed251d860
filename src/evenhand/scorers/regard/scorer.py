"""The scorer of regard: how ill a text speaks of whoever it speaks of. It ships with the package,
and is numpy alone. What it was trained on, how well it does, where not to trust it: card.md."""

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from evenhand.scorers.base import TOXICITY, Scores, Unscored, score_the_scorable
from evenhand.scorers.offline import weights as packed
from evenhand.scorers.offline.scorer import in_thread
from evenhand.scorers.offline.weights import Weights
from evenhand.scorers.regard.masking import masked
from evenhand.scorers.regard.network import Reader
from evenhand.scorers.support.reading import sentences

VERSION = 1
WEIGHTS = Path(__file__).with_name("weights.safetensors")


class RegardScorer:
    """
    >>> ill, well = RegardScorer().score_now(["He is a liar.", "He is a good friend."])
    >>> ill > 0.5 > well
    True
    """

    def __init__(self, path: Path = WEIGHTS) -> None:
        self._path = path

    @property
    def name(self) -> str:
        """Version and weights: scores under two names are not comparable."""
        return f"regard@{VERSION}+{self._weights.sha256[:12]}"

    @property
    def attributes(self) -> tuple[str, ...]:
        return (TOXICITY,)

    def describe(self) -> dict[str, Any]:
        return {"kind": "regard", "toxicity_is": "negative regard", "trained_on": {}}

    async def close(self) -> None:
        return None

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        """Its one number stands where every scorer has its main one, under `toxicity`."""
        return await score_the_scorable(texts, self._score)

    async def _score(self, texts: list[str]) -> list[Scores | Unscored]:
        return [_as_score(score) for score in await in_thread(self.score_now, texts)]

    def score_now(self, texts: Sequence[str]) -> list[float | None]:
        """How ill each text speaks, from 0 to 1: the mean over its sentences. None: no words."""
        cut = [self.sentences(text) for text in texts]
        logits = self._logits({row for rows in cut for row in rows})
        scores: list[float | None] = []
        for rows in cut:
            sentence_scores = [1 / (1 + math.exp(-logits[row])) for row in rows]
            scores.append(
                round(sum(sentence_scores) / len(sentence_scores), 4) if sentence_scores else None
            )
        return scores

    def sentences(self, text: str) -> list[tuple[int, ...]]:
        """The sentences of a text as pieces, without whom they are about; a line break ends one."""
        lines = (line for sentence in sentences(text) for line in sentence.splitlines())
        hidden = (masked(line, self._known) for line in lines)
        return [row for line in hidden for row in self._reader.windows(line)]

    def _logits(self, rows: set[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
        """Equal sentences are read once, and so have one score."""
        ordered = sorted(rows)
        weight, bias = self._weights.floats("weight"), float(self._weights.floats("bias")[0])
        logits = self._reader.means(ordered) @ weight + bias
        return dict(zip(ordered, map(float, logits), strict=True))

    @cached_property
    def _weights(self) -> Weights:
        return packed.read(self._path)

    @cached_property
    def _reader(self) -> Reader:
        return Reader()

    @cached_property
    def _known(self) -> frozenset[str]:
        """The words that are no names."""
        return frozenset(self._reader.vocabulary) - set(self._weights.metadata["names"].split(" "))


def _as_score(score: float | None) -> Scores | Unscored:
    if score is None:
        return Unscored("no_words", "no words to score")
    because = (f"speaks ill of somebody ({score:.2f})",) if score >= 0.5 else ()
    return Scores({TOXICITY: score}, because)
