"""The wire of /responses. A text stands in five places of a stream: all five are written alike."""

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

_MOST_PARTS = 128  # our choice
_STATUSES = ("completed", "incomplete")


@dataclass(slots=True)
class ContentPart:
    """One part of a message: a text, or a refusal."""

    kind: str  # output_text or refusal, as its events are called
    text: str
    sent: str  # the text as the upstream sent it, with what was thought
    citations: list[dict[str, Any]] = field(default_factory=list)
    pieces: int = 1  # in how many the upstream sent it

    @property
    def key(self) -> str:
        return "text" if self.kind == "output_text" else "refusal"

    @property
    def size(self) -> int:
        """How long its pieces are. A refusal goes out whole, for a key to be found in it."""
        pieces = self.pieces if self.kind == "output_text" else 1
        return math.ceil(len(self.text) / max(pieces, 1))

    def begun(self) -> dict[str, Any]:
        return _part(self.kind, self.key, "", [])

    def written(self, text: str, left_out: set[str]) -> dict[str, Any]:
        """The part with this text. Citations point into a text by numbers: into the old one."""
        cited = self.citations if text == self.text else []
        if self.citations and not cited:
            strict.leave(left_out, "output.content.annotations")
        return _part(self.kind, self.key, text, cited)


def _part(kind: str, name: str, text: str, cited: list[dict[str, Any]]) -> dict[str, Any]:
    if kind == "refusal":
        return {"type": kind, name: text}
    annotations = [{"type": "url_citation", **citation} for citation in cited]
    return {"type": kind, name: text, "annotations": annotations, "logprobs": []}


@dataclass(slots=True)
class OutputMessage:
    """An item that a person reads."""

    id: str
    status: str
    parts: list[ContentPart]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(part.sent for part in self.parts)

    @property
    def observed(self) -> list[str]:
        refusals = [part.text for part in self.parts if part.kind == "refusal"]
        cited = [citation for part in self.parts for citation in part.citations]
        return [*refusals, *(citation[key] for citation in cited for key in ("title", "url"))]

    def split(self, left_out: set[str], *, cut: bool) -> None:
        """Leave out what was thought, which may begin in one part and end in another.

        Args:
            left_out: Receives the name of what is left out.
            cut: Whether the message may have ended at a limit.
        """
        if not thinking.may_be_in("".join(self.words)):
            return
        answers = thinking.split_parts(self.words, cut=cut or self.status == "incomplete")[1]
        for part, answer in zip(self.parts, answers, strict=True):
            if answer != part.text:
                strict.leave(left_out, "output.content.thinking")
                part.text, part.citations = answer, []  # they point into what was sent

    def heard_in(self, pieces: Mapping[int, int]) -> None:
        for index, part in enumerate(self.parts):
            part.pieces = pieces.get(index, 1)

    def begun(self) -> dict[str, Any]:
        return self._item("in_progress", [])

    def written(self, final: Mapping[int, str], left_out: set[str]) -> dict[str, Any]:
        parts = [part.written(final.get(id(part), part.text), left_out) for part in self.parts]
        return self._item(self.status, parts)

    def _item(self, status: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
        fields = {"id": self.id, "type": "message", "role": "assistant"}
        return {**fields, "status": status, "content": parts}


@dataclass(slots=True)
class ToolCall:
    """A call of a tool: a function with arguments, or a tool of the client's with any text."""

    kind: str  # function_call or custom_tool_call
    id: str
    call_id: str
    status: str
    name: str
    argument: str

    @property
    def key(self) -> str:
        return _FIELDS[self.kind]

    @property
    def event(self) -> str:
        return f"{self.kind}_{self.key}"

    @property
    def words(self) -> tuple[str, ...]:
        return (self.argument, self.name)

    @property
    def observed(self) -> list[str]:
        return [ToolName(self.name), ToolArguments(strict.readable(self.argument))]

    def heard_in(self, pieces: Mapping[int, int]) -> None:
        """It goes out in one piece."""

    def begun(self) -> dict[str, Any]:
        return self._item("in_progress", "")

    def written(self, _final: Mapping[int, str], _left_out: set[str]) -> dict[str, Any]:
        return self._item(self.status, self.argument)

    def _item(self, status: str, argument: str) -> dict[str, Any]:
        fields = {"id": self.id, "type": self.kind, "call_id": self.call_id, "name": self.name}
        return {**fields, "status": status, self.key: argument}


Item = OutputMessage | ToolCall
_FIELDS = {"function_call": "arguments", "custom_tool_call": "input"}


def item_of(raw: Any, left_out: set[str]) -> Item | None:
    """Read an item; None if it is of a kind that is left out, such as reasoning."""
    item = strict.a(dict, raw, "an item")
    kind = strict.a(str, item.get("type"), "the type of an item")
    if kind == "message":
        strict.only(item, ("type", "id", "status", "role", "content"), left_out, "output.")
        content = strict.a(list, item.get("content"), "`content`")
        if len(content) > _MOST_PARTS:
            raise MalformedReply("there are too many parts")
        parts = [_part_of(part, left_out) for part in content]
        return OutputMessage(_name(item, "id", "msg_unnamed"), _status(item), parts)
    if kind in _FIELDS:
        allowed = ("type", "id", "status", "call_id", "name", _FIELDS[kind])
        strict.only(item, allowed, left_out, "output.")
        return ToolCall(
            kind=kind,
            id=_name(item, "id", "fc_unnamed"),
            call_id=_name(item, "call_id", None),
            status=_status(item),
            name=strict.a(str, item.get("name"), "the name of a call"),
            argument=strict.a(str, item.get(_FIELDS[kind]), "the arguments of a call"),
        )
    strict.leave(left_out, f"output.{kind}")
    return None


def _part_of(raw: Any, left_out: set[str]) -> ContentPart:
    part = strict.a(dict, raw, "a part of a message")
    match part.get("type"):
        case "refusal":
            strict.only(part, ("type", "refusal"), left_out, "output.content.")
            refusal = strict.a(str, part.get("refusal"), "a refusal")
            return ContentPart("refusal", refusal, refusal)
        case "output_text":
            strict.only(part, ("type", "text", "annotations"), left_out, "output.content.")
            text = strict.a(str, part.get("text"), "a text")
            cited = _citations(part.get("annotations"), text, left_out)
            return ContentPart("output_text", text, text, cited)
        case _:
            raise MalformedReply("a part of a message is of a kind that we do not know")


def _citations(raw: Any, text: str, left_out: set[str]) -> list[dict[str, Any]]:
    citations = []
    for annotation in strict.a(list, raw, "`annotations`") if raw else ():
        known = isinstance(annotation, dict) and annotation.get("type") == "url_citation"
        cited = strict.citation(annotation) if known else None
        if cited is not None and cited["start_index"] <= cited["end_index"] <= len(text):
            citations.append(cited)
        else:
            strict.leave(left_out, "output.content.annotations")
    return citations


def _name(item: Mapping[str, Any], name: str, default: str | None) -> str:
    identifier = strict.token(item.get(name)) or default
    if identifier is None or (item.get(name) and identifier != item[name]):
        raise MalformedReply("an id of an item is missing or not valid")
    return identifier


def _status(item: Mapping[str, Any]) -> str:
    status = item.get("status") or "completed"
    if status not in _STATUSES:
        raise MalformedReply("an item has not ended")
    return str(status)


_ENDS = {"response.completed": "completed", "response.incomplete": "incomplete"}
_BROKEN = ("error", "response.failed", "response.error")
_REASONS = ("max_output_tokens", "content_filter", "max_messages")
_HEAD = ("id", "model", "service_tier")
_KNOWN = ("object", "created_at", "status", "incomplete_details", "output", "usage", "error")
# What a response repeats of its request. We repeat it from the request itself. Of the tools only
# functions are repeated: others may hold keys of the client's.
_REPEATED: Mapping[str, Any] = {
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": None,
    "tool_choice": "auto",
    "top_p": None,
    "max_output_tokens": None,
    "text": {"format": {"type": "text"}},
    "truncation": "disabled",
    "user": None,
}
_STATEFUL = {
    "previous_response_id": "Send the conversation in `input` instead.",
    "conversation": "Send the conversation in `input` instead.",
    "background": "Wait for the answer, or stream it.",
}
_MOST_ITEMS = 512  # our choice


class Responses:
    """`/responses`.

    An upstream that keeps answers would keep them unrepaired and build on them in the next turn:
    `store: false` is what is sent, and a request for a stored answer is refused.
    """

    path = "/responses"

    def asked(self, body: bytes) -> ClientRequest:
        raw = strict.request(body)
        if raw.get("store"):
            raise strict.refused(
                "`store: true` would have the upstream keep the answer as it was before its "
                "check. Leave `store` out, or send `store: false`."
            )
        for name, instead in _STATEFUL.items():
            if raw.get(name):
                raise strict.refused(
                    f"`{name}` builds on answers that the upstream keeps as they were before "
                    f"their check. {instead}"
                )
        for tool in strict.field(raw, "tools", list, []):
            if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
                raise strict.refused("A tool has no `type`.", "bad_request")
        system = {"role": "system", "content": strict.field(raw, "instructions", str, "")}
        messages = _messages(raw.get("input"))
        prompt, context = conversation([system, *messages])
        text = strict.field(raw, "text", dict, {})
        return ClientRequest(
            model=strict.field(raw, "model", str, ""),
            stream=strict.field(raw, "stream", bool, False),
            sent={**raw, "store": False},
            prompt=prompt,
            context=context,
            messages=turns_of([system, *messages]),
            schema=json_schema(strict.field(text, "format", dict, {})),
        )

    def reply(self, request: ClientRequest) -> "ResponsesReply":
        return ResponsesReply(request)


def _messages(raw: Any) -> list[dict[str, Any]]:
    """The items of a request as messages. An item without a role is named by its type."""
    if raw is None or isinstance(raw, str):
        return [{"role": "user", "content": raw or ""}]
    if not isinstance(raw, list) or not all(isinstance(item, dict) for item in raw):
        raise strict.refused("`input` is neither text nor a list of items.", "bad_request")
    if any(item.get("type") == "item_reference" for item in raw):
        raise strict.refused(
            "An `item_reference` is an answer that the upstream kept as it was before its check. "
            "Send the item itself."
        )
    return [
        {
            "role": item.get("role") or item.get("type"),
            "content": spoken(item.get("content") if "role" in item else item.get("output")),
            "tool_calls": _calls(item),
            "tool_call_id": item.get("call_id"),
        }
        for item in raw
    ]


def _calls(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The call of a tool that an item is, as a message has it."""
    called = item.get("type") == "function_call"
    return [{"id": item.get("call_id"), "function": item}] if called else []


class ResponsesReply:
    """An answer of `/responses`: messages with texts, and calls of tools."""

    def __init__(self, request: ClientRequest) -> None:
        self._sent, self._model = request.sent, request.model
        self._items: list[Item] = []
        self._head: dict[str, Any] = {}
        self._done = self._ended = False
        # What the stream said before its end, by the place in `output` and in the item.
        self._deltas: dict[tuple[int, int], list[str]] = {}
        self._claims: list[tuple[int, int, str]] = []
        self._done_items: list[tuple[int, tuple[str, ...]]] = []
        self.left_out: set[str] = set()

    def read(self, body: bytes) -> None:
        raw = strict.answer(body)
        self._take(raw, strict.a(str, raw.get("status"), "`status`"))

    def feed(self, data: bytes) -> None:
        if self._done and data.strip() == b"[DONE]" and not self._ended:
            self._ended = True  # some servers add it
            return
        if self._done:
            raise MalformedReply("the stream goes on after its end")
        raw = strict.answer(data)
        kind = strict.a(str, raw.get("type"), "the type of an event")
        if kind in _ENDS:
            response = strict.a(dict, raw.get("response"), "`response`")
            self._take(response, _ENDS[kind])
            self._compare(strict.a(list, response["output"], "`output`"))
        elif kind in _BROKEN:
            raise MalformedReply("the upstream failed in the middle of its answer")
        elif kind.startswith("response."):
            self._hear(kind.removeprefix("response."), raw)
        elif kind != "keepalive":
            raise MalformedReply("an event is of a kind that we do not know")

    @property
    def whole(self) -> bool:
        return self._done

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(part.text for part in self._parts())

    @property
    def observed(self) -> tuple[str, ...]:
        parts = [part.text for part in self._parts()]
        texts = ["".join(parts)] if len(parts) > 1 else []  # as clients read it
        for item in self._items:
            texts += item.observed
        return tuple(text for text in texts if text)

    def body(self, texts: Sequence[str], outcome: ExchangeOutcome) -> bytes:
        return orjson.dumps(self._response(self._final(texts), outcome))

    def events(self, texts: Sequence[str], outcome: ExchangeOutcome) -> Iterator[bytes]:
        final = self._final(texts)
        return (
            sse.event(orjson.dumps({**event, "sequence_number": number}), event["type"])
            for number, event in enumerate(self._events(final, outcome))
        )

    def _events(
        self, final: Mapping[int, str], outcome: ExchangeOutcome
    ) -> Iterator[dict[str, Any]]:
        response = self._response(final, outcome)
        bare = {name: value for name, value in response.items() if name != "evenhand"}
        begun = {**bare, "status": "in_progress", "output": [], "usage": None}
        begun["incomplete_details"] = None
        yield {"type": "response.created", "response": begun}
        yield {"type": "response.in_progress", "response": begun}
        for index, item in enumerate(self._items):
            yield from self._item_events(index, item, response["output"][index], final)
        yield {"type": f"response.{self._head['status']}", "response": response}

    def _item_events(
        self, index: int, item: Item, written: dict[str, Any], final: Mapping[int, str]
    ) -> Iterator[dict[str, Any]]:
        at = {"output_index": index}
        yield {"type": "response.output_item.added", **at, "item": item.begun()}
        if isinstance(item, ToolCall):
            spot = {**at, "item_id": item.id}
            yield {"type": f"response.{item.event}.delta", **spot, "delta": item.argument}
            yield {"type": f"response.{item.event}.done", **spot, item.key: item.argument}
        else:
            for number, part in enumerate(item.parts):
                spot = {**at, "item_id": item.id, "content_index": number}
                text = final.get(id(part), part.text)
                yield from _part_events(spot, part, written["content"][number], text)
        yield {"type": "response.output_item.done", **at, "item": written}

    def _parts(self) -> list[ContentPart]:
        """The parts that can be repaired."""
        messages = [item for item in self._items if isinstance(item, OutputMessage)]
        parts = [part for message in messages for part in message.parts]
        return [part for part in parts if part.kind == "output_text" and part.text]

    def _final(self, texts: Sequence[str]) -> dict[int, str]:
        if not self.whole:
            raise ValueError("an answer that is not whole must not go out")
        return {id(part): text for part, text in zip(self._parts(), texts, strict=True)}

    def _response(self, final: Mapping[int, str], outcome: ExchangeOutcome) -> dict[str, Any]:
        sent = {name: value for name, value in self._sent.items() if value is not None}
        repeated = {name: sent.get(name, value) for name, value in _REPEATED.items()}
        return {
            "id": "resp_unnamed",
            "created_at": 0,
            "model": self._model,
            **self._head,
            "object": "response",
            "error": None,
            "output": [item.written(final, self.left_out) for item in self._items],
            **repeated,
            "tools": [tool for tool in sent.get("tools", []) if tool["type"] == "function"],
            "store": False,
            **told(outcome),
        }

    def _take(self, raw: Mapping[str, Any], status: str) -> None:
        """Take the final response: it alone is what we write from."""
        if raw.get("error") is not None or raw.get("status") != status or status not in _ENDED:
            raise MalformedReply("the response has failed, or has not ended")
        strict.only(raw, (*_HEAD, *_KNOWN, *_OF_REQUEST), self.left_out)
        for name in _HEAD:
            value = strict.head(raw, name)
            if value is not None:
                self._head[name] = value
            elif raw.get(name):
                strict.leave(self.left_out, name)
        details = raw.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        self._head |= {
            "created_at": strict.moment(raw.get("created_at")),
            "status": status,
            "incomplete_details": {"reason": reason} if reason in _REASONS else None,
            "usage": strict.usage(raw.get("usage"), self.left_out),
        }
        output = strict.a(list, raw.get("output"), "`output`")
        if len(output) > _MOST_ITEMS:
            raise MalformedReply("there are too many items")
        found_items = (item_of(item, self.left_out) for item in output)
        self._items = [item for item in found_items if item is not None]
        messages = [item for item in self._items if isinstance(item, OutputMessage)]
        for message in messages:
            message.split(self.left_out, cut=status == "incomplete" and message is messages[-1])
        if len(self._parts()) > strict.MOST_TEXTS:
            raise MalformedReply("there are too many texts")
        self._done = True

    def _hear(self, kind: str, raw: Mapping[str, Any]) -> None:
        """Keep what an event before the last one says, to be compared with the last."""
        if kind in _HEARD:
            key, is_delta = _HEARD[kind]
            words = strict.a(str, _holder(kind, raw).get(key), "a text")
            index = strict.a(int, raw.get("output_index"), "`output_index`")
            inner = strict.a(int, raw.get("content_index", 0), "`content_index`")
            if is_delta:
                self._deltas.setdefault((index, inner), []).append(words)
            else:
                self._claims.append((index, inner, words))
        elif kind == "output_item.done":
            item = item_of(raw.get("item"), self.left_out)
            index = strict.a(int, raw.get("output_index"), "`output_index`")
            self._done_items.append((index, () if item is None else item.words))
        elif kind not in _QUIET:
            strict.leave(self.left_out, f"response.{kind}")

    def _compare(self, output: list[Any]) -> None:
        """The whole stream must have said what its end says."""
        items = [item_of(item, set()) for item in output]
        words = {index: item.words if item else () for index, item in enumerate(items)}
        claims = [*self._claims, *((*at, "".join(pieces)) for at, pieces in self._deltas.items())]
        for index, inner, text in claims:
            item_words = words.get(index, ())
            # A part of an item that we leave out is left out with it.
            unknown = 0 <= index < len(items) and items[index] is None
            if not unknown and not (0 <= inner < len(item_words) and item_words[inner] == text):
                raise MalformedReply("the stream says one thing, and its end another")
        if any(words.get(index) != texts for index, texts in self._done_items):
            raise MalformedReply("the stream says one thing, and its end another")
        indices = [index for index, item in enumerate(items) if item is not None]
        for item, index in zip(self._items, indices, strict=True):
            counts = {k: len(pieces) for (at, k), pieces in self._deltas.items() if at == index}
            item.heard_in(counts)


_ENDED = tuple(_ENDS.values())
# Of these events the words are compared: the field that holds them, and whether it is a piece.
_HEARD = {
    "output_text.delta": ("delta", True),
    "output_text.done": ("text", False),
    "refusal.delta": ("delta", True),
    "refusal.done": ("refusal", False),
    "function_call_arguments.delta": ("delta", True),
    "function_call_arguments.done": ("arguments", False),
    "custom_tool_call_input.delta": ("delta", True),
    "custom_tool_call_input.done": ("input", False),
    "content_part.done": ("text", False),  # a refusal too is given as a text by `_holder`
}
# These say nothing that the last event does not say too.
_QUIET = ("created", "queued", "in_progress", "output_item.added", "content_part.added")
_OF_REQUEST = (*_REPEATED, "tools", "store", "background", "previous_response_id", "reasoning")


def _holder(kind: str, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object that holds an event's words."""
    if kind != "content_part.done":
        return raw
    part: dict[str, Any] = strict.a(dict, raw.get("part"), "a part")
    return {"text": part.get("refusal")} if part.get("type") == "refusal" else part


def _part_events(
    spot: Mapping[str, Any], part: ContentPart, written: dict[str, Any], text: str
) -> Iterator[dict[str, Any]]:
    more: dict[str, Any] = {"logprobs": []} if part.kind == "output_text" else {}
    yield {"type": "response.content_part.added", **spot, "part": part.begun()}
    for piece in cut(text, part.size):
        yield {"type": f"response.{part.kind}.delta", **spot, "delta": piece, **more}
    yield {"type": f"response.{part.kind}.done", **spot, part.key: text, **more}
    yield {"type": "response.content_part.done", **spot, "part": written}
