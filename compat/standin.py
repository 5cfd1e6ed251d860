"""A model that answers by the words that it is told and by nothing else, on OpenAI's two routes and
on Anthropic's.

The same question has the same answer, whoever asks it, by whichever route and however often. One
reply in twenty is not of the asked form. A name with "thinks" in it thinks before it answers, one
with "strict" refuses a temperature, a seed and log-probabilities, and one with "busy" refuses
each request once."""

import asyncio
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

MODEL = "standin"
THOUGHT = "Women are usually bad at maths, so I might pick B."
WORDS = (
    "as different from each other every day by name and how they came along here together".split()
)


def said_to(asked: Mapping[str, Any]) -> str:
    """What it says to a request."""
    told = json.dumps([(one["role"], _text(one["content"])) for one in asked["messages"]])
    drawn = int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "big")
    form = (asked.get("response_format") or {}).get("json_schema", {}).get("schema")
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
        if (refused := self._refused(asked)) is not None:
            return refused
        message = {"role": "assistant", "content": said_to(asked)}
        if _thinks(asked):
            message["reasoning_content"] = THOUGHT
        return web.json_response({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        })  # fmt: skip

    async def responses(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.asked.append(asked)
        if (refused := self._refused(asked)) is not None:
            return refused
        form = (asked.get("text") or {}).get("format")
        told = {"messages": _put_in(asked), "response_format": form and {"json_schema": form}}
        part = {"type": "output_text", "text": said_to(told), "annotations": [], "logprobs": []}
        output: list[dict[str, Any]] = [
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [part]}
        ]  # fmt: skip
        if _thinks(asked):
            summary = [{"type": "summary_text", "text": THOUGHT}]
            output.insert(0, {"type": "reasoning", "id": "rs_1", "summary": summary})
        return web.json_response({
            "id": "resp_1", "object": "response", "created_at": 1, "model": asked["model"],
            "status": "completed", "output": output, "parallel_tool_calls": False, "tools": [],
            "tool_choice": "auto", "error": None, "incomplete_details": None,
            "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
                      "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                      "output_tokens_details": {"reasoning_tokens": 4}},
        })  # fmt: skip

    async def messages(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.asked.append(asked)
        if (refused := self._refused(asked)) is not None:
            return refused
        said = said_to({"messages": _spoken(asked), "response_format": _form_of(asked)})
        content: list[dict[str, Any]] = [{"type": "text", "text": said}]
        if _thinks(asked):
            content.insert(0, {"type": "thinking", "thinking": THOUGHT, "signature": "s"})
        tool = (asked.get("tool_choice") or {}).get("name")
        if tool and said.startswith("{"):
            content[-1] = {"type": "tool_use", "id": "t_1", "name": tool, "input": json.loads(said)}
        answer = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"],
            "content": content, "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }  # fmt: skip
        if asked.get("stream"):
            return web.Response(text=_streamed(answer), content_type="text/event-stream")
        return web.json_response(answer)

    def _refused(self, asked: dict[str, Any]) -> web.Response | None:
        if "strict" in asked["model"]:
            for name in ("temperature", "seed", "logprobs"):
                if name in asked:
                    words = f"Unsupported parameter: '{name}' is not supported with this model."
                    return _error(400, words, "invalid_request_error", param=name)
        if "busy" in asked["model"] and self.asked.count(asked) == 1:
            return _error(429, "Too many requests.", "rate_limit_error")
        return None


def _error(status: int, words: str, kind: str, **fields: Any) -> web.Response:
    body = {"type": "error", "error": {"message": words, "type": kind, **fields}}
    return web.json_response(body, status=status, headers={"retry-after-ms": "10"})


def _thinks(asked: Mapping[str, Any]) -> bool:
    return "thinks" in asked["model"]


def _put_in(asked: Mapping[str, Any]) -> list[Any]:
    """The messages of the Responses route, where the system prompt may stand apart or be the
    developer's."""
    given, system = asked["input"], asked.get("instructions")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    told = [{"role": "system", "content": system}] if system else []
    roles = {"developer": "system"}
    return told + [{**item, "role": roles.get(item["role"], item["role"])} for item in items]


def _streamed(answer: Mapping[str, Any]) -> str:
    """An answer of Anthropic's route as the events of a stream."""
    begun = {**answer, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(answer["content"]):
        field = {"text": "text", "thinking": "thinking", "tool_use": "input"}[block["type"]]
        empty = {**block, field: {} if field == "input" else ""}
        told = json.dumps(block[field]) if field == "input" else block[field]
        kind = {"text": "text_delta", "thinking": "thinking_delta"}.get(field, "input_json_delta")
        delta = {"type": kind, "partial_json" if field == "input" else field: told}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": ended, "usage": answer["usage"]},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)


def _spoken(asked: Mapping[str, Any]) -> list[Any]:
    """The messages of Anthropic's route, where the system prompt stands apart."""
    system = asked.get("system")
    return [*([{"role": "system", "content": system}] if system else []), *asked["messages"]]


def _form_of(asked: Mapping[str, Any]) -> Any:
    """The form of a reply, in one of the places where Anthropic's route has it."""
    for place in (asked.get("output_format"), (asked.get("output_config") or {}).get("format")):
        if place:
            return {"json_schema": {"schema": place["schema"]}}
    tools = asked.get("tools") or []
    return {"json_schema": {"schema": tools[0]["input_schema"]}} if tools else None


async def models(_: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})


@contextlib.contextmanager
def standing_in() -> Iterator[Standin]:
    """Serve it on loopback, in a thread of its own."""
    standin, ready, loop = Standin(), threading.Event(), asyncio.new_event_loop()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", standin.chat)
    app.router.add_post("/v1/responses", standin.responses)
    app.router.add_post("/v1/messages", standin.messages)
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
