"""A server on loopback that answers as a behavior of `behaviors.toml` says.

What it answers depends on the words that it is asked and not on how they were sent: the same
question has the same answer from every model, so that rows can be held against each other.
"""

import asyncio
import hashlib
import json
import random
import re
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from evenhand.testing import _filled

from . import routes

BEHAVIORS = Path(__file__).with_name("behaviors.toml")
TOXIC = "Women are stupid idiots and I hate these disgusting whores."
MILD = "The question asks about two people. The text does not say which of them it was."
_NOTE = re.compile(r"Reply with one JSON object and nothing else\. It must follow this schema: ")
_LETTERS = ("A", "B", "C")
# What asks for one of these words, without blanks.
_SCALES = {
    "safeorunsafe": ("safe", "unsafe"),
    "yesorno|nooryes": ("yes", "no"),
    "onedigit": tuple("0123456789"),
}
_SENTENCES = (
    "A nurse cares for people, and so do many others.",
    "It depends on the person, and on the day.",
    "Some do and some do not; nothing here says who.",
)


def listed(file: Path = BEHAVIORS) -> dict[str, dict[str, Any]]:
    """The behaviors by name."""
    return tomllib.loads(file.read_text("utf-8"))


class Stub:
    """What is asked and answered. `refusals` counts errors by model and field."""

    def __init__(self, behaviors: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.behaviors = behaviors or listed()
        self.thought = MILD
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.calls: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self._seen: set[str] = set()

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        """Status, headers and body of an answer; a string is sent as a stream."""
        name = body["model"]
        behavior = self.behaviors[name]
        self.calls[name] += 1
        self.bodies.append(body)
        refused = self._refused(name, behavior, body) or self._at_first(name, behavior, body)
        if refused is not None:
            return refused
        words = _words(body)
        typed = None if "response_format" in behavior.get("ignores", ()) else _schema(body)
        typed = typed or _told(body)
        text = _likeliest(words) if body.get("logprobs") and not typed else _said(words, typed)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        thought = self.thought if behavior.get("thinks") else ""
        allowed = body.get("max_tokens") or body.get("max_completion_tokens") or 10**6
        finish, spent = "stop", 20
        cut = behavior.get("needs", 0) >= allowed
        if behavior.get("calls"):
            message = _called(text if typed else "", body)
            finish = "tool_calls" if not message["content"] else "stop"
        if cut:
            message["content"], finish, spent = None, "length", allowed
        if behavior.get("blanks") and message["content"]:
            message["content"] = f"\n\n{message['content']}"
        _think(message, behavior.get("thinks"), thought)
        usage: dict[str, Any] = {"prompt_tokens": 100, "completion_tokens": spent,
                                 "total_tokens": 100 + spent}  # fmt: skip
        if behavior.get("thinks") == "hidden":
            hidden = spent if cut else 12
            usage["completion_tokens_details"] = {"reasoning_tokens": hidden}
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish}
        if body.get("logprobs") and "logprobs" not in behavior.get("ignores", ()):
            content = message["content"]
            spoken = content if isinstance(content, str) else text
            choice["logprobs"] = {"content": _tokens(spoken)}
        choices = [choice | {"index": index} for index in range(body.get("n", 1))]
        whole = {"id": "x", "object": "chat.completion", "created": 1, "model": name,
                 "choices": choices, "usage": usage}  # fmt: skip
        return 200, {}, _chunks(whole, behavior["stream"]) if "stream" in behavior else whole

    def _refused(
        self, name: str, behavior: Mapping[str, Any], body: Mapping[str, Any]
    ) -> tuple[int, dict[str, str], Any] | None:
        roles = [message["role"] for message in body.get("messages", ())]
        for role in behavior.get("system", ()):
            if role in roles:
                index = roles.index(role)
                text = f"Unsupported value: 'messages[{index}].role' does not support '{role}'."
                return self._error(name, role, 400, text, f"messages[{index}].role")
        for rule in behavior.get("refuses", ()):
            field = rule["field"]
            if field in body and body[field] != rule.get("unless"):
                text = rule["message"].format(value=body[field])
                param = field if rule.get("param") else None
                return self._error(name, field, rule.get("status", 400), text, param)
        return None

    def _error(
        self, name: str, field: str, status: int, text: str, param: str | None
    ) -> tuple[int, dict[str, str], Any]:
        self.refusals[name, field] += 1
        error = {"message": text, "type": "invalid_request_error", "param": param, "code": None}
        return status, {}, {"error": error}

    def _at_first(
        self, name: str, behavior: Mapping[str, Any], body: Mapping[str, Any]
    ) -> tuple[int, dict[str, str], Any] | None:
        kind = behavior.get("first")
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        if kind is None or digest in self._seen:
            return None
        self._seen.add(digest)
        self.refusals[name, kind] += 1
        if kind == "error_body":
            return 200, {}, {"error": {"message": "Provider returned error", "code": 502}}
        if kind == "cut_stream":
            delta = {"choices": [{"index": 0, "delta": {"content": "<thi"}}]}
            return 200, {}, f"data: {json.dumps(delta)}\n\n"
        return 429, {"retry-after-ms": "5"}, {"error": {"message": "slow down"}}


def _words(body: Mapping[str, Any]) -> str:
    """What was asked at first, without what tells how to answer it."""
    said = []
    for message in body["messages"]:
        if message["role"] == "assistant":
            break
        said.append(_NOTE.split(message["content"])[0])
    return re.sub(r"\s+", "", "".join(said))


def _schema(body: Mapping[str, Any]) -> Any:
    form = body.get("response_format") or {}
    return form["json_schema"]["schema"] if form.get("type") == "json_schema" else None


def _told(body: Mapping[str, Any]) -> Any:
    parts = [_NOTE.split(message["content"]) for message in body["messages"]]
    told = [part[1] for part in parts if len(part) > 1]
    return json.JSONDecoder().raw_decode(told[-1])[0] if told else None


def _said(words: str, schema: Any) -> str:
    draw = random.Random(hashlib.sha256(words.encode()).digest())
    if schema is not None:
        inlined = _inlined(schema, schema.get("$defs", {}))
        return json.dumps(_filled(inlined, draw))
    if re.search(r"ANSWER:", words):
        return f"ANSWER: {draw.choice('ABC')}"
    return draw.choice(_SENTENCES) if _scale(words) == _LETTERS else _likeliest(words)


def _likeliest(words: str) -> str:
    """What is said where one word is wanted, or the likeliest next tokens."""
    return random.Random(words).choice(_scale(words))


def _scale(words: str) -> Sequence[str]:
    return next((scale for sign, scale in _SCALES.items() if re.search(sign, words)), _LETTERS)


def _inlined(part: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        if "$ref" in part:
            return _inlined(definitions[part["$ref"].rpartition("/")[2]], definitions)
        return {key: _inlined(child, definitions) for key, child in part.items() if key != "$defs"}
    return [_inlined(child, definitions) for child in part] if isinstance(part, list) else part


def _called(text: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """An answer in the arguments of a tool; without a schema nothing, until it is asked again."""
    if text:
        call = {"id": "c", "type": "function", "function": {"name": "reply", "arguments": text}}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    if any(message["role"] == "assistant" for message in body["messages"]):
        return {"role": "assistant", "content": _said(_words(body), None)}
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _think(message: dict[str, Any], how: str | None, thought: str) -> None:
    content = message["content"]
    match how:
        case "tags":
            end = "" if content is None else f"\n</think>\n\n{content}"
            message["content"] = f"<think>\n{thought}{end}"
        case "closing":
            message["content"] = f"{thought}\n</think>\n\n{content or ''}"
        case "reasoning_content" | "reasoning":
            message[how] = thought
        case "reasoning_details":
            message[how] = [{"type": "reasoning.text", "text": thought, "format": "unknown"},
                            {"type": "reasoning.encrypted", "data": "ZW5jcnlwdGVk"}]  # fmt: skip
        case "thinking_blocks":
            message[how] = _blocks(thought)
        case "parts":
            message["content"] = [*_blocks(thought), {"type": "text", "text": content}]


def _blocks(thought: str) -> list[dict[str, Any]]:
    """A thought as Anthropic has it, and a further block that nobody can read."""
    return [{"type": "thinking", "thinking": thought, "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"}]  # fmt: skip


def _tokens(text: str) -> list[dict[str, Any]]:
    pieces = re.findall(r"\S+\s*|\s+", text)
    scales = (*_SCALES.values(), _LETTERS)
    tokens = []
    for piece in pieces:
        scale = next((scale for scale in scales if piece in scale), (piece,))
        others = [{"token": one, "logprob": -0.2 if one == piece else -3.0} for one in scale]
        tokens.append({"token": piece, "logprob": -0.2, "top_logprobs": others})
    return tokens


def _chunks(whole: Mapping[str, Any], size: int) -> str:
    """The answer as a stream in pieces so small that a tag is cut in two."""
    choice = whole["choices"][0]
    head = {key: whole[key] for key in ("id", "created", "model")}
    tokens = {"logprobs": choice["logprobs"]} if "logprobs" in choice else {}
    head["object"] = "chat.completion.chunk"
    deltas: list[Any] = [({"role": "assistant"}, None)]
    deltas += [(delta, None) for delta in _deltas(choice["message"], size)]
    deltas.append(({}, choice["finish_reason"]))
    events = [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
              for delta, end in deltas]  # fmt: skip
    events[-1]["choices"][0] |= tokens
    events.append(head | {"choices": [], "usage": whole["usage"]})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def _deltas(message: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    """What was thought, then the answer. A thought of parts comes as Mistral streams it: in parts
    of parts, before an answer that is text."""
    content = message["content"]
    for name in ("reasoning_content", "reasoning"):
        yield from ({name: piece} for piece in _pieces(message.get(name, ""), size))
    for part in content if isinstance(content, list) else ():
        for piece in _pieces(part.get("thinking", ""), size):
            inner = [{"type": "text", "text": piece}]
            yield {"content": [{"type": "thinking", "thinking": inner}]}
    said = content[-1]["text"] if isinstance(content, list) else content
    yield from ({"content": piece} for piece in _pieces(said, size))


def _pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


@contextmanager
def serving(stub: Stub, port: int = 0) -> Iterator[str]:
    """The server in a thread of its own, and its URL."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    places: list[str] = []

    async def complete(request: web.Request) -> web.Response:
        status, headers, body = stub.answer(await request.json())
        if isinstance(body, str):
            return web.Response(text=body, content_type="text/event-stream")
        return web.json_response(body, status=status, headers=headers)

    async def respond(request: web.Request) -> web.Response:
        status, headers, body = stub.answer(routes.chat_of(await request.json()))
        answer = routes.response_of(body) if status == 200 else body
        return web.json_response(answer, status=status, headers=headers)

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in stub.behaviors]})

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/v1/chat/completions", complete)
        app.router.add_post("/v1/responses", respond)
        app.router.add_get("/v1/models", models)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        places.append(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        started.set()
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait()
    try:
        yield places[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def main() -> None:
    """Serve until stopped."""
    file = Path(sys.argv[2]) if len(sys.argv) > 2 else BEHAVIORS
    stub = Stub(listed(file))
    stub.thought = TOXIC
    with serving(stub, int(sys.argv[1])) as url:
        print(url, *stub.behaviors, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
