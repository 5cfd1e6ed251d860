"""Both ends of the gateway's bench, each a process of its own: who is asked, and who asks.

    python -m bench.gateway_ends upstream TEXTS     # prints its port
    python -m bench.gateway_ends client             # an order a line in, what was seen a line out

The upstream answers chat completions, plain or streamed, with one text of a file after the other;
its path says how long it waits: `/0ms/v1`, `/50ms/v1`.
"""

import asyncio
import itertools
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp
import orjson
from aiohttp import web

MODEL = "loopback"
_WORDS_A_CHUNK = 4  # our choice: servers send one to some words at a time
_HEAD = {"id": "c1", "created": 1, "model": MODEL}


@dataclass(frozen=True, slots=True)
class Load:
    """What a client is to do: so many connections ask one address, for a time or so many times."""

    urls: list[str]  # each request takes the next one
    connections: int = 64
    seconds: float | None = None
    requests: int | None = None
    stream: bool = False
    key: str = ""


@dataclass(slots=True)
class Seen:
    """What a client saw: an answer counts if its status is 200 and its end is there."""

    seconds: float = 0.0
    answered: int = 0
    milliseconds: list[float] = field(default_factory=list)  # of those that were answered
    refused: dict[str, int] = field(default_factory=dict)  # by the code or the name of the error


class Child:
    """One of the two as a process; a client takes orders."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.gateway_ends", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def does(self, load: Load) -> Seen:
        """Have a client do something; this waits for its end."""
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps(asdict(load)) + b"\n")
        self._process.stdin.flush()
        return Seen(**orjson.loads(self.line()))


async def _upstream(texts: list[str]) -> None:
    answers = itertools.cycle([(_plain(text), _streamed(text)) for text in texts])

    async def chat(request: web.Request) -> web.StreamResponse:
        asked = orjson.loads(await request.read())
        plain, streamed = next(answers)
        if wait := int(request.match_info["wait"]):
            await asyncio.sleep(wait / 1000)
        if not asked.get("stream"):
            return web.Response(body=plain, content_type="application/json")
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        for event in streamed:
            await answer.write(event)
        await answer.write_eof()
        return answer

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    app = web.Application()
    app.router.add_get(r"/{wait:\d+}ms/v1/models", models)
    app.router.add_post(r"/{wait:\d+}ms/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


def _plain(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": 60, "total_tokens": 80}
    body = {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": usage}
    return orjson.dumps(body)


def _streamed(text: str) -> list[bytes]:
    words = text.split(" ")
    starts = range(0, len(words), _WORDS_A_CHUNK)
    parts = [" ".join(words[at : at + _WORDS_A_CHUNK]) for at in starts]
    deltas = [{"role": "assistant", "content": ""}, {"content": parts[0]}]
    deltas += [{"content": f" {part}"} for part in parts[1:]]
    events = [_event(delta, None) for delta in deltas]
    return [*events, _event({}, "stop"), b"data: [DONE]\n\n"]


def _event(delta: dict[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + orjson.dumps(body) + b"\n\n"


async def _client() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        seen = await _asked(Load(**orjson.loads(line)))
        sys.stdout.buffer.write(orjson.dumps(asdict(seen)) + b"\n")
        sys.stdout.buffer.flush()


async def _asked(load: Load) -> Seen:
    """Ask over and over, a request at a time on each connection."""
    seen, began = Seen(), time.perf_counter()
    ends = began + (load.seconds or float("inf"))
    turns = iter(range(load.requests)) if load.requests else itertools.count()
    urls = itertools.cycle(load.urls)
    body = {"model": MODEL, "stream": load.stream,
            "messages": [{"role": "user", "content": "Tell me what happened today."}]}  # fmt: skip
    headers = {"content-type": "application/json"}
    if load.key:
        headers["authorization"] = f"Bearer {load.key}"
    sent = orjson.dumps(body)

    async def one(session: aiohttp.ClientSession) -> None:
        while time.perf_counter() < ends and next(turns, None) is not None:
            started = time.perf_counter()
            try:
                async with session.post(next(urls), data=sent, headers=headers) as response:
                    got = await response.read()
                whole = got.endswith(b"data: [DONE]\n\n" if load.stream else b"}")
                said = _code(got) if response.status != 200 else "answered" if whole else "cut"
            except (aiohttp.ClientError, OSError) as error:
                said = type(error).__name__
            if said == "answered":
                seen.answered += 1
                seen.milliseconds.append((time.perf_counter() - started) * 1000)
            else:
                seen.refused[said] = seen.refused.get(said, 0) + 1

    connector = aiohttp.TCPConnector(limit=load.connections)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(one(session) for _ in range(load.connections)))
    seen.seconds = time.perf_counter() - began
    return seen


def _code(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["error"]["code"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "error"


if __name__ == "__main__":
    if sys.argv[1] == "upstream":
        asyncio.run(_upstream(orjson.loads(Path(sys.argv[2]).read_bytes())))
    else:
        asyncio.run(_client())
