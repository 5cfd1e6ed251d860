"""From the pieces of a sentence to the mean of what the offline scorer's network makes of them."""

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from evenhand.scorers import offline
from evenhand.scorers.offline import weights as packed
from evenhand.scorers.offline.network import Network
from evenhand.scorers.offline.weights import Floats, Weights
from evenhand.scorers.offline.wordpiece import WordPiece
from evenhand.scorers.regard.masking import WHO

AT_ONCE = 64  # sentences; our choice: fits a processor's cache
_ROOM = 126  # pieces, beside the two marks
_LATIN = re.compile("[A-Za-z]")
_STEP = 4  # lengths are filled up to a multiple, so that few shapes occur


class Reader:
    """Reads a sentence as 384 numbers."""

    @cached_property
    def _weights(self) -> Weights:
        return packed.read(Path(offline.__file__).with_name("weights.safetensors"))

    @cached_property
    def _network(self) -> Network:
        return Network(self._weights)

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        return {word: at for at, word in enumerate(self._weights.metadata["vocabulary"].split(" "))}

    @cached_property
    def _pieces(self) -> WordPiece:
        return WordPiece(self.vocabulary)

    def windows(self, sentence: str) -> list[tuple[int, ...]]:
        """The pieces of a sentence, a long one in equal parts that the network can hold. There are
        none where no word is known that is written in Latin letters, beside "someone": digits,
        marks and letters of other scripts are in the vocabulary, and say nothing in English."""
        normalized = unicodedata.normalize("NFKD", sentence).replace(WHO, "")
        piece_ids = tuple(self._pieces.pieces(sentence))
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
        return self._network.means(padded)
