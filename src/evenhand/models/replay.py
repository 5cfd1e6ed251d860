"""Models that say what is already there: a replay answers from recorded turns (a finished run is
repeated offline, or a broken one resumed), a scripted model what a test wrote, and the placebo
critic a critique recorded for a different item (control condition `critique=other`).
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, Protocol

import orjson

from evenhand.core import Turn, Usage
from evenhand.core.errors import ModelError, ModelRefused, TurnMissing, UserError, model_error
from evenhand.core.items import calls_of
from evenhand.core.prices import NOBODY
from evenhand.models.base import ChatModel, ModelReply, ModelRequest, Sample, TokenLogprob


class Tape(Protocol):
    def take(self, position: int, request: str, occurrence: int) -> Turn | None:
        """Return the recorded call with this key, once.

        Args:
            position: The position of the item in the run.
            request: The SHA-256 of the request.
            occurrence: Which of the identical requests of the item this is.

        Returns:
            The recorded call; None if there is none.
        """
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
            f"The replayed run has no response for item {request.position}, request "
            f"{request.sha256[:12]}, occurrence {request.occurrence}. The method, a prompt or a "
            "role's model has changed. Run without --replay, or with the settings of that run."
        )


def reply_of(turn: Turn) -> ModelReply:
    if turn.error is not None:
        error = model_error(turn.error, turn.error_message or "", turn.attempts)
        error.recorded = turn.started_us, turn.seconds
        error.tokens = _tokens(turn)
        raise error
    tokens = _tokens(turn)
    logprobs = _logprobs(turn.logprobs) or [None] * len(turn.texts)
    thinking = turn.thinking or ("",) * len(turn.texts)
    calls = map(calls_of, orjson.loads(turn.tool_calls)) if turn.tool_calls else repeat(())
    return ModelReply(
        samples=tuple(map(Sample, turn.texts, turn.finish, logprobs, thinking, calls)),
        usage=None if tokens is None else Usage(*tokens, turn.thinking_tokens),
        served_by=turn.served_by,
        adapted=turn.adapted,
        batch=turn.batch,
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


Script = Callable[[ModelRequest], str | ModelReply | ModelError]


class ScriptedModel:
    """A model that answers with what `script` returns for a request; an error it returns is raised.

    >>> model = ScriptedModel(lambda request: "A kind answer.")

    Usage is counted in words, so that budgets can be tested by hand.
    """

    def __init__(self, script: Script, *, name: str = "scripted", seconds: float = 0.0) -> None:
        self._script = script
        self._name = name
        self._seconds = seconds
        self.requests = 0

    @property
    def name(self) -> str:
        return self._name

    def describe(self) -> dict[str, Any]:
        return {"kind": "scripted", "model": self._name}

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests += 1
        started = time.time_ns() // 1000
        if self._seconds:
            await asyncio.sleep(self._seconds)
        reply = self._script(request)
        if isinstance(reply, ModelError):
            raise reply
        if isinstance(reply, ModelReply):
            return reply
        prompt_text = request.prompt or " ".join(message.content for message in request.messages)
        return ModelReply(
            samples=(Sample(reply),) * request.n,
            usage=Usage(len(prompt_text.split()), len(reply.split()) * request.n),
            served_by=self._name,
            started_us=started,
            seconds=self._seconds,
        )


def nobody() -> ScriptedModel:
    """Make the default model of a method that asks no language model: a call is refused."""
    return ScriptedModel(lambda _: ModelRefused("this method asks nobody"), name=NOBODY)


class BorrowedReplies:
    """A placebo critic gives each item a text that was recorded for another one.

    What it is asked is the id of the item that wants one. Which text it gets depends on that id and
    on how often the item has asked before, not on the order of the run or on a clock.
    """

    name = "borrowed"

    def __init__(self, recorded: Iterable[tuple[str, str]]) -> None:
        """Take ids of items, each with a text that was recorded for it."""
        # A rendered prompt has no blanks around it, so the ids are compared without them.
        self._said = tuple(sorted((item.strip(), text) for item, text in recorded))
        items = len({item for item, _ in self._said})
        if items < 2:
            raise UserError(
                f"Only {items} items have texts to borrow, and two or more are needed so that no "
                "item gets its own. Use a larger run."
            )

    def describe(self) -> dict[str, Any]:
        """Describe the texts by their hash: two placebo critics with the same texts are the same,
        wherever these were recorded."""
        digest = hashlib.sha256(orjson.dumps(self._said)).hexdigest()
        return {
            "kind": "borrowed",
            "model": self.name,
            "texts": len(self._said),
            "sha256": digest,
        }

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        started = time.time_ns() // 1000
        await asyncio.sleep(0)
        # The first thing said is the id; what follows it is talk about an unreadable reply.
        asking = next(message.content for message in request.messages if message.role == "user")
        return ModelReply(
            samples=(Sample(self.text_for(asking, request.occurrence)),),
            usage=Usage(0, 0),
            served_by=self.name,
            started_us=started,
        )

    def text_for(self, item: str, occurrence: int) -> str:
        digest = hashlib.sha256(f"{item}:{occurrence}".encode()).digest()
        index = int.from_bytes(digest[:8], "big") % len(self._said)
        while self._said[index][0] == item:  # ends: at least one other item is there
            index = (index + 1) % len(self._said)
        return self._said[index][1]
