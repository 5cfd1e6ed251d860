"""The types that every kind of model takes and gives."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import orjson

from evenhand.core import Message, Usage
from evenhand.core.items import Tool, ToolCall

_BOUNDS = frozenset({"minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"})


def _without_bounds(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {key: _without_bounds(value) for key, value in schema.items() if key not in _BOUNDS}
    return [_without_bounds(value) for value in schema] if isinstance(schema, list) else schema


@dataclass(frozen=True)
class ReplySchema:
    """A JSON schema that the reply must follow. Built once per reply type, so its hash is too."""

    name: str
    body: Mapping[str, Any]

    @cached_property
    def unbounded(self) -> Any:
        """The schema without lengths and ranges, which some servers refuse."""
        return _without_bounds(self.body)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(orjson.dumps(self.body, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(slots=True, kw_only=True)  # not frozen: that costs 4 us a call, `replace` 8 more
class ModelRequest:
    """One question to a model: a chat (`messages`) or a raw text to continue (`prompt`).

    `deadline` is a time of the running event loop's clock. `position` and `occurrence` say where
    in a run the question stands, so that a replay can find its recorded answer.
    """

    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    schema: ReplySchema | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    n: int = 1
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None  # how many alternatives per token
    echo: bool = False  # completions only: log-probabilities of the prompt too
    tools: tuple[Tool, ...] = ()  # what the model may call instead of saying something
    deadline: float | None = None
    position: int = 0
    occurrence: int = 0
    sha256: str = ""

    @property
    def prompt_bytes(self) -> int:
        """The size of all words that the model reads, in bytes."""
        size = sum(len(message.text.encode()) for message in self.messages)
        size += len((self.prompt or "").encode())
        return size + (len(orjson.dumps(self.tools)) if self.tools else 0)

    def settings(self) -> dict[str, Any]:
        """Give everything but the words: the decoding that was asked for."""
        fields = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "n": self.n if self.n != 1 else None,
            "seed": self.seed,
            "stop": self.stop or None,
            "logprobs": self.logprobs,
            "echo": self.echo or None,
            "schema": self.schema.name if self.schema else None,
            "tools": self.tools or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


def request_sha256(model: str, words: bytes, settings: bytes, schema: ReplySchema | None) -> str:
    """Hash a request. Requests with the same words, model and decoding settings have the same hash,
    by which a recorded call is found.

    Args:
        model: The model string as the user named it.
        words: The messages as bytes, as the recorder encodes them.
        settings: The decoding settings as bytes.
        schema: The schema that the reply must follow; None for free text.

    Returns:
        The SHA-256 as hexadecimal digits.
    """
    digest = hashlib.sha256(model.encode())
    digest.update(words)
    digest.update(settings)
    if schema is not None:
        digest.update(schema.sha256.encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    token: str
    logprob: float | None  # None for the first token of an echoed prompt
    top: tuple[tuple[str, float], ...] = ()


@dataclass(slots=True)
class Sample:
    text: str
    finish: str = "stop"
    logprobs: tuple[TokenLogprob, ...] | None = None
    thinking: str = ""  # what the model thought before `text`; never part of the answer
    tool_calls: tuple[ToolCall, ...] = ()  # of declared tools; `text` does not name them


@dataclass(slots=True, kw_only=True)
class ModelReply:
    samples: tuple[Sample, ...]
    usage: Usage | None  # None: the endpoint did not say
    served_by: str = ""
    adapted: str = ""  # what the endpoint did not accept, and what was sent instead
    batch: str = ""  # the provider's id of the batch that answered; empty: asked directly
    attempts: int = 1
    started_us: int = 0
    seconds: float = 0.0


def together(first: Usage | None, second: Usage | None) -> Usage | None:
    """Add up the tokens of two calls; where one was not counted, both are not."""
    if first is None or second is None:
        return None
    thought = [t for t in (first.thinking_tokens, second.thinking_tokens) if t is not None]
    return Usage(
        first.prompt_tokens + second.prompt_tokens,
        first.completion_tokens + second.completion_tokens,
        sum(thought) if thought else None,
    )


class ChatModel(Protocol):
    """Anything that answers a `ModelRequest`. Errors are `ModelError`s and carry no secret."""

    @property
    def name(self) -> str: ...

    def describe(self) -> dict[str, Any]:
        """Describe the model for `run.json`, without a key or a password."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply: ...

    async def close(self) -> None: ...


@runtime_checkable
class AsksOtherModels(Protocol):
    """A member of a cast that asks a language model for its own answer, as some scorers do."""

    def inner_requests(self, request: ModelRequest) -> tuple[ModelRequest, ...]:
        """Return what it asks a language model for this request."""
        ...
