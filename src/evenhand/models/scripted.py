"""The scripted model is the test double that ships: a model whose answers you write."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from evenhand.domain import Usage
from evenhand.errors import ModelError
from evenhand.models.base import ModelReply, ModelRequest, Sample

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
