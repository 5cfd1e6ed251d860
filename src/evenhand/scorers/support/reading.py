"""A text as sentences, parts of sentences and words, and how near two words are in meaning."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.core.package_data import word_sets
from evenhand.scorers import offline
from evenhand.scorers.offline import weights as packed
from evenhand.scorers.offline.network import WordPiece
from evenhand.scorers.offline.weights import Floats

_LISTS = word_sets(__package__, "english.toml")

_TITLES = "".join(rf"(?<!\b{title}\.)" for title in ("Mr", "Ms", "Mrs", "Dr", "St"))
_SENTENCE = re.compile(rf"(?<=[.!?]){_TITLES}[\"”’')\]]*\s+")
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|[,;:—–]")
_STOPS = frozenset(",;:—–")
BREAKS = _LISTS["breaks"]
NEGATORS = _LISTS["negators"]
PRONOUNS = _LISTS["pronouns"]
_EMPTY_WORDS = _LISTS["empty_words"]
_ENDINGS = ("ing", "ied", "ies", "ed", "es", "ly", "er", "s", "e", "y")
_NEAR = 0.25  # our choice: below this cosine two words have nothing to do with each other


def sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text.strip()) if part]


def words(text: str) -> list[str]:
    """Words in small letters, and the marks that part a sentence."""
    return _WORD.findall(text.lower().replace("’", "'"))


def is_mark(word: str) -> bool:
    return word in _STOPS


def denies(word: str) -> bool:
    return word in NEGATORS or word.endswith("n't")


def tells(word: str) -> bool:
    """Whether a word has content of its own."""
    return word not in _EMPTY_WORDS and not is_mark(word) and not denies(word)


@cache
def stem(word: str) -> str:
    """The word without its endings, roughly: "studies", "studied" and "study" are one."""
    word = word.removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            bare = word[: -len(ending)]
            return bare[:-1] if len(bare) > 3 and bare[-1] == bare[-2] else stem(bare)
    return word


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The word vectors that ship with the offline scorer, centred and of length 1."""

    pieces: WordPiece
    vectors: Floats


class WordSimilarity:
    """How near words are in meaning, by the word vectors of the offline scorer."""

    def __init__(self) -> None:
        self._seen: dict[str, Floats] = {}

    @cached_property
    def _known(self) -> WordVectors:
        read = packed.read(Path(offline.__file__).with_name("weights.safetensors"))
        vocabulary = {word: at for at, word in enumerate(read.metadata["vocabulary"].split(" "))}
        table = read.floats("words")
        return WordVectors(WordPiece(vocabulary), _unit(table - table.mean(0)))

    def vector(self, word: str) -> Floats:
        vector = self._seen.get(word)
        if vector is None:
            vocabulary = self._known
            vector = _unit(vocabulary.vectors[vocabulary.pieces.pieces(word) or [0]].mean(0))
            if len(self._seen) < 100_000:
                self._seen[word] = vector
        return vector

    def along(self, words: Sequence[str], direction: Floats) -> Floats:
        """How far each word lies along a direction."""
        if not words:
            return np.zeros(0, dtype=np.float32)
        return np.asarray(self.vectors(words) @ direction, dtype=np.float32)

    def vectors(self, words: Sequence[str]) -> Floats:
        return np.stack([self.vector(word) for word in words])

    def near(self, ours: Sequence[str], theirs: Sequence[str]) -> Floats:
        """From 0 to 1 for each of our words beside each of theirs; 1 where the stems are one."""
        if not ours or not theirs:
            return np.zeros((len(ours), len(theirs)), dtype=np.float32)
        cosines = self.vectors(ours) @ self.vectors(theirs).T
        near = np.clip((cosines - _NEAR) / (1 - _NEAR), 0, 1)
        same = np.array([stem(w) for w in ours])[:, None] == np.array([stem(w) for w in theirs])
        return np.asarray(np.where(same, 1.0, near), dtype=np.float32)


def _unit(vectors: Any) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)
