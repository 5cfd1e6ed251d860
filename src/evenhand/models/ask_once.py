"""The reply cache: equal requests of a run are asked once, and the reply to the first is given to
the others."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import replace
from typing import Any, Literal

from evenhand.core.errors import DeadlinePassed, ModelError
from evenhand.models.base import ChatModel, ModelReply, ModelRequest

_KEPT = 10_000  # our choice: replies, the least recently used of which goes first

_Key = tuple[str, int, int | None]
_Outcome = ModelReply | Literal["failed", "left"]


class AskOnce:
    """A model behind a reply cache: it is asked once what several items of a run ask it.

    >>> cast = Cast(Endpoint(url, model="m")).through(AskOnce)

    Equal are the words, the model, the settings and the schema; not the seed, so a model that
    samples then says the same to all. Requests that one item repeats differ by their occurrence
    and are never shared with each other: several samples of a prompt stay several samples.

    A shared reply has no attempts and took no time, but has the tokens of the first, so that an
    item's row does not depend on who asked first. Failures are not shared.
    """

    def __init__(self, model: ChatModel, *, kept: int = _KEPT) -> None:
        self.model = model
        self._kept = kept
        self._replies: OrderedDict[_Key, ModelReply] = OrderedDict()
        self._under_way: dict[_Key, asyncio.Future[_Outcome]] = {}

    def around(self, model: ChatModel) -> "AskOnce":
        """Build the same cache around another model; the replies kept here stay here."""
        return AskOnce(model, kept=self._kept)

    @property
    def name(self) -> str:
        return self.model.name

    def describe(self) -> dict[str, Any]:
        return {**self.model.describe(), "asked_once": True}

    async def close(self) -> None:
        await self.model.close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        if not request.sha256:  # not from a conversation: nobody said what it equals
            return await self.model.complete(request)
        # The budget of an item near its end allows a shorter reply than the hash says.
        key = request.sha256, request.occurrence, request.max_tokens
        while True:
            if (reply := self._replies.get(key)) is not None:
                self._replies.move_to_end(key)
                return _shared(reply)
            under_way = self._under_way.get(key)
            if under_way is None:
                return await self._ask_first(key, request)
            outcome = await _end_of(under_way, request)
            if isinstance(outcome, ModelReply):
                return _shared(outcome)
            if outcome == "failed":  # at once, not one after the other: each has its own deadline
                return self._remember(key, await self.model.complete(request))

    async def _ask_first(self, key: _Key, request: ModelRequest) -> ModelReply:
        under_way = asyncio.get_running_loop().create_future()
        self._under_way[key] = under_way
        outcome: _Outcome = "left"  # cancelled: one of those who wait takes its place
        try:
            outcome = await self.model.complete(request)
        except ModelError:
            outcome = "failed"
            raise
        finally:
            del self._under_way[key]
            under_way.set_result(outcome)
        return self._remember(key, outcome)

    def _remember(self, key: _Key, reply: ModelReply) -> ModelReply:
        self._replies[key] = reply
        self._replies.move_to_end(key)
        if len(self._replies) > self._kept:
            self._replies.popitem(last=False)
        return reply


async def _end_of(under_way: asyncio.Future[_Outcome], request: ModelRequest) -> _Outcome:
    """Wait for the end of the equal request that is on the wire, if that comes in time for this
    one."""
    try:
        async with asyncio.timeout_at(request.deadline):
            return await asyncio.shield(under_way)  # to be cancelled must not cancel the others
    except TimeoutError:
        raise DeadlinePassed("out of time while an equal request was under way") from None


def _shared(reply: ModelReply) -> ModelReply:
    return replace(reply, attempts=0, started_us=time.time_ns() // 1000, seconds=0.0)
