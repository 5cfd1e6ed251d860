"""Loopback servers that speak the engines' wire formats, and one that nobody may reach."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from evenhand.core import Message
from evenhand.models import ModelRequest
from tests.loopback.faulty import LoopbackServer
from tests.loopback.http import Call, Line

Answer = tuple[int, str, bytes]  # status, content type, body


@dataclass
class Engine:
    """Answers each request with what `answer` says; keeps what it was asked."""

    answer: Callable[[str, Mapping[str, str]], Answer]
    asked: list[dict[str, str]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    moved_to: str = ""
    url: str = ""

    async def __call__(self, call: Call, line: Line) -> str:
        parts = urlsplit(call.path)
        query = parts.query or call.raw.decode()
        given = {name: values[0] for name, values in parse_qs(query).items()}
        self.asked.append(given)
        self.headers.append(call.headers)
        status, kind, body = self.answer(parts.path, given)
        headers = {"content-type": kind}
        if self.moved_to:
            headers["location"] = self.moved_to
        await line.send(body, status=status, headers=headers)
        return "answered"


@contextlib.asynccontextmanager
async def serving(answer: Callable[[str, Mapping[str, str]], Answer]) -> AsyncIterator[Engine]:
    engine = Engine(answer)
    server = LoopbackServer(engine)
    server.lists_models = False
    async with server:
        engine.url = f"http://127.0.0.1:{server.port}"
        yield engine


@contextlib.asynccontextmanager
async def saying(
    body: Any, *, status: int = 200, kind: str = "application/json"
) -> AsyncIterator[Engine]:
    """A server with one answer to everything."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with serving(lambda path, given: (status, kind, data)) as engine:
        yield engine


@dataclass
class Honeypot:
    """Listens on every address of this machine, and counts who connects."""

    port: int = 0
    connections: int = 0

    async def _came(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nsecret")
        writer.close()


@contextlib.asynccontextmanager
async def honeypot() -> AsyncIterator[Honeypot]:
    pot = Honeypot()
    server = await asyncio.start_server(pot._came, "0.0.0.0", 0)
    pot.port = server.sockets[0].getsockname()[1]
    servers = [server]
    with contextlib.suppress(OSError):  # a machine without IPv6
        servers.append(await asyncio.start_server(pot._came, "::1", pot.port))
    try:
        yield pot
    finally:
        for server in servers:
            server.close()
            await server.wait_closed()


def soon(seconds: float = 20.0) -> float:
    return asyncio.get_running_loop().time() + seconds


def asking(query: str, context: str = "") -> ModelRequest:
    system = (Message("system", context),) if context else ()
    return ModelRequest(messages=(*system, Message("user", query)), deadline=soon())


def searxng_results(*texts: str) -> dict[str, Any]:
    """As SearXNG writes them."""
    results = [
        {
            "url": f"https://example.org/{number}",
            "title": f"Page {number}",
            "content": text,
            "engine": "brave",
            "parsed_url": ["https", "example.org", f"/{number}", "", "", ""],
            "engines": ["brave"],
            "positions": [number],
            "score": 1.0,
            "category": "general",
        }
        for number, text in enumerate(texts, start=1)
    ]
    return {
        "query": "q",
        "number_of_results": 0,
        "results": results,
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": [],
    }
