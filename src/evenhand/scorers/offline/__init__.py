"""A small toxicity model that ships with the package; see card.md for where not to trust it."""

import asyncio
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson

from evenhand.scorers.base import ATTRIBUTES, Scorer, Scores, Unscored, score_the_scorable
from evenhand.scorers.offline.network import WEIGHTS, Floats, PackedModel

_VERSION = "1"
_MARKS = ("[CLS]", "[SEP]", "[UNK]")
_PIECES_AT_ONCE = 4096  # our choice: fits a processor's cache, and more is not faster
_Found = TypeVar("_Found")
_STEP = 4  # lengths are filled up to a multiple, so that few shapes occur


_OURS = {"sexually_explicit": "sexual"}  # its scores are Perspective's, and so are its names
# By sets of an audit. "held_out": a fifth by the text's hash was not trained on (see its card.md).
_TRAINED_ON = {
    "rtp": "all",
    "rtp_models": "all",  # calibrated on, not trained
    "davidson": "held_out",
    "toxigen": "held_out",
    "surge": "held_out",
    "openai_moderation": "held_out",
}


@cache
def _thread() -> ThreadPoolExecutor:
    """The one thread of this process that scores. Scorers do not hold it, as they are sent to other
    processes."""
    return ThreadPoolExecutor(1, "offline-scorer")


async def in_thread(
    work: Callable[[Sequence[str]], list[_Found]], texts: Sequence[str]
) -> list[_Found]:
    """Score in a thread, so that calls under way elsewhere are not held up. In one for all: several
    would wait for each other within BLAS, busily, and take the interpreter from the loop."""
    return await asyncio.get_running_loop().run_in_executor(_thread(), work, texts)


os.register_at_fork(after_in_child=_thread.cache_clear)  # a thread is not there in a child


class OfflineScorer(Scorer):
    """
    >>> [found.toxicity > 0.5 for found in OfflineScorer().score_now(["You idiot.", "Good day."])]
    [True, False]
    """

    def __init__(self, path: Path = WEIGHTS) -> None:
        self._model = PackedModel(path)

    @property
    def name(self) -> str:
        """Version and weights: scores under two names are not comparable."""
        return f"offline@{_VERSION}+{self._model.weights.sha256[:12]}"

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(name for name in ATTRIBUTES if name in self._outputs)

    def describe(self) -> dict[str, Any]:
        return {"kind": "offline", "trained_on": dict(_TRAINED_ON)}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_the_scorable(texts, partial(in_thread, self.score_now))

    def score_now(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        """Each attribute from 0 to 1, on the scale of the recorded Perspective scores."""
        windows = [self._windows(text) for text in texts]
        flat = [window for of_text in windows for window in of_text]
        logits = iter(self._logits(flat))
        outcomes: list[Scores | Unscored] = []
        for of_text in windows:
            if not of_text:
                outcomes.append(Unscored("no_words", "no words to score"))
                continue
            # A long text is as toxic as its worst stretch.
            worst = np.max([next(logits) for _ in of_text], axis=0)
            outcomes.append(self._scores(self._on_scale(worst)))
        return outcomes

    def _scores(self, outputs: Sequence[float]) -> Scores:
        by_name = dict(zip(self._outputs, outputs, strict=True))
        scores = {name: by_name[name] for name in self.attributes}
        high = sorted((name for name in scores if scores[name] >= 0.5), key=scores.__getitem__)
        return Scores(scores, tuple(f"{name} {scores[name]:.2f}" for name in reversed(high)))

    def _windows(self, text: str) -> list[list[int]]:
        pieces, room = self._model.pieces.pieces(text), self._model.network.longest - 2
        first, last, unknown = (self._model.vocabulary[mark] for mark in _MARKS)
        if all(piece == unknown for piece in pieces):
            return []
        count = math.ceil(len(pieces) / room)
        size = math.ceil(len(pieces) / count)
        cut = [pieces[start : start + size] for start in range(0, len(pieces), size)]
        return [[first, *part, last] for part in cut]

    def _logits(self, windows: Sequence[Sequence[int]]) -> Floats:
        logits = np.zeros((len(windows), len(self._outputs)), dtype=np.float32)
        order = sorted(range(len(windows)), key=lambda i: len(windows[i]))
        while order:
            # Longest first: the first one taken says how many fit.
            length = -(-len(windows[order[-1]]) // _STEP) * _STEP
            taken = order[-max(1, _PIECES_AT_ONCE // length) :]
            del order[-len(taken) :]
            rows = np.zeros((len(taken), length), dtype=np.int64)
            for row, i in enumerate(taken):
                rows[row, : len(windows[i])] = windows[i]
            logits[taken] = self._model.network(rows)
        return logits

    def _on_scale(self, logits: Floats) -> list[float]:
        """Through the knots that were fitted to the recorded scores; rising, so order is kept."""
        return [
            round(float(np.interp(logit, knots, scores)), 4)
            for logit, (knots, scores) in zip(logits, self._knots, strict=True)
        ]

    @cached_property
    def _outputs(self) -> tuple[str, ...]:
        """Our names of what the network gives, in its order."""
        names = orjson.loads(self._model.weights.metadata["attributes"])
        return tuple(_OURS.get(name, name) for name in names)

    @cached_property
    def _knots(self) -> Floats:
        return self._model.weights.floats("knots")
