"""A wire is one dialect of OpenAI's API, or Anthropic's: what is asked by it, and what is answered.

The body that goes to the client is built from fields that we know, never copied: a field that we do
not know could hold text that nobody has checked. What was left out is named in `left_out`,
for records alone. Errors have the shape that OpenAI's clients read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from evenhand.core import Message


@dataclass(eq=False)  # not frozen: raising writes the traceback into it
class Refused(Exception):
    """An answer that is an error. `message` is in our words: what was found is never quoted."""

    status: int
    code: str  # a short stable word: content_blocked, not_checked, overloaded, …
    message: str
    kind: str = "evenhand_error"
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """Give the error as JSON. Clients of OpenAI read `error`, those of Anthropic `type` too."""
        error = {"message": self.message, "type": self.kind, "param": None, "code": self.code}
        return orjson.dumps({"type": "error", "error": error})


class MalformedReply(Exception):
    """The upstream sent what is not an answer of this wire. Nothing of it may go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """What a client asked."""

    model: str
    stream: bool
    sent: Mapping[str, Any]  # the body that goes upstream
    prompt: str  # what a judge is shown as the question: the last thing that the user said
    context: str = ""  # and what was said before it, system message first
    messages: tuple[Message, ...] = ()  # all of it turn by turn, for records
    schema: Mapping[str, Any] | None = None  # the JSON schema that every text must satisfy


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeOutcome:
    """What the gateway says of an exchange, in addition to the answer itself."""

    action: str
    detail: Mapping[str, Any] = field(default_factory=dict)  # goes into the body if asked for


class ToolName(str):
    """The name of a tool that an answer calls: a label, no sentence."""

    __slots__ = ()


class ToolArguments(str):
    """What a tool is called with: JSON as a rule."""

    __slots__ = ()


class WholeAnswer(Protocol):
    """What an answer says, where it is whole."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text that a person may read and that can be repaired, in a fixed order."""
        ...

    @property
    def observed(self) -> tuple[str, ...]:
        """What is checked and passed, flagged or blocked, but never rewritten: tool calls as
        `ToolName` and `ToolArguments`, refusals, citations."""
        ...


class UpstreamReply(WholeAnswer, Protocol):
    """An upstream's answer while it comes in, and when it is whole.

    A plain answer is read by `read`, a streamed one by `feed` until `whole`. After that the texts
    are known, and the answer is written with texts of ours in their places.
    """

    # Fields that were not passed on, by name; writing may add some. The names are the upstream's
    # own words: for records, never for the client.
    left_out: set[str]

    def read(self, body: bytes) -> None:
        """Take a whole plain answer. Raises `MalformedReply`."""
        ...

    def feed(self, data: bytes) -> None:
        """Take the data of one server-sent event. Raises `MalformedReply`."""
        ...

    @property
    def whole(self) -> bool:
        """Whether the answer has ended as this wire ends one. A cut one never becomes whole."""
        ...

    def body(self, texts: Sequence[str], outcome: ExchangeOutcome) -> bytes:
        """The plain answer with these texts, as many as `texts` has. Raises `ValueError` if they
        are not as many, or if the answer is not whole."""
        ...

    def events(self, texts: Sequence[str], outcome: ExchangeOutcome) -> Iterator[bytes]:
        """The same as a stream: whole server-sent events, the end among them. Raises at once,
        before the first event."""
        ...


class Wire(Protocol):
    """One route of the API."""

    path: str  # behind /v1: "/chat/completions"

    def asked(self, body: bytes) -> ClientRequest:
        """Read a request. Raises `Refused` with status 400 for what cannot be handled safely."""
        ...

    def reply(self, request: ClientRequest) -> UpstreamReply:
        """A reply to that request, nothing read yet."""
        ...
