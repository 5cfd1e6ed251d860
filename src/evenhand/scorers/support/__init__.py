"""Whether a context supports an answer, judged by hand-made features and a small network. No
language model, no service, numpy only. What it was trained on: card.md.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from evenhand.core import Usage
from evenhand.core.errors import ScorerFailed
from evenhand.models.base import ModelReply, ModelRequest, Sample
from evenhand.scorers.offline.network import Floats, ScorerWeights, read_weights
from evenhand.scorers.support.features import Features, SupportClaim, WordSimilarity

__all__ = ["ROLE", "SupportClaim", "SupportJudge", "SupportModel"]


VERSION = 1
WEIGHTS = Path(__file__).with_name("weights.safetensors")


@dataclass(frozen=True, slots=True)
class NetworkEnsemble:
    """Several networks of the same shape, whose logits are averaged: each is a little wrong in a
    way of its own."""

    names: tuple[str, ...]
    mean: Floats
    spread: Floats
    layers: tuple[tuple[Floats, Floats], ...]  # networks first, then in and out

    @classmethod
    def read(cls, weights: ScorerWeights) -> "NetworkEnsemble":
        count = int(weights.metadata["layers"])
        layers = [(weights.floats(f"w{i}"), weights.floats(f"b{i}")) for i in range(count)]
        return cls(
            names=tuple(weights.metadata["features"].split(" ")),
            mean=weights.floats("mean"),
            spread=weights.floats("spread"),
            layers=tuple(layers),
        )

    def __call__(self, rows: Sequence[dict[str, float]]) -> list[float]:
        """Probabilities, one for each row of features."""
        inputs = np.array([[row[name] for name in self.names] for row in rows], dtype=np.float32)
        x: Any = ((inputs - self.mean) / self.spread)[None]
        for index, (weight, bias) in enumerate(self.layers):
            x = x @ weight + bias[:, None]
            if index < len(self.layers) - 1:
                x = np.tanh(x)
        logits = x[:, :, 0].mean(0)
        return [round(float(1 / (1 + np.exp(-logit))), 4) for logit in logits]


class SupportJudge:
    """
    >>> SupportJudge().support("Kim and Lee came late. Kim had overslept.", "Who overslept?", "Kim")
    """

    def __init__(self, path: Path = WEIGHTS) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return f"support@{VERSION}+{self._weights.sha256[:12]}"

    def support(
        self, context: str, question: str, answer: str, others: Sequence[str] = ()
    ) -> float:
        """Score how likely the context supports an answer.

        Args:
            context: The text that the answer must follow from.
            question: The question.
            answer: The answer to score.
            others: The other options, without one that says that nothing is known.

        Returns:
            The likelihood, from 0 to 1.
        """
        return self.of([SupportClaim(context, question, answer, tuple(others))])[0]

    def of(self, claims: Sequence[SupportClaim]) -> list[float]:
        return self._networks([self._features.of(claim) for claim in claims]) if claims else []

    @cached_property
    def _weights(self) -> ScorerWeights:
        return read_weights(self._path)

    @cached_property
    def _networks(self) -> NetworkEnsemble:
        return NetworkEnsemble.read(self._weights)

    @cached_property
    def _features(self) -> Features:
        return Features(WordSimilarity(), self._weights.floats("valence"))


ROLE = "support"
_LONGEST = 100_000  # characters; our choice: the context of a question is not longer


class SupportModel:
    """Plays the role `support`. It is given a context, a question and options as JSON, and gives
    one number for each option."""

    def __init__(self, judge: SupportJudge | None = None) -> None:
        self._judge = judge or SupportJudge()

    @property
    def name(self) -> str:
        return self._judge.name

    def describe(self) -> dict[str, Any]:
        return {"kind": "scorer", "model": self.name, "scorer": {"kind": ROLE}}

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        started, clock = time.time_ns() // 1000, asyncio.get_running_loop().time()
        # The first thing said is the claim; what follows it is talk about an unreadable reply.
        content = next(message.content for message in request.messages if message.role == "user")
        if len(content) > _LONGEST:
            raise ScorerFailed(f"{self.name}: the context is longer than {_LONGEST:,} characters")
        claim = orjson.loads(content)
        options = claim["options"]
        claims = [
            SupportClaim(
                claim["context"], claim["question"], option, (*options[:i], *options[i + 1 :])
            )
            for i, option in enumerate(options)
        ]
        reply = {"support": self._judge.of(claims)}
        return ModelReply(
            samples=(Sample(orjson.dumps(reply).decode()),),
            usage=Usage(0, 0),
            served_by=self.name,
            started_us=started,
            seconds=asyncio.get_running_loop().time() - clock,
        )
