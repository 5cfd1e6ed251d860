"""The scorer that works from the first minute: no service, no download, numpy alone.

What it was trained on, how well it does and where not to trust it: card.md.
"""

import asyncio
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import orjson

from evenhand.scorers.offline import weights as packed
from evenhand.scorers.offline.network import Network
from evenhand.scorers.offline.weights import Floats
from evenhand.scorers.offline.wordpiece import WordPiece

_WEIGHTS = Path(__file__).parent / "weights.safetensors"
_VERSION = "1"
_PIECES_AT_ONCE = 4096  # our choice: fits a processor's cache, and more is not faster
_Found = TypeVar("_Found")
_STEP = 4  # lengths are filled up to a multiple, so that few shapes occur


@dataclass(frozen=True, slots=True)
class Scores:
    """Each attribute from 0 to 1, on the scale of the recorded Perspective scores."""

    attributes: Mapping[str, float]

    @property
    def toxicity(self) -> float:
        return self.attributes["toxicity"]


@dataclass(frozen=True, slots=True)
class Missing:
    """No score, and why. Never to be read as harmless."""

    reason: str


@cache
def _thread() -> ThreadPoolExecutor:
    """The one thread of this process that scores. It is no part of a scorer, which is sent to other
    processes."""
    return ThreadPoolExecutor(1, "offline-scorer")


async def in_thread(
    work: Callable[[Sequence[str]], list[_Found]], texts: Sequence[str]
) -> list[_Found]:
    """Score in a thread, so that calls under way elsewhere are not held up. In one for all: several
    would wait for each other within BLAS, busily, and take the interpreter from the loop."""
    return await asyncio.get_running_loop().run_in_executor(_thread(), work, texts)


os.register_at_fork(after_in_child=_thread.cache_clear)  # a thread is not there in a child


class OfflineScorer:
    """
    >>> [found.toxicity > 0.5 for found in OfflineScorer().score_now(["You idiot.", "Good day."])]
    [True, False]
    """

    def __init__(self, path: Path = _WEIGHTS) -> None:
        self._path = path

    @property
    def name(self) -> str:
        """Version and weights: scores under two names are not comparable."""
        return f"offline@{_VERSION}+{self._weights.sha256[:12]}"

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(orjson.loads(self._weights.metadata["attributes"]))

    async def score(self, texts: Sequence[str]) -> list[Scores | Missing]:
        return await in_thread(self.score_now, texts)

    def score_now(self, texts: Sequence[str]) -> list[Scores | Missing]:
        windows = [self._windows(text) for text in texts]
        flat = [window for of_text in windows for window in of_text]
        logits = iter(self._logits(flat))
        outcomes: list[Scores | Missing] = []
        for of_text in windows:
            if not of_text:
                outcomes.append(Missing("no words to score"))
                continue
            # A long text is as toxic as its worst stretch.
            worst = np.max([next(logits) for _ in of_text], axis=0)
            outcomes.append(Scores(dict(zip(self.attributes, self._on_scale(worst), strict=True))))
        return outcomes

    def _windows(self, text: str) -> list[list[int]]:
        pieces, room = self._pieces.pieces(text), self._network.longest - 2
        first, last, unknown = self._marks
        if all(piece == unknown for piece in pieces):
            return []
        count = math.ceil(len(pieces) / room)
        size = math.ceil(len(pieces) / count)
        cut = [pieces[start : start + size] for start in range(0, len(pieces), size)]
        return [[first, *part, last] for part in cut]

    def _logits(self, windows: Sequence[Sequence[int]]) -> Floats:
        logits = np.zeros((len(windows), len(self.attributes)), dtype=np.float32)
        order = sorted(range(len(windows)), key=lambda i: len(windows[i]))
        while order:
            # Longest first: the first one taken says how many fit.
            length = -(-len(windows[order[-1]]) // _STEP) * _STEP
            taken = order[-max(1, _PIECES_AT_ONCE // length) :]
            del order[-len(taken) :]
            rows = np.zeros((len(taken), length), dtype=np.int64)
            for row, i in enumerate(taken):
                rows[row, : len(windows[i])] = windows[i]
            logits[taken] = self._network(rows)
        return logits

    def _on_scale(self, logits: Floats) -> list[float]:
        """Through the knots that were fitted to the recorded scores; rising, so order is kept."""
        return [
            round(float(np.interp(logit, knots, scores)), 4)
            for logit, (knots, scores) in zip(logits, self._knots, strict=True)
        ]

    @cached_property
    def _weights(self) -> packed.Weights:
        return packed.read(self._path)

    @cached_property
    def _network(self) -> Network:
        return Network(self._weights)

    @cached_property
    def _knots(self) -> Floats:
        return self._weights.floats("knots")

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        words = self._weights.metadata["vocabulary"].split(" ")
        return {word: at for at, word in enumerate(words)}

    @cached_property
    def _pieces(self) -> WordPiece:
        return WordPiece(self._vocabulary)

    @cached_property
    def _marks(self) -> tuple[int, int, int]:
        vocabulary = self._vocabulary
        return vocabulary["[CLS]"], vocabulary["[SEP]"], vocabulary["[UNK]"]
