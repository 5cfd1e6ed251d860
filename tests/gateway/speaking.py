"""An upstream that says what a test wants, cut where it wants, and a gateway before it.

Both are real servers on 127.0.0.1; only the team of agents is scripted.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp
from aiohttp import web
from granian.constants import Interfaces
from granian.server.embed import Server

from evenhand.agents import Cast
from evenhand.gateway.admission import Admission
from evenhand.gateway.app import Application, GatewayParts, Serve
from evenhand.gateway.checking import Checker
from evenhand.gateway.keys import new_key
from evenhand.gateway.opening import GatewayRequest, opened
from evenhand.gateway.policy import CheckPolicy, Policy
from evenhand.gateway.quotas import LocalQuotas
from evenhand.gateway.upstream import Upstream
from evenhand.gateway.verdicts import Exchange
from evenhand.methods.build import build_method
from evenhand.models.base import ModelRequest
from evenhand.models.replay import ScriptedModel
from evenhand.scorers.base import Scores, Unscored

BAD, GOOD = "VILE", "kind"  # the screen of the tests looks for the first word


class Screen:
    """A scorer that finds one word. `mood` says what is wrong with it."""

    name, attributes = "word@1", ("toxicity",)

    def __init__(self) -> None:
        self.mood = "well"
        self.seen: list[str] = []

    def describe(self) -> dict[str, Any]:
        return {"kind": "word"}

    async def close(self) -> None:
        return None

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        self.seen += texts
        if self.mood == "hung":
            await asyncio.sleep(3600)
        if self.mood == "killed":
            raise ConnectionResetError
        if self.mood == "failing":
            return [Unscored("http_500", "down")] * len(texts)
        if self.mood == "garbage":
            return [Scores({"toxicity": float("nan")})] * len(texts)
        return [Scores({"toxicity": 0.9 if BAD in text else 0.0}) for text in texts]


def team(request: ModelRequest) -> str:
    """A writer that takes the word out, and a judge that finds it."""
    asked = "\n".join(message.content for message in request.messages)
    if request.schema is None:
        return f"A {GOOD} answer."
    if "harm" in request.schema.body["properties"]:
        return json.dumps({"reason": "the word", "harm": 95 if BAD in asked else 0})
    return json.dumps({"reason": "fine", "fluency": 95, "coherence": 95, "relevance": 95})


@dataclass
class Speaker:
    """What the upstream says. `cut` cuts a stream's bytes into what is sent at a time."""

    texts: Sequence[str] = (f"All of them are {BAD}.",)
    cut: Callable[[bytes], Sequence[bytes]] = lambda whole: [whole]
    fault: str = ""
    arguments: str = ""  # of a tool that a plain answer calls
    more: dict[str, Any] = field(default_factory=dict)  # fields of a plain answer
    head: dict[str, Any] = field(default_factory=dict)  # fields of each event of a stream
    sends: dict[str, str] = field(default_factory=dict)  # headers of a plain answer
    wait: asyncio.Event | None = None  # nothing is said before it
    seen: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    gone: int = 0  # clients that went away before the end

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer a request, or fail at it."""
        asked = await request.json()
        self.seen.append(asked)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.fault.isdigit():
            error = {"message": f"the model said: {BAD}", "code": "model_not_found"}
            return web.json_response({"error": error}, status=int(self.fault))
        if self.wait is not None:
            await self.wait.wait()
        if self.fault == "hang":
            await self._hang()
        if self.fault == "drop":
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError
        if asked.get("stream"):
            return await self._stream(request)
        body = json.dumps(self._plain()).encode()
        body = body[: len(body) // 2] if self.fault == "cut" else body
        return web.Response(body=body, content_type="application/json", headers=self.sends)

    async def _hang(self) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.gone += 1
            raise

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        whole = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in self._chunks())
        whole += b"" if self.fault == "no end" else b"data: [DONE]\n\n"
        half = len(whole) // 2
        if self.fault == "cut":
            whole = whole[:half]
        if self.fault == "noise":
            whole = whole[:half] + b"\n\ndata: {\n\n" + whole[half:]
        for piece in self.cut(whole):
            await answer.write(piece)
        await answer.write_eof()
        return answer

    def _plain(self) -> dict[str, Any]:
        choices = [
            {"index": place, "finish_reason": "stop", "message": {"role": "assistant",
             "content": text}} for place, text in enumerate(self.texts)
        ]  # fmt: skip
        if self.arguments:
            tool = {"name": "send", "arguments": self.arguments}
            call = {"id": "c1", "type": "function", "function": tool}
            choices[0]["message"] |= {"tool_calls": [call]}  # type: ignore[operator]
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        return {"id": "c1", "object": "chat.completion", "created": 1, "model": "up",
                "choices": choices, "usage": usage, **self.more}  # fmt: skip

    def _chunks(self) -> list[dict[str, Any]]:
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "up",
                **self.head}  # fmt: skip

        def chunk(place: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
            return {**head, "choices": [{"index": place, "delta": delta, "finish_reason": finish}]}

        said = []
        for place, text in enumerate(self.texts):
            said.append(chunk(place, {"role": "assistant", "content": ""}))
            said += [chunk(place, {"content": text[at : at + 3]}) for at in range(0, len(text), 3)]
            said.append(chunk(place, {}, "stop"))
        return said

    async def models(self, request: web.Request) -> web.Response:
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        listed = [{"id": "up", "object": "model", "created": 1, "owned_by": "us", "x": BAD}]
        return web.json_response({"object": "list", "data": listed})


@contextlib.asynccontextmanager
async def upstream(speaker: Speaker) -> AsyncIterator[str]:
    """Serve a speaker; give its address."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", speaker.chat)
    app.router.add_get("/v1/models", speaker.models)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        await runner.cleanup()


@dataclass
class Served:
    """A gateway that is being served, and what it has on record."""

    url: str
    exchanges: list[Exchange]
    screen: Screen
    model: ScriptedModel
    parts: GatewayParts

    async def ask(
        self, *, stream: bool = False, key: str = "", traceparent: str = "", **more: Any
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask by a plain client; give status, headers and the whole body."""
        body = {"model": "up", "messages": [{"role": "user", "content": "Tell me."}], **more}
        headers = {"authorization": f"Bearer {key}"} if key else {}
        headers |= {"traceparent": traceparent} if traceparent else {}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}/chat/completions", json={**body, "stream": stream},
                         headers=headers) as response,
        ):  # fmt: skip
            return response.status, dict(response.headers), await response.read()


@contextlib.asynccontextmanager
async def gateway(
    address: str,
    policy: Policy | None = None,
    script: Any = team,
    record: Callable[[Exchange], None] = lambda _: None,
    upstream_key: str | None = None,
) -> AsyncIterator[Served]:
    """Serve a gateway before an address, with a scripted team."""
    policy = policy or Policy(check=CheckPolicy(set=("performance=false", "max_iterations=1")))
    exchanges: list[Exchange] = []

    def recorded(exchange: Exchange) -> None:
        exchanges.append(exchange)
        record(exchange)

    screen, model = Screen(), ScriptedModel(script)
    made = Upstream(
        address,
        key=upstream_key,
        seconds=policy.upstream_seconds,
        slow_after=policy.upstream_slow,
    )
    parts = GatewayParts(
        policy=policy,
        upstream=made,
        admission=Admission(LocalQuotas(), policy.allowances(), most=policy.at_once),
        checkers={check: Checker(check, screen, build_method(check.method, check.set), Cast(model))
                  for check in policy.checks()},
        record=recorded,
        metrics=lambda: b"",
    )  # fmt: skip

    @contextlib.asynccontextmanager
    async def opening(serve: Serve) -> AsyncIterator[None]:
        serve(parts)
        yield
        await made.close()

    port = free_port()
    server = Server(
        Application(opening), port=port, interface=Interfaces.ASGI, log_enabled=False,
        websockets=False,
    )  # fmt: skip
    serving = asyncio.ensure_future(server.serve())
    try:
        await up(port)
        yield Served(f"http://127.0.0.1:{port}/v1", exchanges, screen, model, parts)
    finally:
        server.stop()  # type: ignore[no-untyped-call]
        await serving


OPERATOR = new_key()
BODY = {"model": "up", "messages": [{"role": "user", "content": "Tell me."}]}


@contextlib.asynccontextmanager
async def serving(request: GatewayRequest) -> AsyncIterator["Asking"]:
    """Serve a gateway in this process as its own processes do, from its settings."""
    server = Server(
        Application(partial(opened, request)), port=request.port, interface=Interfaces.ASGI,
        log_enabled=False, websockets=False,
    )  # fmt: skip
    task = asyncio.ensure_future(server.serve())
    try:
        await up(request.port)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{request.port}") as session:
            yield Asking(session)
    finally:
        server.stop()  # type: ignore[no-untyped-call]
        await task


class Asking:
    """A client of one gateway, who is also its operator."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, path: str) -> tuple[int, str]:
        headers = {"authorization": f"Bearer {OPERATOR[0]}"}
        async with self._session.get(path, headers=headers) as response:
            return response.status, await response.text()

    async def chat(self, key: str = "") -> int:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        path = "/v1/chat/completions"
        async with self._session.post(path, json=BODY, headers=headers) as response:
            await response.read()
            return response.status

    async def until(self, path: str, words: str) -> str:
        """Ask until the answer holds these words."""
        async with asyncio.timeout(30):
            while words not in (text := (await self.get(path))[1]):
                await asyncio.sleep(0.02)
        return text


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


async def up(port: int) -> None:
    """Wait until somebody listens at a port."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return
