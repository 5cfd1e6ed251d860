"""The offline scorer behind a first stage that clears, in a tenth of a millisecond, what is surely
harmless. The network reads the rest. For screens; what it misses stands on its card.

The first stage adds a weight for each piece of a text and for each pair of nearby pieces. Where the
sum is below its cut-off, the text has the first stage's own score, else that of the network.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evenhand.scorers.base import TOXICITY, Scorer, Scores, Unscored, score_the_scorable
from evenhand.scorers.offline import OfflineScorer
from evenhand.scorers.offline.network import Floats, PairTerm, read_weights
from evenhand.scorers.offline.together import Together

_VERSION = "1"
FIRST_STAGE = Path(__file__).with_name("first_stage.safetensors")
HASH_BYTES = 5  # of each text that the first stage was trained on
_ON_THE_LOOP = 4_000  # our choice, in characters: about two milliseconds of the first stage
_STRETCH = 64  # our choice, in pieces: two or three sentences
_PIECES_AT_ONCE = 4096  # filled up to one length; our choice: more is not faster


@dataclass(frozen=True, slots=True)
class FirstStage:
    """What the file of the first stage holds."""

    term: PairTerm
    knots: Floats  # sums, and the score that the network gives such texts as a rule
    clears_below: float  # this sum
    strange: "np.ndarray[Any, np.dtype[np.bool_]]"  # the pieces that say nothing of a word
    most_strange: float  # a text with a larger share of them is not cleared
    mean: float  # added to every sum
    trained_on: frozenset[bytes]  # the hashes of texts
    sha256: str

    @classmethod
    def read(cls, path: Path, words: int) -> "FirstStage":
        """Read the file.

        Args:
            path: The file.
            words: How many pieces the scorer knows.

        Returns:
            The first stage.
        """
        weights = read_weights(path)
        cuts = weights.floats("cuts")
        return cls(
            term=PairTerm(weights, words),
            knots=weights.floats("knots"),
            clears_below=float(cuts[0]),
            strange=weights.floats("strange").astype(bool),
            most_strange=float(cuts[1]),
            mean=float(cuts[2]),
            trained_on=_hashes(weights.arrays["trained_on"].tobytes()),
            sha256=weights.sha256,
        )

    def worst(self, texts: Sequence[Sequence[Sequence[int]]]) -> list[float]:
        """Give the highest sum in each text, over its windows and over stretches of them: in a long
        text a few words weigh little. Infinity where a text has no words."""
        parts = [list(_stretches(windows)) for windows in texts]
        sums = iter(self._sums([part for of_text in parts for part in of_text]).tolist())
        return [max((next(sums) for _ in of_text), default=math.inf) for of_text in parts]

    def _sums(self, windows: Sequence[Sequence[int]]) -> Floats:
        """Give the sum of each row of pieces; infinity where too many are strange."""
        sums = np.zeros(len(windows), dtype=np.float32)
        order = sorted(range(len(windows)), key=lambda i: len(windows[i]))
        while order:
            length = len(windows[order[-1]])  # the longest says how many fit
            taken = order[-max(1, _PIECES_AT_ONCE // length) :]
            del order[-len(taken) :]
            rows = np.zeros((len(taken), length), dtype=np.int64)
            for row, i in enumerate(taken):
                rows[row, : len(windows[i])] = windows[i]
            strange = self.strange[rows].sum(1) > self.most_strange * (rows != 0).sum(1)
            sums[taken] = np.where(strange, np.inf, self.term(rows)[:, 0] + self.mean)
        return sums

    def score(self, total: float) -> float | None:
        """The score of a text with this sum; None where the first stage does not clear it."""
        if not total < self.clears_below:
            return None
        return round(float(np.interp(total, *self.knots)), 4)


def _stretches(windows: Sequence[Sequence[int]]) -> Iterator[Sequence[int]]:
    """Each window, and overlapping parts of a long one."""
    for window in windows:
        yield window
        if len(window) > _STRETCH:
            for start in range(0, len(window) - _STRETCH // 2, _STRETCH // 2):
                yield window[start : start + _STRETCH]


def digest(text: str) -> bytes:
    """The hash by which a text of the training is found again, however it is spaced."""
    return hashlib.sha256(" ".join(text.split()).encode()).digest()


def _hashes(joined: bytes) -> frozenset[bytes]:
    return frozenset(
        joined[start : start + HASH_BYTES] for start in range(0, len(joined), HASH_BYTES)
    )


class StagedScorer(Scorer):
    """
    >>> [found.toxicity > 0.5 for found in StagedScorer().score_now(["You idiot.", "Good day."])]
    [True, False]
    """

    fixed = True  # the weights that its name holds decide alone

    def __init__(self, path: Path = FIRST_STAGE) -> None:
        self._path = path
        self._offline = OfflineScorer()
        self._all = Together(self.score_now)
        self._rest = Together(self._read)

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name != "first_stage"}

    @cached_property
    def first_stage(self) -> FirstStage:
        """The first stage, read when it is first needed."""
        return FirstStage.read(self._path, len(self._offline.vocabulary))

    @property
    def name(self) -> str:
        """Version, and the checksums of both stages: scores under two names are not comparable."""
        both = f"{self.first_stage.sha256} {self._offline.name}"
        return f"staged@{_VERSION}+{hashlib.sha256(both.encode()).hexdigest()[:12]}"

    def describe(self) -> dict[str, Any]:
        trained_on = self._offline.describe()["trained_on"]
        return {"kind": "staged", "second": self._offline.name, "trained_on": trained_on}

    def stage_of(self, text: str) -> Literal[1, 2]:
        """Which stage decides about a text."""
        return 2 if self._cleared([text]) == [None] else 1

    def saw(self, text: str) -> bool:
        """Whether it was trained on this text, so that the text is no evidence about it."""
        return digest(text)[:HASH_BYTES] in self.first_stage.trained_on

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_the_scorable(texts, self._score)

    async def _score(self, texts: list[str]) -> list[Scores | Unscored]:
        """The first stage takes less time than handing its work to a thread would."""
        if sum(map(len, texts)) > _ON_THE_LOOP:
            return await self._all(texts)
        cleared = self._cleared(texts)
        rest = [text for text, score in zip(texts, cleared, strict=True) if score is None]
        return _merged(cleared, await self._rest(rest) if rest else [])

    def score_now(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        """The toxicity of each text, by the stage that decides it."""
        cleared = self._cleared(texts)
        rest = [text for text, score in zip(texts, cleared, strict=True) if score is None]
        return _merged(cleared, self._read(rest) if rest else [])

    def _cleared(self, texts: Sequence[str]) -> list[float | None]:
        """The scores of the first stage. A long text is cleared where each part of it is."""
        windows = [self._offline.windows(text) for text in texts]
        return [self.first_stage.score(total) for total in self.first_stage.worst(windows)]

    def _read(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return [
            Scores({TOXICITY: found.toxicity}, found.because)
            if isinstance(found, Scores)
            else found
            for found in self._offline.score_now(texts)
        ]


def _merged(
    cleared: Sequence[float | None], rest: Sequence[Scores | Unscored]
) -> list[Scores | Unscored]:
    """The scores of both stages, in the order of the texts."""
    others = iter(rest)
    return [next(others) if score is None else Scores({TOXICITY: score}) for score in cleared]
