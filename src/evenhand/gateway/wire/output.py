"""The items of a response that we know: messages, and calls of tools."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.gateway.errors import MalformedReply
from evenhand.gateway.wire import ToolArguments, ToolName, strict

_MOST_PARTS = 128  # our choice
_STATUSES = ("completed", "incomplete")


@dataclass(slots=True)
class ContentPart:
    """One part of a message: a text, or a refusal."""

    kind: str  # output_text or refusal, as its events are called
    text: str
    citations: list[dict[str, Any]] = field(default_factory=list)
    pieces: int = 1  # in how many the upstream sent it

    @property
    def repairable(self) -> bool:
        return self.kind == "output_text" and bool(self.text)

    @property
    def key(self) -> str:
        return "text" if self.kind == "output_text" else "refusal"

    @property
    def size(self) -> int:
        return math.ceil(len(self.text) / max(self.pieces, 1))

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
        return tuple(part.text for part in self.parts)

    @property
    def observed(self) -> list[str]:
        refusals = [part.text for part in self.parts if part.kind == "refusal"]
        cited = [citation for part in self.parts for citation in part.citations]
        return [*refusals, *(citation[key] for citation in cited for key in ("title", "url"))]

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
            return ContentPart("refusal", strict.a(str, part.get("refusal"), "a refusal"))
        case "output_text":
            strict.only(part, ("type", "text", "annotations"), left_out, "output.content.")
            text = strict.a(str, part.get("text"), "a text")
            return ContentPart(
                "output_text", text, _citations(part.get("annotations"), text, left_out)
            )
        case _:
            raise MalformedReply("a part of a message is of a kind that we do not know")


def _citations(raw: Any, text: str, left_out: set[str]) -> list[dict[str, Any]]:
    citations = []
    for annotation in strict.a(list, raw, "`annotations`") if raw else ():
        cited = strict.citation(annotation)
        if cited is not None and annotation.get("type") == "url_citation" and _inside(cited, text):
            citations.append(cited)
        else:
            strict.leave(left_out, "output.content.annotations")
    return citations


def _inside(cited: Mapping[str, Any], text: str) -> bool:
    return bool(cited["start_index"] <= cited["end_index"] <= len(text))


def _name(item: Mapping[str, Any], name: str, default: str | None) -> str:
    identifier = strict.token(item.get(name)) or default
    if identifier is None or (item.get(name) and identifier != item[name]):
        raise MalformedReply("an id of an item is missing, or is no id")
    return identifier


def _status(item: Mapping[str, Any]) -> str:
    status = item.get("status") or "completed"
    if status not in _STATUSES:
        raise MalformedReply("an item has not ended")
    return str(status)
