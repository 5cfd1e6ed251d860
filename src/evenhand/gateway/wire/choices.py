"""What /chat/completions and /completions share: choices that come whole or in pieces.

Fails closed: as many choices as were asked for, each with an end that we know, or nothing.
"""

import math
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import orjson

from evenhand.gateway import sse
from evenhand.gateway.wire import (
    ClientRequest,
    ExchangeOutcome,
    MalformedReply,
    Refused,
    strict,
)
from evenhand.models.thinking import Splitter, is_cut

# How a choice may end. Words of some servers, such as "abort" or "error", are unknown.
_FINISHES = {
    **{word: word for word in ("stop", "length", "tool_calls", "content_filter", "function_call")},
    "eos": "stop",  # as some servers call it
}
_LONGEST_TOKEN = 128  # our choice: the longest in use are runs of blanks
_JOINER = "\u200d"
_THINKING_SENT = (
    "what was sent so far may be what the model thought: its thinking began without a tag. Let "
    "the server of the model split thinking off, or use the mode hold"
)
Tokens = list[dict[str, Any]] | None  # with their log-probabilities


@dataclass(slots=True)
class Tool:
    """One call of a tool, as far as it has come."""

    kind: str = "function"
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class StreamedChoice:
    """One choice, as far as it has come."""

    index: int
    text: list[str] | None = None  # in the upstream's pieces; None if there was never one
    words: Splitter = field(default_factory=Splitter)  # the same, its thinking apart
    refusal: Splitter | None = None
    tools: dict[int, Tool] = field(default_factory=dict)
    function: Tool | None = None  # the older form of a call
    citations: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[dict[str, Any]] = field(default_factory=list)  # with their log-probabilities
    finish: str | None = None
    heard: int = 0  # how much of anything readable has come

    @property
    def said(self) -> str:
        """The answer, without what was thought before it."""
        return self.words.answer

    @property
    def refused(self) -> str:
        """The refusal, without what was thought before it."""
        return "" if self.refusal is None else self.refusal.answer

    @property
    def sent(self) -> str:
        """The text as the upstream sent it."""
        return "".join(self.text or ())

    def add(self, text: str) -> None:
        """Add a piece of text. An empty one says at least that there is a text."""
        self.text = self.text if self.text is not None else []
        if text:
            self.text.append(text)
            self.words.add(text)
            self.heard += 1

    def refuse(self, text: str) -> None:
        """Add a piece of a refusal."""
        self.refusal = self.refusal or Splitter()
        self.refusal.add(text)
        self.heard += bool(text)

    def end(self, finish: str) -> None:
        """End the choice as the upstream says that it ended."""
        self.finish = finish
        for splitter in (self.words, self.refusal):
            if splitter is not None:
                splitter.end(cut=is_cut(finish))

    @property
    def has_thinking(self) -> bool:
        """Whether something was thought in its text or its refusal."""
        return bool(self.words.thinking or (self.refusal and self.refusal.thinking))


class ChoicesReply(ABC):
    """A reply that is made of choices."""

    plain_object: str
    chunk_object: str

    def __init__(self, request: ClientRequest, choices: int) -> None:
        options = request.sent.get("stream_options")
        self._wants_usage = isinstance(options, dict) and options.get("include_usage") is True
        self._expected = choices
        self._choices: dict[int, StreamedChoice] = {}
        self._head: dict[str, Any] = {}
        self._model = request.model
        self._usage: dict[str, Any] | None = None
        self._done = self._opened = False
        self.left_out: set[str] = set()

    def read(self, body: bytes) -> None:
        raw = strict.answer(body)
        self._take_all(raw, streamed=False)
        self._done = True
        if not self.whole:
            raise MalformedReply("choices are missing, or have no end")

    def feed(self, data: bytes) -> None:
        if self._done:
            raise MalformedReply("the stream goes on after its end")
        if data.strip() == b"[DONE]":
            self._done = True
        else:
            self._take_all(strict.answer(data), streamed=True)

    @property
    def whole(self) -> bool:
        ended = all(choice.finish is not None for choice in self._choices.values())
        return self._done and ended and len(self._choices) == self._expected

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(choice.said for choice in self._with_text())

    def body(self, texts: Sequence[str], outcome: ExchangeOutcome) -> bytes:
        final = self._final(texts)
        body = {
            **self._first_fields(self.plain_object),
            "choices": [self._written(choice, final) for choice in self._ordered()],
        }
        if self._usage is not None:
            body["usage"] = self._usage
        return orjson.dumps(body | told(outcome))

    def events(self, texts: Sequence[str], outcome: ExchangeOutcome) -> Iterator[bytes]:
        final = self._final(texts)
        return self._events(final, outcome)

    def _events(self, final: Mapping[int, str], outcome: ExchangeOutcome) -> Iterator[bytes]:
        for choice in self._ordered():
            pieces = (self._word(choice, *piece) for piece in self._cut(choice, final))
            opening, others = self._opening(choice), self._beside(choice, final)
            yield from map(self._piece, chain(opening, pieces, others))
        yield from self._ends(outcome)

    def _piece(self, piece: dict[str, Any]) -> bytes:
        last = {"usage": None} if self._wants_usage else {}
        return _event({**self._first_fields(self.chunk_object), "choices": [piece], **last})

    def _ends(self, outcome: ExchangeOutcome) -> Iterator[bytes]:
        """A client may stop reading at the first end: all ends come after all words."""
        head = self._first_fields(self.chunk_object)
        last = {"usage": None} if self._wants_usage else {}
        ends = [self._end(choice) for choice in self._ordered()]
        with_usage = self._wants_usage and self._usage is not None
        for number, end in enumerate(ends, 1):
            more = told(outcome) if number == len(ends) and not with_usage else {}
            yield _event({**head, "choices": [end], **last, **more})
        if with_usage:
            yield _event({**head, "choices": [], "usage": self._usage, **told(outcome)})
        yield sse.event(b"[DONE]")

    # -- in windows ------------------------------------------------------------------------------

    @property
    def single(self) -> bool:
        """Whether one choice was asked for."""
        return self._expected == 1

    @property
    def so_far(self) -> str:
        """What the only choice has said so far."""
        return "".join(choice.said for choice in self._choices.values())

    def new_words(self, sent: str) -> tuple[str, bool]:
        """Give what the only choice has said since this was called last.

        Args:
            sent: What went out.

        Returns:
            The words, and whether none of the earlier words belongs to the answer.

        Raises:
            Refused: If what went out turns out to be thinking.
        """
        late = [choice for choice in self._choices.values() if choice.words.late]
        if late and sent.strip():
            raise Refused(502, "thinking_sent", _THINKING_SENT)
        for choice in late:
            choice.words.late = False
        return "".join(choice.words.take() for choice in self._choices.values()), bool(late)

    def window(self, text: str) -> Iterator[bytes]:
        """Events with words of the only choice, which has not ended yet."""
        [choice] = self._choices.values()
        opening = () if self._opened else tuple(self._opening(choice))
        self._opened = True
        size = math.ceil(len(choice.said) / max(len(choice.text or ()), 1))
        words = (self._word(choice, piece, None) for piece in cut(text, size))
        return map(self._piece, (*opening, *words))

    def rest(self, sent: str, outcome: ExchangeOutcome) -> Iterator[bytes]:
        """The events after the last window: what there is in addition to words, and the end.

        Raises `ValueError` if the answer is not whole.
        """
        if not self.whole:
            raise ValueError("an answer that is not whole must not end as one that is")
        [choice] = self._choices.values()
        opening = () if self._opened else self._opening(choice)
        others = self._beside(choice, {choice.index: sent})
        return chain(map(self._piece, chain(opening, others)), self._ends(outcome))

    @property
    def observed(self) -> tuple[str, ...]:
        """What is checked but never rewritten."""
        return ()

    @abstractmethod
    def _take(self, choice: StreamedChoice, raw: Mapping[str, Any], *, streamed: bool) -> None:
        """Add what this piece of a choice holds."""

    @abstractmethod
    def _written(self, choice: StreamedChoice, final: Mapping[int, str]) -> dict[str, Any]:
        """The whole choice for a plain answer."""

    def _opening(self, choice: StreamedChoice) -> Iterator[dict[str, Any]]:  # noqa: ARG002
        """The choice for a stream, before its words."""
        return iter(())

    @abstractmethod
    def _word(self, choice: StreamedChoice, text: str, tokens: Tokens) -> dict[str, Any]:
        """A piece of its words, with its tokens if they may go out."""

    def _beside(self, choice: StreamedChoice, final: Mapping[int, str]) -> Iterator[dict[str, Any]]:  # noqa: ARG002
        """What comes behind its words, without its end."""
        return iter(())

    @abstractmethod
    def _end(self, choice: StreamedChoice) -> dict[str, Any]:
        """The end of the choice for a stream."""

    def _ordered(self) -> list[StreamedChoice]:
        return [self._choices[index] for index in sorted(self._choices)]

    def _with_text(self) -> list[StreamedChoice]:
        return [choice for choice in self._ordered() if choice.said]

    def _final(self, texts: Sequence[str]) -> dict[int, str]:
        """Texts that go out, by the index of their choice."""
        if not self.whole:
            raise ValueError("an answer that is not whole must not go out")
        return {c.index: text for c, text in zip(self._with_text(), texts, strict=True)}

    def _take_all(self, raw: Mapping[str, Any], *, streamed: bool) -> None:
        strict.only(raw, (*_HEAD, "object", "created", "choices", "usage"), self.left_out)
        self._take_head(raw)
        usage = strict.usage(raw.get("usage"), self.left_out)
        self._usage = usage if usage is not None else self._usage
        for position, choice in enumerate(strict.a(list, raw.get("choices"), "`choices`")):
            self._take_one(strict.a(dict, choice, "a choice"), position, streamed=streamed)

    def _take_head(self, raw: Mapping[str, Any]) -> None:
        """Keep the first of each that says something: some servers begin with empty ones."""
        for name in _HEAD:
            value = strict.head(raw, name)
            if value is not None:
                self._head.setdefault(name, value)
            elif raw.get(name):
                strict.leave(self.left_out, name)
        created = strict.moment(raw.get("created"))
        if created:
            self._head.setdefault("created", created)

    def _take_one(self, raw: Mapping[str, Any], position: int, *, streamed: bool) -> None:
        index = strict.a(int, raw.get("index", position), "the index of a choice")
        if not 0 <= index < self._expected:
            raise MalformedReply("there are more choices than were asked for")
        choice = self._choices.setdefault(index, StreamedChoice(index))
        before = choice.heard
        self._take(choice, raw, streamed=streamed)
        if choice.finish is not None and choice.heard != before:
            raise MalformedReply("a choice goes on after its end")
        reason = raw.get("finish_reason")
        if reason is not None:
            finish = _FINISHES.get(strict.a(str, reason, "`finish_reason`"))
            if finish is None or choice.finish not in (None, finish):
                raise MalformedReply("a choice ended in a way that we do not know")
            choice.end(finish)
        if choice.has_thinking:
            strict.leave(self.left_out, "choices.thinking")

    def _first_fields(self, kind: str) -> dict[str, Any]:
        default = {"id": "unnamed", "created": 0, "model": self._model}
        return {**default, **self._head, "object": kind}

    def _tokens_of(self, choice: StreamedChoice, final: Mapping[int, str]) -> Tokens:
        """Log-probabilities go out only where they spell the text that goes out."""
        if not choice.tokens:
            return None
        spelt = "".join(entry["token"] for entry in choice.tokens)
        if choice.said and spelt == choice.sent == final[choice.index]:
            return choice.tokens
        strict.leave(self.left_out, "choices.logprobs")
        return None

    def _cut(
        self, choice: StreamedChoice, final: Mapping[int, str]
    ) -> Iterator[tuple[str, Tokens]]:
        """The text that goes out, in pieces, each with its tokens if they may go out."""
        text = final.get(choice.index, "")
        tokens = self._tokens_of(choice, final)
        if tokens is not None:
            yield from ((entry["token"], [entry]) for entry in tokens)
        else:
            size = math.ceil(len(choice.said) / max(len(choice.text or ()), 1))
            yield from ((piece, None) for piece in cut(text, size))


_HEAD = ("id", "model", "system_fingerprint", "service_tier")


def cut(text: str, size: int) -> Iterator[str]:
    """Cut a text into pieces of about `size` characters; a mark stays with its letter."""
    start = 0
    while start < len(text):
        end = min(start + max(size, 1), len(text))
        while end < len(text) and _belongs(text[end - 1], text[end]):
            end += 1
        yield text[start:end]
        start = end


def _belongs(before: str, char: str) -> bool:
    joined = _JOINER in (before, char) or "\U0001f3fb" <= char <= "\U0001f3ff"
    return joined or unicodedata.category(char).startswith("M")


def token_entry(token: Any, logprob: Any, tops: Any) -> dict[str, Any] | None:
    """Convert a token and its log-probability to the format of chat completions.

    Args:
        token: The token, as the upstream sent it.
        logprob: Its log-probability, as the upstream sent it.
        tops: Its alternatives. They are never passed on, since no check has read them; None also
            leaves out the empty list.

    Returns:
        The entry; None if the token or its log-probability is not valid.
    """
    chance = strict.number(logprob)
    if not isinstance(token, str) or len(token) > _LONGEST_TOKEN or chance is None:
        return None
    entry = {"token": token, "logprob": chance, "bytes": list(token.encode())}
    return entry if tops is None else {**entry, "top_logprobs": []}


def told(outcome: ExchangeOutcome) -> dict[str, Any]:
    """What is said of the exchange, as a field of the body if it was asked for."""
    return {"evenhand": dict(outcome.detail)} if outcome.detail else {}


def _event(chunk: Mapping[str, Any]) -> bytes:
    return sse.event(orjson.dumps(chunk))
