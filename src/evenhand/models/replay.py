"""A replay answers from recorded turns: a finished run is repeated offline, or a broken one
resumed."""

import asyncio
from typing import Any, Protocol

import orjson

from evenhand.domain import Turn, Usage
from evenhand.errors import TurnMissing, model_error
from evenhand.models.base import ChatModel, ModelReply, ModelRequest, Sample, TokenLogprob


class Tape(Protocol):
    def take(self, position: int, request: str, occurrence: int) -> Turn | None:
        """Give the recorded turn with this key, once; None if there is none."""
        ...


class ReplayModel:
    """A model that answers from recorded turns (a "tape"). What was not recorded goes to `live`, or
    is an error that names it.

    A recorded failure fails again in the same way, so a replayed run has the same failed items.
    """

    def __init__(
        self, tape: Tape, description: dict[str, Any], *, live: ChatModel | None = None
    ) -> None:
        self._tape = tape
        self._description = description  # of the model that was recorded
        self._live = live

    @classmethod
    def before(cls, model: ChatModel, tape: Tape) -> "ReplayModel":
        """Answer from the recorded turns first, then ask the model itself."""
        return cls(tape, model.describe(), live=model)

    @property
    def name(self) -> str:
        name: str = self._description["model"]
        return name

    def describe(self) -> dict[str, Any]:
        return self._description

    async def close(self) -> None:
        if self._live is not None:
            await self._live.close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        turn = self._tape.take(request.position, request.sha256, request.occurrence)
        if turn is not None:
            await asyncio.sleep(0)  # those asked side by side are all asked before one is answered
            return reply_of(turn)
        if self._live is not None:
            return await self._live.complete(request)
        raise TurnMissing(
            f"the tape has no turn for item {request.position}, request {request.sha256[:12]}, "
            f"occurrence {request.occurrence}: was the method, a prompt or the cast changed?"
        )


def reply_of(turn: Turn) -> ModelReply:
    if turn.error is not None:
        error = model_error(turn.error, turn.error_message or "", turn.attempts)
        error.recorded = turn.started_us, turn.seconds
        error.tokens = _tokens(turn)
        raise error
    tokens = _tokens(turn)
    logprobs = _logprobs(turn.logprobs) or [None] * len(turn.texts)
    return ModelReply(
        samples=tuple(map(Sample, turn.texts, turn.finish, logprobs)),
        usage=None if tokens is None else Usage(*tokens),
        served_by=turn.served_by,
        attempts=turn.attempts,
        started_us=turn.started_us,
        seconds=turn.seconds,
    )


def _tokens(turn: Turn) -> tuple[int, int] | None:
    if turn.prompt_tokens is None or turn.completion_tokens is None:
        return None
    return turn.prompt_tokens, turn.completion_tokens


def _logprobs(raw: str | None) -> list[tuple[TokenLogprob, ...] | None] | None:
    if raw is None:
        return None
    return [
        None
        if sample is None
        else tuple(
            TokenLogprob(entry["token"], entry["logprob"], tuple(map(tuple, entry["top"])))
            for entry in sample
        )
        for sample in orjson.loads(raw)
    ]
