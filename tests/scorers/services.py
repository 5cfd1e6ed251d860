"""Loopback services that score texts, and some that fail."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.loopback.faulty import LoopbackServer
from tests.loopback.http import Call, Line

HANG = "hang"
Answer = tuple[int, bytes] | str  # status and body, or HANG


@dataclass
class Service:
    """Answers each request with what `answer` says of its body; keeps what it was sent."""

    answer: Callable[[dict[str, Any]], Answer]
    asked: list[Call] = field(default_factory=list)
    url: str = ""

    async def __call__(self, call: Call, line: Line) -> str:
        self.asked.append(call)
        answer = self.answer(call.body)
        if isinstance(answer, str):
            await line.hang()
            return answer
        status, body = answer
        await line.send(body, status=status)
        return str(status)


@contextlib.asynccontextmanager
async def serving(answer: Callable[[dict[str, Any]], Answer]) -> AsyncIterator[Service]:
    service = Service(answer)
    server = LoopbackServer(service)
    async with server:
        service.url = f"http://127.0.0.1:{server.port}/v1"
        yield service


def good(body: Any) -> Answer:
    return 200, json.dumps(body).encode()
