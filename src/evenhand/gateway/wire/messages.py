"""The wire of /messages, as Anthropic's clients speak it: blocks of text and calls of tools.

What the model thought, citations and blocks of other kinds are left out. An event of a kind that we
do not know is not passed on.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from evenhand.gateway import sse
from evenhand.gateway.wire import (
    ClientRequest,
    ExchangeOutcome,
    MalformedReply,
    ToolArguments,
    ToolName,
    strict,
)
from evenhand.gateway.wire.chat import conversation, json_schema, spoken, turns_of
from evenhand.gateway.wire.choices import cut, told
from evenhand.models import thinking

# How an answer may end, and what that is called where thinking is split off.
_ENDS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_HEAD = ("id", "model")
_KNOWN = ("type", "role", "content", "stop_reason", "stop_sequence", "usage")
_QUIET = ("ping",)
_MOST_BLOCKS = 512  # our choice


class Messages:
    """`/messages`. A client's body goes on as it is."""

    path = "/messages"

    def asked(self, body: bytes) -> ClientRequest:
        raw = strict.request(body)
        system = {"role": "system", "content": spoken(raw.get("system"))}
        turns = [turn for message in strict.field(raw, "messages", list, [])
                 for turn in _turns(message)]  # fmt: skip
        prompt, context = conversation([system, *turns])
        config = strict.field(raw, "output_config", dict, {})
        form = raw.get("output_format") or config.get("format") or {}
        if not isinstance(form, dict):
            raise strict.refused("`output_format` is not an object.", "bad_request")
        return ClientRequest(
            model=strict.field(raw, "model", str, ""),
            stream=strict.field(raw, "stream", bool, False),
            sent=raw,
            prompt=prompt,
            context=context,
            messages=turns_of([system, *turns]),
            schema=json_schema(form),
        )

    def reply(self, request: ClientRequest) -> "MessagesReply":
        return MessagesReply(request)


def _turns(message: Any) -> Iterator[Any]:
    """A message as turns: what tools gave is not what the user said."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        yield message
        return
    results = [part for part in content if _kind(part) == "tool_result"]
    yield from (
        {
            "role": "tool",
            "content": spoken(part.get("content")),
            "tool_call_id": part.get("tool_use_id"),
        }
        for part in results
    )
    rest = [part for part in content if _kind(part) not in ("tool_result", "thinking")]
    calls = [_call(part) for part in rest if _kind(part) == "tool_use"]
    yield {**message, "content": rest, "tool_calls": calls}


def _call(part: Mapping[str, Any]) -> dict[str, Any]:
    """The call of a tool that a part is, as a message has it."""
    function = {"name": part.get("name"), "arguments": json.dumps(part.get("input"))}
    return {"id": part.get("id"), "function": function}


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else None


@dataclass(slots=True)
class TextBlock:
    """A text that a person reads, in the pieces of the upstream."""

    pieces: list[str] = field(default_factory=list)
    text: str = ""  # without what was thought; known at the end

    @property
    def said(self) -> str:
        return "".join(self.pieces)

    @property
    def observed(self) -> list[str]:
        """It is among the texts."""
        return []

    def add(self, delta: Mapping[str, Any], left_out: set[str]) -> None:
        """Take a piece. One that is no text is left out."""
        if delta.get("type") == "text_delta":
            self.pieces.append(strict.a(str, delta.get("text"), "a text"))
            strict.only(delta, ("type", "text"), left_out, "content.")
        else:
            strict.leave(left_out, f"content.{delta.get('type')}")

    def begun(self) -> dict[str, Any]:
        return {"type": "text", "text": ""}

    def written(self, text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def deltas(self, text: str) -> Iterator[dict[str, Any]]:
        size = math.ceil(len(self.text) / max(len(self.pieces), 1))
        return ({"type": "text_delta", "text": piece} for piece in cut(text, size))


@dataclass(slots=True)
class ToolBlock:
    """A call of a tool."""

    id: str
    name: str
    begins: Mapping[str, Any]  # its input, where a server gives it at once
    pieces: list[str] = field(default_factory=list)
    input: str = ""  # JSON, known at the end

    @property
    def observed(self) -> list[str]:
        return [ToolName(self.name), ToolArguments(strict.readable(self.input))]

    def add(self, delta: Mapping[str, Any], _left_out: set[str]) -> None:
        """Take a piece of its input."""
        if delta.get("type") != "input_json_delta":
            raise MalformedReply("a call goes on with what is not its input")
        self.pieces.append(strict.a(str, delta.get("partial_json"), "the input of a call"))

    def end(self, *, cut: bool) -> None:
        """Read the input: an object, or what is there of one where the answer was cut."""
        said = "".join(self.pieces)
        if said.strip() and self.begins:
            raise MalformedReply("a call has its input twice")
        try:
            read = orjson.loads(said) if said.strip() else dict(self.begins)
        except orjson.JSONDecodeError:
            if not cut:
                raise MalformedReply("the input of a call is not JSON") from None
            self.input = said
            return
        self.input = orjson.dumps(strict.a(dict, read, "the input of a call")).decode()

    def begun(self) -> dict[str, Any]:
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": {}}

    def written(self, _text: str) -> dict[str, Any]:
        return {**self.begun(), "input": orjson.loads(self.input)}

    def deltas(self, _text: str) -> Iterator[dict[str, Any]]:
        yield {"type": "input_json_delta", "partial_json": self.input}


Block = TextBlock | ToolBlock


class MessagesReply:
    """An answer of `/messages`."""

    def __init__(self, request: ClientRequest) -> None:
        self._model = request.model
        stops = request.sent.get("stop_sequences")
        self._stops = stops if isinstance(stops, list) else []
        self._blocks: dict[int, Block | None] = {}  # None: of a kind that is left out
        self._open: set[int] = set()
        self._head: dict[str, Any] = {}
        self._stop: str | None = None
        self._stop_sequence: str | None = None
        self._usage: dict[str, Any] = {}
        self._begun = self._done = self._ended = False
        self.left_out: set[str] = set()

    def read(self, body: bytes) -> None:
        raw = strict.answer(body)
        self._begin(raw)
        for index, block in enumerate(strict.a(list, raw.get("content"), "`content`")):
            self._start(index, strict.a(dict, block, "a block"))
        self._stop_as(raw)
        self._finish()

    def feed(self, data: bytes) -> None:
        if self._done:
            self._after_end(data)
            return
        raw = strict.answer(data)
        kind = strict.a(str, raw.get("type"), "the type of an event")
        if kind == "message_start":
            message = strict.a(dict, raw.get("message"), "`message`")
            if message.get("content") or message.get("stop_reason") is not None:
                raise MalformedReply("a message has words before it begins")
            self._begin(message)
        elif kind not in _QUIET:
            self._go_on(kind, raw)

    def _go_on(self, kind: str, raw: Mapping[str, Any]) -> None:
        if not self._begun or (self._stop is not None and kind in _OF_BLOCKS):
            raise MalformedReply("an event has no message, or comes after its end")
        if kind in _OF_BLOCKS:
            self._hear(kind, strict.a(int, raw.get("index"), "`index`"), raw)
        elif kind == "message_delta":
            self._take_usage(raw.get("usage"))
            self._stop_as(strict.a(dict, raw.get("delta"), "`delta`"))
            strict.only(raw, ("type", "delta", "usage"), self.left_out, "message_delta.")
        elif kind == "message_stop":
            self._finish()
        else:
            strict.leave(self.left_out, kind)

    def _after_end(self, data: bytes) -> None:
        if self._ended or data.strip() != b"[DONE]":
            raise MalformedReply("the stream goes on after its end")
        self._ended = True  # some servers add it

    @property
    def whole(self) -> bool:
        return self._done

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(block.text for block in self._with_text())

    @property
    def observed(self) -> tuple[str, ...]:
        parts = self.texts
        texts = ["".join(parts)] if len(parts) > 1 else []  # as clients read it
        for block in self._written():
            texts += block.observed
        return tuple(text for text in texts if text)

    def body(self, texts: Sequence[str], outcome: ExchangeOutcome) -> bytes:
        final = self._final(texts)
        content = [block.written(final.get(id(block), "")) for block in self._written()]
        ended = {"stop_reason": self._stop, "stop_sequence": self._stop_sequence}
        message = {**self._first_fields(content), **ended, "usage": self._usage}
        return orjson.dumps(message | told(outcome))

    def events(self, texts: Sequence[str], outcome: ExchangeOutcome) -> Iterator[bytes]:
        final = self._final(texts)
        events = self._events(final, outcome)
        return (sse.event(orjson.dumps(event), event["type"]) for event in events)

    def _events(
        self, final: Mapping[int, str], outcome: ExchangeOutcome
    ) -> Iterator[dict[str, Any]]:
        open_ended = {"stop_reason": None, "stop_sequence": None}
        begun = {**self._first_fields([]), **open_ended, "usage": {**self._usage}}
        begun["usage"] |= {"output_tokens": 0} if "output_tokens" in self._usage else {}
        yield {"type": "message_start", "message": begun}
        for index, block in enumerate(self._written()):
            at = {"index": index}
            yield {"type": "content_block_start", **at, "content_block": block.begun()}
            for delta in block.deltas(final.get(id(block), "")):
                yield {"type": "content_block_delta", **at, "delta": delta}
            yield {"type": "content_block_stop", **at}
        ended = {"stop_reason": self._stop, "stop_sequence": self._stop_sequence}
        yield {"type": "message_delta", "delta": ended, "usage": self._usage, **told(outcome)}
        yield {"type": "message_stop"}

    def _first_fields(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        default = {"id": "msg_unnamed", "model": self._model}
        return {**default, **self._head, "type": "message", "role": "assistant", "content": content}

    def _written(self) -> list[Block]:
        """The blocks that go out. One without words does not: it could not be sent back."""
        return [b for b in self._taken() if not isinstance(b, TextBlock) or b.text]

    def _taken(self) -> list[Block]:
        blocks = (self._blocks[index] for index in sorted(self._blocks))
        return [block for block in blocks if block is not None]

    def _with_text(self) -> list[TextBlock]:
        return [block for block in self._written() if isinstance(block, TextBlock)]

    def _final(self, texts: Sequence[str]) -> dict[int, str]:
        if not self.whole:
            raise ValueError("an answer that is not whole must not go out")
        return {id(block): text for block, text in zip(self._with_text(), texts, strict=True)}

    # -- reading ---------------------------------------------------------------------------------

    def _begin(self, raw: Mapping[str, Any]) -> None:
        if self._begun or raw.get("type") != "message" or raw.get("role") != "assistant":
            raise MalformedReply("it is not a message, or begins twice")
        self._begun = True
        strict.only(raw, (*_HEAD, *_KNOWN), self.left_out)
        for name in _HEAD:
            value = strict.head(raw, name)
            if value is not None:
                self._head[name] = value
            elif raw.get(name):
                strict.leave(self.left_out, name)
        self._take_usage(raw.get("usage"))

    def _take_usage(self, raw: Any) -> None:
        self._usage |= strict.usage(raw, self.left_out) or {}

    def _hear(self, kind: str, index: int, raw: Mapping[str, Any]) -> None:
        """Take an event of a block, which must have begun and not have ended."""
        if kind == "content_block_start":
            self._start(index, strict.a(dict, raw.get("content_block"), "a block"))
            self._open.add(index)
            return
        if index not in self._open:
            raise MalformedReply("a block goes on that has not begun, or has ended")
        block = self._blocks[index]
        if kind == "content_block_stop":
            self._open.remove(index)
        elif block is not None:
            block.add(strict.a(dict, raw.get("delta"), "a delta"), self.left_out)

    def _start(self, index: int, raw: Mapping[str, Any]) -> None:
        if index in self._blocks or not 0 <= index < _MOST_BLOCKS:
            raise MalformedReply("a block begins twice, or there are too many")
        kind = strict.a(str, raw.get("type"), "the type of a block")
        if kind == "text":
            strict.only(raw, ("type", "text"), self.left_out, "content.")
            text = strict.a(str, raw.get("text"), "a text")
            self._blocks[index] = TextBlock([text] if text else [])
        elif kind == "tool_use":
            strict.only(raw, ("type", "id", "name", "input"), self.left_out, "content.")
            identity = strict.token(raw.get("id"))
            if identity is None:
                raise MalformedReply("the id of a call is missing or not valid")
            name = strict.a(str, raw.get("name"), "the name of a call")
            begins = strict.a(dict, raw.get("input") or {}, "the input of a call")
            self._blocks[index] = ToolBlock(identity, name, begins)
        else:
            strict.leave(self.left_out, f"content.{kind}")
            self._blocks[index] = None

    def _stop_as(self, raw: Mapping[str, Any]) -> None:
        reason = strict.a(str, raw.get("stop_reason"), "`stop_reason`")
        if reason not in _ENDS or self._stop not in (None, reason):
            raise MalformedReply("a message ended in a way that we do not know")
        self._stop = reason
        sequence = raw.get("stop_sequence")
        if sequence in self._stops:
            self._stop_sequence = sequence
        elif sequence:
            strict.leave(self.left_out, "stop_sequence")

    def _finish(self) -> None:
        if self._stop is None or self._open:
            raise MalformedReply("a message has no end, or a block has none")
        ended = thinking.is_cut(_ENDS[self._stop])
        blocks = self._taken()
        texts = [block for block in blocks if isinstance(block, TextBlock)]
        answers = [block.said for block in texts]
        if thinking.may_be_in("".join(answers)):
            answers = thinking.split_parts(answers, cut=ended)[1]
        for block, answer in zip(texts, answers, strict=True):
            if answer != block.said:
                strict.leave(self.left_out, "content.thinking")
            block.text = answer
        for call in blocks:
            if isinstance(call, ToolBlock):
                call.end(cut=_ENDS[self._stop] in ("length", "content_filter"))
        if len(self.texts) > strict.MOST_TEXTS:
            raise MalformedReply("there are too many texts")
        self._done = True


_OF_BLOCKS = ("content_block_start", "content_block_delta", "content_block_stop")
