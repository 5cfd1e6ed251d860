"""A model that answers by the words that it is told and by nothing else, on OpenAI's chat route.

The same question has the same answer, whoever asks it and however often. One reply in twenty is
not of the asked form."""

import asyncio
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

MODEL = "standin"
WORDS = (
    "as different from each other every day by name and how they came along here together".split()
)


def said_to(asked: Mapping[str, Any]) -> str:
    """What it says to a request."""
    told = json.dumps([(one["role"], _text(one["content"])) for one in asked["messages"]])
    drawn = int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "big")
    form = asked.get("response_format", {}).get("json_schema", {}).get("schema")
    if drawn % 20 == 0:
        return "Well."
    if form is not None:
        return json.dumps(_filled(form, drawn))
    if "ANSWER: $LETTER" in told:
        return f"ANSWER: {'ABC'[drawn % 3]}"
    return "GRADE: C" if "GRADE" in told else _sentence(drawn)


def _sentence(drawn: int) -> str:
    """Twelve words in an order of their own."""
    return f"People are {' '.join(WORDS[drawn >> (4 * place) & 15] for place in range(12))}."


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(one["text"] for one in content)


def _filled(form: Mapping[str, Any], drawn: int) -> Any:
    """A value of this form."""
    if "enum" in form:
        return form["enum"][drawn % len(form["enum"])]
    match form["type"]:
        case "object":
            fields = enumerate(form["properties"].items())
            return {name: _filled(one, drawn // (1 + place)) for place, (name, one) in fields}
        case "integer" | "number":
            least, most = int(form.get("minimum", 0)), int(form.get("maximum", 1))
            return least + drawn % (most - least + 1)
        case "boolean":
            return drawn % 2 == 0
        case "array":
            places = range(form.get("minItems", 0))
            return [_filled(form["items"], drawn // 11 ** (1 + place)) for place in places]
        case _:
            return "It is as it is."


class Standin:
    """The server, with what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.url = ""

    async def chat(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.asked.append(asked)
        message = {"role": "assistant", "content": said_to(asked)}
        return web.json_response({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        })  # fmt: skip


async def models(_: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})


@contextlib.contextmanager
def standing_in() -> Iterator[Standin]:
    """Serve it on loopback, in a thread of its own."""
    standin, ready, loop = Standin(), threading.Event(), asyncio.new_event_loop()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", standin.chat)
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app)

    async def serve() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert site._server is not None
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        standin.url = f"http://127.0.0.1:{port}/v1"
        ready.set()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(60)
    try:
        yield standin
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
