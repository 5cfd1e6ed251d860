"""How ill a text speaks of the person or the group that it is about; see card.md for where not to
trust it.

Every person and every group becomes "someone" first, so no name of a group can carry weight: the
same sentence about others is the same sentence. It ships with the package, and is numpy alone.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.core.package_data import read_text, word_sets
from evenhand.scorers.base import TOXICITY, Scorer, Scores, Unscored, score_the_scorable
from evenhand.scorers.offline.network import Floats, PackedModel, ScorerWeights, read_weights
from evenhand.scorers.offline.together import Together
from evenhand.scorers.support.features import sentences

WHO = "someone"
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*\+?")
_STARTS = frozenset('.!?:;"“”‘(*-–—\n')  # after these a capital letter says nothing
_TOGETHER = re.compile(rf"\b{WHO}(?:[\s,\-]+{WHO})+\b")
_ARTICLE = re.compile(rf"\b(a)n(\s+{WHO})\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
_EMPTY_STARTS = word_sets(__package__, "english.toml")["empty_starts"]


@cache
def groups() -> frozenset[str]:
    """Give the words for persons and groups."""
    text = read_text(__package__, "groups.txt")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return frozenset(" ".join(lines).split())


def masked(text: str, vocabulary: frozenset[str]) -> str:
    """Put "someone" for every word that names a person or a group, and once for several together.

    `vocabulary` are the words of the language: what begins a sentence and is not among them is a
    name.

    >>> masked("Maria is a deaf nurse, and Germans like her.", frozenset(["nurse"]))
    'someone is a someone nurse, and someone like someone.'
    """

    def instead(match: "re.Match[str]") -> str:
        word = match.group()
        begins = _begins(text, match.start())
        return WHO + _left_over(word) if _is_who(word, begins, vocabulary) else word

    hidden = _WORD.sub(instead, text)
    return _ARTICLE.sub(r"\1\2", _TOGETHER.sub(WHO, hidden))


def _begins(text: str, at: int) -> bool:
    while at and text[at - 1] in " \t":
        at -= 1
    return not at or text[at - 1] in _STARTS


def _is_who(word: str, begins: bool, vocabulary: frozenset[str]) -> bool:
    bare = _POSSESSIVE.sub("", word).lower()
    whole_and_parts = {bare, bare.replace("-", ""), *bare.split("-")}
    if any(not groups().isdisjoint(_singular(form)) for form in whole_and_parts):
        return True
    if any(part[:1].isupper() and not part.isupper() for part in word.split("-")[1:]):
        return True  # half-Mexican
    if word.isupper() or not word[0].isupper() or bare.startswith(("i'", "i’")):
        return False
    if bare in _EMPTY_STARTS:
        return False
    return not begins or bare not in vocabulary


def _singular(word: str) -> set[str]:
    """Give the words that this one may be the plural of, itself among them."""
    ends = (("s", ""), ("ies", "y"), ("men", "man"))
    return {
        word,
        *(word[: -len(end)] + replacement for end, replacement in ends if word.endswith(end)),
    }


def _left_over(word: str) -> str:
    """The possessive of a word that is taken out; not of a pronoun, which hides it."""
    end = _POSSESSIVE.search(word)
    return "'s" if end else ""


AT_ONCE = 64  # sentences; our choice: fits a processor's cache
_ROOM = 126  # pieces, without the two marks
_LATIN = re.compile("[A-Za-z]")
_STEP = 4  # lengths are filled up to a multiple, so that few shapes occur


class Reader(PackedModel):
    """Reads a sentence as 384 numbers."""

    def windows(self, sentence: str) -> list[tuple[int, ...]]:
        """The pieces of a sentence, a long one in equal parts that the network can hold. There are
        none where no word in Latin letters is known other than "someone": digits, punctuation
        and letters of other scripts are in the vocabulary, and say nothing in English."""
        normalized = unicodedata.normalize("NFKD", sentence).replace(WHO, "")
        piece_ids = tuple(self.pieces.pieces(sentence))
        if _LATIN.search(normalized) is None or self._words.isdisjoint(piece_ids):
            return []
        size = math.ceil(len(piece_ids) / math.ceil(len(piece_ids) / _ROOM))
        return [piece_ids[start : start + size] for start in range(0, len(piece_ids), size)]

    @cached_property
    def _words(self) -> frozenset[int]:
        """The pieces with a Latin letter, without the marks and without "someone"."""
        return frozenset(
            at
            for word, at in self.vocabulary.items()
            if _LATIN.search(word) and not word.startswith("[") and word != WHO
        )

    def means(self, rows: Sequence[Sequence[int]]) -> Floats:
        """Pieces of sentences to one row of numbers each. Equal sentences have equal numbers only
        within a batch of one shape: give each of them once."""
        vectors = np.zeros((len(rows), 384), dtype=np.float32)
        order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
        for start in range(0, len(order), AT_ONCE):
            taken = order[start : start + AT_ONCE]
            vectors[taken] = self._batch([rows[index] for index in taken])
        return vectors

    def _batch(self, rows: Sequence[Sequence[int]]) -> Floats:
        first, last = self.vocabulary["[CLS]"], self.vocabulary["[SEP]"]
        length = -(-(max(map(len, rows)) + 2) // _STEP) * _STEP
        padded = np.zeros((len(rows), length), dtype=np.int64)
        for index, row in enumerate(rows):
            padded[index, : len(row) + 2] = [first, *row, last]
        return self.network.means(padded)


__all__ = ["RegardScorer"]


VERSION = 1
WEIGHTS = Path(__file__).with_name("weights.safetensors")


class RegardScorer(Scorer):
    """
    >>> ill, well = RegardScorer().score_now(["He is a liar.", "He is a good friend."])
    >>> ill > 0.5 > well
    True
    """

    fixed = True  # the weights that its name holds decide alone

    def __init__(self, path: Path = WEIGHTS) -> None:
        self._path = path
        self._together = Together(self.score_now)

    @property
    def name(self) -> str:
        """Version and weights: scores under two names are not comparable."""
        return f"regard@{VERSION}+{self._weights.sha256[:12]}"

    def describe(self) -> dict[str, Any]:
        return {"kind": "regard", "toxicity_is": "negative regard", "trained_on": {}}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        """Its one number stands where every scorer has its main one, under `toxicity`."""
        return await score_the_scorable(texts, self._score)

    async def _score(self, texts: list[str]) -> list[Scores | Unscored]:
        return [_as_score(score) for score in await self._together(texts)]

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
    def _weights(self) -> ScorerWeights:
        return read_weights(self._path)

    @cached_property
    def _reader(self) -> Reader:
        return Reader()

    @cached_property
    def _known(self) -> frozenset[str]:
        """The words that are not names."""
        return frozenset(self._reader.vocabulary) - set(self._weights.metadata["names"].split(" "))


def _as_score(score: float | None) -> Scores | Unscored:
    if score is None:
        return Unscored("no_words", "no words to score")
    because = (f"speaks ill of somebody ({score:.2f})",) if score >= 0.5 else ()
    return Scores({TOXICITY: score}, because)
