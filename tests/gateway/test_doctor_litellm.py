"""`evenhand doctor litellm` before proxies that treat a rewriting guardrail as LiteLLM's do."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.gateway.guardrail import PATH
from evenhand.gateway.litellm_check import judged
from tests.gateway.speaking import gateway
from tests.gateway.test_litellm import NOWHERE


class Proxy:
    """A proxy whose model repeats what it is told. `leaks` names the ways on which it sends the
    model's own words in pieces before it heard from the guardrail."""

    def __init__(self, guard: str, leaks: set[tuple[str, bool]], deaf: bool = False) -> None:
        self._guard, self._leaks, self._deaf = guard, leaks, deaf

    async def answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        said = asked.get("input") or asked["messages"][-1]["content"]
        words = "I would rather not." if self._deaf else said.rpartition(": ")[2]
        way = (request.path.rpartition("/")[2], asked["stream"])
        text = words if way in self._leaks else await self._guarded(words)
        field = "delta" if way[0] == "responses" else "content"
        pieces = [text[at : at + 4] for at in range(0, len(text), 4)] if way[1] else [text]
        events = [{"choices": [{field: piece}], "object": "canary"} for piece in pieces]
        if not asked["stream"]:
            return web.json_response(events[0])
        body = "".join(f"data: {json.dumps(one)}\n\n" for one in events) + "data: [DONE]\n\n"
        return web.Response(text=body, content_type="text/event-stream")

    async def _guarded(self, words: str) -> str:
        call = {"input_type": "response", "litellm_call_id": "1", "texts": [words]}
        async with (
            aiohttp.ClientSession() as session,
            session.post(self._guard, json=call) as response,
        ):
            told = await response.json()
        return str(told.get("texts", [words])[0])

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})


@contextlib.asynccontextmanager
async def proxy(leaks: set[tuple[str, bool]], deaf: bool = False) -> AsyncIterator[str]:
    async with gateway(NOWHERE) as served:
        made = Proxy(served.url.removesuffix("/v1") + PATH, leaks, deaf)
        site = web.Application()
        site.router.add_post("/v1/chat/completions", made.answer)
        site.router.add_post("/v1/responses", made.answer)
        site.router.add_get("/v1/models", made.models)
        runner = web.AppRunner(site)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def looked(address: str) -> tuple[int, list[str]]:
    command = ["doctor", "litellm", address, "--json"]
    shown = await asyncio.to_thread(CliRunner().invoke, app, command)
    found: list[dict[str, Any]] = json.loads(shown.stdout)["passages"]
    return shown.exit_code, [one["found"] for one in found]


async def test_a_proxy_that_repairs_on_every_way_is_well() -> None:
    async with proxy(set()) as address:
        assert await looked(address) == (0, ["repaired"] * 4)


async def test_a_proxy_that_streams_before_the_verdict_is_found_out_on_that_way() -> None:
    async with proxy({("completions", True), ("responses", True)}) as address:
        assert await looked(address) == (1, ["repaired", "leaks", "repaired", "leaks"])


async def test_a_model_that_does_not_repeat_the_phrase_leaves_it_open() -> None:
    async with proxy(set(), deaf=True) as address:
        assert await looked(address) == (4, ["inconclusive"] * 4)


@pytest.mark.parametrize(
    "arguments", [["http://127.0.0.1:9"], ["nowhere"], ["http://127.0.0.1:9", "--key-env", "NO_X"]]
)
def test_what_cannot_be_asked_is_said_in_words(arguments: list[str]) -> None:
    shown = CliRunner().invoke(app, ["doctor", "litellm", *arguments])
    assert shown.exit_code == 1
    assert shown.exception is not None
    assert str(shown.exception)


REPAIRED, PHRASE = "evenhand-repaired-0123456789abcdef", "evenhand-canary-0123456789abcdef"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"content": REPAIRED}, "repaired"),
        ({"content": f'"{REPAIRED}".'}, "repaired"),
        ({"content": PHRASE}, "leaks"),
        ({"content": f"**{PHRASE}**"}, "leaks"),
        ({"content": PHRASE[:12]}, "leaks"),
        ({"content": f"Sure! Some things. {REPAIRED}"}, "leaks"),
        ({"content": REPAIRED, "reasoning_content": PHRASE}, "leaks"),
        ({"content": f"I will repeat it: {PHRASE}"}, "inconclusive"),
        ({"content": "evenhand-canary-0123456789ABCDEF"}, "inconclusive"),
        ({"content": "I will not say evenhand-canary."}, "inconclusive"),
        ({"content": ""}, "inconclusive"),
    ],
)
def test_what_a_client_reads_is_judged_by_all_of_its_words(
    said: dict[str, str], found: str
) -> None:
    assert judged(json.dumps(said).encode(), "0123456789abcdef")[0] == found


def test_an_answer_that_is_nested_too_deep_leaves_it_open() -> None:
    deep = b'{"a":' * 1200 + b"1" + b"}" * 1200
    assert judged(deep, "0123456789abcdef")[0] == "inconclusive"


def test_an_address_with_a_password_is_not_quoted() -> None:
    shown = CliRunner().invoke(app, ["doctor", "litellm", "admin:hunter2@proxy:4000"])
    assert "hunter2" not in f"{shown.output}{shown.exception}"


def test_a_phrase_that_comes_before_its_repair_leaks_all_the_same() -> None:
    both = b'{"content": "evenhand-canary-aa"}\n'
    body = b"data: " + both + b'\ndata: {"text": "evenhand-repaired-aa"}\n\n'
    assert judged(body, "aa")[0] == "leaks"


def test_a_stream_that_breaks_off_behind_the_beginning_of_the_phrase_has_leaked() -> None:
    body = b'data: {"content": "even"}\n\ndata: {"content": "hand-ca"}\n\ndata: {"error": {}}\n\n'
    assert judged(body, "aa")[0] == "leaks"
