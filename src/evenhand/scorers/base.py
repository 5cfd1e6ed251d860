"""What a scorer is, and how one takes a place in a cast."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from evenhand.domain import Usage
from evenhand.models.base import ModelReply, ModelRequest, Sample


@dataclass(frozen=True, slots=True)
class ToxicityScore:
    toxicity: float  # 0 to 1
    because: tuple[str, ...]  # what was found, in words a writer can act on


class Scorer(Protocol):
    """Raises `ScorerFailed` for a text it cannot score."""

    @property
    def name(self) -> str:
        """Name and version: scores of two versions are not comparable."""
        ...

    async def score(self, text: str) -> ToxicityScore: ...


class ScorerModel:
    """A scorer as a member of a cast, so that its scores are recorded, replayed and paid for by
    the same conversation that asks the language models."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    @property
    def name(self) -> str:
        return self._scorer.name

    def describe(self) -> dict[str, Any]:
        return {"kind": "scorer", "model": self._scorer.name}

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        started, clock = time.time_ns() // 1000, asyncio.get_running_loop().time()
        # The first thing said is the text; what follows it is talk about an unreadable score.
        text = next(message.content for message in request.messages if message.role == "user")
        score = await self._scorer.score(text)
        return ModelReply(
            samples=(Sample(orjson.dumps(score).decode()),),
            usage=Usage(0, 0),
            served_by=self._scorer.name,
            started_us=started,
            seconds=asyncio.get_running_loop().time() - clock,
        )
