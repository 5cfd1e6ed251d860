"""The server: counters, and four kinds of behaviour.

async with LoopbackServer(Faults(seed=1, rate=0.3)) as server:
    model = Endpoint(server.url, model="pretended")
"""

import asyncio
import contextlib
import json
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tests.loopback import replies
from tests.loopback.http import Call, Line, read_call

Behaviour = Callable[[Call, Line], Awaitable[str]]
"""Answers a call on its line; gives a word for what it did, which is counted."""

DRIP_SECONDS = 0.06  # slower than one byte per 50 ms: a reply of 300 bytes takes 18 s
CLIENT_LEFT = "client left"

_GARBAGE: tuple[bytes, ...] = (
    b"<html><body>It works!</body></html>",
    b'{"object": "chat.completion"}',
    b'{"choices": []}',
    b'{"choices": [{"message": {}, "finish_reason": "stop"}, ',
    b'{"choices": [{"message": {"content": 7}}]}',
    b"null",
    b"",
    b"\xff\xfe\x00\x01",
)


@dataclass
class Counts:
    """What the server saw."""

    requests: int = 0
    active: int = 0
    most_active: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)  # by logical request
    received: dict[str, list[float]] = field(default_factory=dict)  # times, by logical request
    busy_seconds: float = 0.0  # the integral of `active` over time
    _since: float = 0.0

    def came(self, call: Call) -> None:
        self._advance()
        self.requests += 1
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        self.attempts[call.key] += 1
        self.received.setdefault(call.key, []).append(call.received)

    def went(self, outcome: str) -> None:
        self._advance()
        self.active -= 1
        self.outcomes[outcome] += 1

    def busy_until_now(self) -> float:
        """Call-seconds so far: the difference of two readings over time is a mean concurrency."""
        self._advance()
        return self.busy_seconds

    def _advance(self) -> None:
        now = asyncio.get_running_loop().time()
        self.busy_seconds += self.active * (now - self._since)
        self._since = now


class LoopbackServer:
    """Listens on a free port of 127.0.0.1 for as long as the `async with` lasts."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.counts = Counts()
        self.calls: list[Call] = []  # only those that `keep` asks for
        self.keep = False
        self.lists_models = True  # False: GET /v1/models misbehaves like the rest
        self._connections: set[asyncio.Task[Any]] = set()
        self.most_connections = 0  # open at once, whether anything was asked on them or not

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.most_connections = max(self.most_connections, len(self._connections))
        line = Line(reader, writer)
        try:
            while line.open and (call := await read_call(reader)) is not None:
                await self._answer(call, line)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client hung up first
        except asyncio.CancelledError:
            pass  # the server is closing
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, call: Call, line: Line) -> None:
        if call.method == "GET" and self.lists_models:
            models = {"object": "list", "data": [{"id": "pretended", "object": "model"}]}
            await line.send_json(models)
            return
        if self.keep:
            self.calls.append(call)
        self.counts.came(call)
        outcome = CLIENT_LEFT
        try:
            outcome = await self.behaviour(call, line)
        finally:
            self.counts.went(outcome)


async def well(call: Call, line: Line) -> str:
    """A server without faults."""
    await line.send_json(replies.proper(call.body))
    return "good"


@dataclass(frozen=True)
class Fixed:
    """The same answer to every request, whatever it is."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    async def __call__(self, call: Call, line: Line) -> str:
        await line.send(self.body, status=self.status, headers=self.headers)
        return str(self.status)


@dataclass
class Capacity:
    """Takes `limit` calls at a time, each for `latency` seconds; more are turned away at once.

    `limit` may be set while the server runs.
    """

    limit: int
    latency: float
    taken: int = 0

    async def __call__(self, call: Call, line: Line) -> str:
        if self.taken >= self.limit:
            await line.send_json({"error": {"message": "full"}}, status=429)
            return "overloaded"
        self.taken += 1
        try:
            await asyncio.sleep(self.latency)
        finally:
            self.taken -= 1
        return await well(call, line)


@dataclass
class Faults:
    """Seven faults, equally likely, at `rate` in all; the rest is answered well.

    What happens to an attempt hangs on the seed, the request and the attempt's number alone, not
    on the order in which requests come.
    """

    seed: int
    rate: float
    latency: float = 0.0
    kinds: tuple[str, ...] = ("429", "500", "hang", "cut", "drip", "garbage", "reset")
    _tries: Counter[str] = field(default_factory=Counter)

    async def __call__(self, call: Call, line: Line) -> str:
        self._tries[call.key] += 1
        rng = random.Random(f"{self.seed}:{call.key}:{self._tries[call.key]}")
        if self.latency:
            await asyncio.sleep(self.latency)
        if rng.random() >= self.rate:
            return await well(call, line)
        return await misbehave(rng.choice(self.kinds), call, line, rng)


async def misbehave(kind: str, call: Call, line: Line, rng: random.Random) -> str:
    match kind:
        case "429":
            asked = rng.choice(({"retry-after-ms": "50"}, {"retry-after": "0.05"}))
            await line.send_json({"error": {"message": "slow down"}}, status=429, headers=asked)
        case "500":
            await line.send_json({"error": {"message": "broken inside"}}, status=500)
        case "hang":
            await line.hang()
        case "cut":
            whole = _proper_bytes(call)
            await line.cut(whole, rng.randrange(len(whole)))
        case "drip":
            with contextlib.suppress(ConnectionError):  # the client's patience ends first
                await line.drip(_proper_bytes(call), DRIP_SECONDS)
        case "garbage":
            await line.send(rng.choice(_GARBAGE))
        case "reset":
            line.reset()
        case _:
            raise ValueError(kind)
    return kind


def _proper_bytes(call: Call) -> bytes:
    return json.dumps(replies.proper(call.body)).encode()


@dataclass(frozen=True)
class Says:
    """A model that says `text` wherever it is asked for one of `where`, and else behaves.

    `where` holds schema names; None stands for plain words.
    """

    text: str
    where: frozenset[str | None]

    async def __call__(self, call: Call, line: Line) -> str:
        if replies.schema_name(call.body) not in self.where:
            return await well(call, line)
        reply = replies.completion(self.text, prompt_tokens=10, completion_tokens=10)
        await line.send_json(reply)
        return "said"


@dataclass
class Greedy:
    """Never satisfied, and always as long as it may be: the dearest model there can be.

    `letter` is what it writes; `spent` is what it counted, by the first word of the task.
    """

    letter: str
    bytes_per_token: int = 3
    words_only: bool = False  # refuses response_format: the schema then comes as a message
    spent: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)

    async def __call__(self, call: Call, line: Line) -> str:
        body = call.body
        if self.words_only and "response_format" in body:
            await line.send_json({"error": "response_format is not supported"}, status=400)
            return "refused"
        room: int = body["max_tokens"]
        letters = max(room - 60, 1) * self.bytes_per_token // len(self.letter.encode())
        filler = self.letter * letters
        match replies.schema_name(body):
            case "harm":
                text = json.dumps({"reason": filler, "harm": 100}, ensure_ascii=False)
            case "quality":
                marks = {"fluency": 0, "coherence": 0, "relevance": 0}
                text = json.dumps({"reason": filler, **marks}, ensure_ascii=False)
            case _:
                text = filler
        prompt = replies.prompt_tokens(body, self.bytes_per_token)
        found = re.search(r"task-\d+", json.dumps(body["messages"]))
        assert found is not None
        self.asked[found[0]] += 1
        self.spent[found[0]] += prompt + room
        reply = replies.completion(text, prompt_tokens=prompt, completion_tokens=room)
        await line.send_json(reply)
        return "greedy"
