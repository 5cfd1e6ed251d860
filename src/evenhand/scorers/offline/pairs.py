"""A linear term beside the network: each piece, and each pair next to each other or one apart.

The network reads what a sentence means and forgets rare words; this remembers them.
"""

from typing import Any

import numpy as np

from evenhand.scorers.offline.weights import Floats, Weights

_APART = (1, 2)

Whole = np.ndarray[Any, np.dtype[np.int64]]


def features(pieces: Whole, words: int, slots: int) -> tuple[Whole, Floats]:
    """Rows of pieces, short ones filled up with 0, to rows of features, and 1 where one is there.
    A piece is its own feature; pairs share `slots` further ones."""
    ids, there = [pieces], [pieces != 0]
    for apart in _APART:
        first, second = pieces[:, :-apart], pieces[:, apart:]
        ids.append(words + (first * 31_337 + second * 7_919 + apart * 104_729) % slots)
        there.append(second != 0)
    return np.concatenate(ids, axis=1), np.concatenate(there, axis=1).astype(np.float32)


class Pairs:
    def __init__(self, weights: Weights, words: int) -> None:
        self._table, self._words = np.ascontiguousarray(weights.floats("pairs").T), words

    def __call__(self, pieces: Whole) -> Floats:
        """One number for each attribute that was fitted; a long text does not weigh more."""
        ids, there = features(pieces, self._words, len(self._table) - self._words)
        added = (self._table[ids] * there[:, :, None]).sum(1)
        return np.asarray(added / np.sqrt(there.sum(1, keepdims=True)), dtype=np.float32)
