"""A small toxicity model that ships with the package; see card.md for where not to trust it."""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from evenhand.scorers.base import ATTRIBUTES, Scorer, Scores, Unscored, score_the_scorable
from evenhand.scorers.offline.network import WEIGHTS, Floats, PackedModel
from evenhand.scorers.offline.together import Together

_VERSION = "1"
_MARKS = ("[CLS]", "[SEP]", "[UNK]")
_PIECES_AT_ONCE = 1024  # our choice: fits a processor's cache, and more is not faster
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


class OfflineScorer(Scorer):
    """
    >>> [found.toxicity > 0.5 for found in OfflineScorer().score_now(["You idiot.", "Good day."])]
    [True, False]
    """

    fixed = True  # the weights that its name holds decide alone

    def __init__(self, path: Path = WEIGHTS) -> None:
        self._model = PackedModel(path)
        self._together = Together(self.score_now)

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
        return await score_the_scorable(texts, self._together)

    def score_now(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        """Each attribute from 0 to 1, on the scale of the recorded Perspective scores."""
        windows = [self.windows(text) for text in texts]
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

    @property
    def vocabulary(self) -> dict[str, int]:
        """The pieces that it knows, and their numbers."""
        return self._model.vocabulary

    def windows(self, text: str) -> list[list[int]]:
        """The pieces of a text with their marks, a long one in even parts; none without words."""
        pieces, room = self._model.pieces.pieces(text), self._model.longest - 2
        first, last, unknown = (self._model.vocabulary[mark] for mark in _MARKS)
        if all(piece == unknown for piece in pieces):
            return []
        count = math.ceil(len(pieces) / room)
        size = math.ceil(len(pieces) / count)
        cut = [pieces[start : start + size] for start in range(0, len(pieces), size)]
        return [[first, *part, last] for part in cut]

    def _logits(self, windows: Sequence[Sequence[int]]) -> Floats:
        logits = np.zeros((len(windows), len(self._outputs)), dtype=np.float32)
        # Rows of one length need no filling up, and score in a batch what they score alone.
        by_length = defaultdict[int, list[int]](list)
        for i, window in enumerate(windows):
            by_length[-(-len(window) // _STEP) * _STEP].append(i)
        for length, places in by_length.items():
            at_once = max(1, _PIECES_AT_ONCE // length)
            for start in range(0, len(places), at_once):
                part = places[start : start + at_once]
                rows = np.zeros((len(part), length), dtype=np.int64)
                for row, i in enumerate(part):
                    rows[row, : len(windows[i])] = windows[i]
                logits[part] = self._model.network(rows)
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
