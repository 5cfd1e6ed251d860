"""How an item ended: the events of a runner and the row that is stored."""

from dataclasses import dataclass

import orjson

from evenhand.core.items import Answer, Item, Message, Tool, ToolCall, calls_of, message_of, spoken


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int  # thinking among them
    thinking_tokens: int | None = None  # None: the endpoint did not say

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
    tool_calls: str | None = None  # JSON: a list of calls for each text; None without any
    logprobs: str | None = None  # JSON, when they were asked for
    prompt_tokens: int | None = None  # None: the endpoint did not say
    completion_tokens: int | None = None
    thinking: tuple[str, ...] = ()  # what was thought before each text; empty if nothing was
    thinking_tokens: int | None = None  # of the completion tokens; None: the endpoint did not say
    served_by: str = ""  # the model name the endpoint reported
    adapted: str = ""  # what the endpoint did not accept, and what was sent instead
    batch: str = ""  # the provider's id of the batch that answered; empty: asked directly
    error: str | None = None
    error_message: str | None = None

    @property
    def replies(self) -> tuple[str, ...]:
        """The texts, each with the calls of tools that came with it."""
        if self.tool_calls is None:
            return self.texts
        calls = map(calls_of, orjson.loads(self.tool_calls))
        return tuple(map(spoken, self.texts, calls))


@dataclass(frozen=True, slots=True)
class Answered:
    position: int
    item: Item
    answer: Answer
    calls: int
    prompt_tokens: int | None  # None: the endpoint did not say
    completion_tokens: int | None
    tags_taken_off: int = 0  # tags of our prompts that a model had copied into what it said


@dataclass(frozen=True, slots=True)
class Failed:
    """An item without an answer. It is counted and shown, never taken for a safe one."""

    position: int
    item: Item
    reason: str
    message: str
    calls: int
    prompt_tokens: int | None  # None: the endpoint did not say
    completion_tokens: int | None
    tags_taken_off: int = 0


Event = Answered | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedScore:
    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRow:
    text: str
    choice: int | None
    reasoning: str
    scores: tuple[NamedScore, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One row of `results/*.parquet`. Nothing in it depends on the clock, so a replay equals it."""

    position: int
    item_id: str
    status: str  # "answered" or "failed"
    reason: str | None  # why it failed, or None
    message: str | None
    text: str | None
    choice: int | None
    stopped: str | None
    changed: bool | None
    answer_before: str | None  # the first draft, or the stored answer if the method began with it
    scores_before: tuple[NamedScore, ...]  # of `answer_before`; empty if nobody judged it
    scores_after: tuple[NamedScore, ...]  # of `text` itself, never of a draft before it
    drafts: tuple[DraftRow, ...]
    calls: int
    prompt_tokens: int | None  # None: the endpoint did not say
    completion_tokens: int | None
    prompt: str
    tags: tuple[Tag, ...]
    tags_taken_off: int  # tags of our prompts that a model had copied into what it said
    outcome: str | None  # one of `OUTCOMES`; None where the method judges no draft, or failed
    # JSON: the messages up to the answer, the prompt among them, and the declared tools; None of a
    # single prompt
    conversation: str | None = None
    tool_calls: str | None = None  # JSON: the tool calls of the answer; None without any

    @classmethod
    def of(cls, event: Event) -> "Result":
        answer = event.answer if isinstance(event, Answered) else None
        drafts = _draft_rows(answer) if answer else ()
        calls = answer.tool_calls if answer else ()
        return cls(
            position=event.position,
            item_id=event.item.id,
            status="answered" if answer else "failed",
            reason=event.reason if isinstance(event, Failed) else None,
            message=event.message if isinstance(event, Failed) else None,
            text=answer.text if answer else None,
            choice=answer.choice if answer else None,
            stopped=answer.stopped if answer else None,
            changed=answer.changed if answer else None,
            answer_before=drafts[0].text if drafts else None,
            scores_before=drafts[0].scores if drafts else (),
            scores_after=drafts[answer.kept].scores if answer else (),
            drafts=drafts,
            calls=event.calls,
            prompt_tokens=event.prompt_tokens,
            completion_tokens=event.completion_tokens,
            prompt=event.item.prompt,
            tags=tuple(Tag(name=k, value=v) for k, v in sorted(event.item.tags.items())),
            tags_taken_off=event.tags_taken_off,
            outcome=answer.outcome if answer else None,
            conversation=_conversation(event.item),
            tool_calls=orjson.dumps(calls).decode() if calls else None,
        )


def _conversation(item: Item) -> str | None:
    if not item.messages:
        return None
    tools = {"tools": item.tools} if item.tools else {}
    return orjson.dumps({"messages": item.messages, **tools}).decode()


def tool_calls_in(stored: str | None) -> tuple[ToolCall, ...]:
    """Read the tool calls that a result stores of its answer."""
    return () if stored is None else calls_of(orjson.loads(stored))


def tools_in(conversation: str | None) -> tuple[Tool, ...]:
    """Read the declared tools that a result stores with its messages."""
    stored = {} if conversation is None else orjson.loads(conversation)
    return tuple(Tool(**tool) for tool in stored.get("tools", ()))


def messages_in(conversation: str | None) -> tuple[Message, ...]:
    """Read the messages that a result stores; empty of a single prompt."""
    stored = {} if conversation is None else orjson.loads(conversation)
    return tuple(map(message_of, stored.get("messages", ())))


def _draft_rows(answer: Answer) -> tuple[DraftRow, ...]:
    return tuple(
        DraftRow(
            text=draft.text,
            choice=draft.choice,
            reasoning=draft.reasoning,
            scores=tuple(NamedScore(name=k, value=v) for k, v in draft.scores.items()),
        )
        for draft in answer.drafts
    )
