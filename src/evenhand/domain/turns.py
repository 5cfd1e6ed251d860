"""What was said: one request to a model or scorer and its reply or failure."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(slots=True, kw_only=True)  # not frozen: one is built per call, at a third of the time
class Turn:
    """One recorded call, written before anything reads it.

    `(position, request, occurrence)` is its key among recorded turns: the item, the hash of
    what was asked, and how often this very request had been asked before within the item.
    The fields are flat because each is a column of `turns/*.parquet`.
    """

    position: int
    item_id: str
    index: int  # order within the item
    role: str
    prompt: str  # "stardtox/judge@1"
    prompt_sha256: str
    request: str  # sha256 of the logical request
    occurrence: int
    model: str
    messages: tuple[Message, ...]
    settings: str  # JSON: temperature, max_tokens, seed, …
    started_us: int  # microseconds since 1970, UTC
    seconds: float
    attempts: int
    texts: tuple[str, ...] = ()
    finish: tuple[str, ...] = ()
    logprobs: str | None = None  # JSON, when they were asked for
    prompt_tokens: int | None = None  # None: the endpoint did not say
    completion_tokens: int | None = None
    served_by: str = ""  # the model name the endpoint reported
    error: str | None = None
    error_message: str | None = None
