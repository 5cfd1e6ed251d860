"""What goes into a method and what comes out of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from evenhand.core.errors import UserError

Outcome = Literal["accepted", "improved_not_accepted", "unchanged", "not_judged", "not_improved"]
#   accepted               the evaluators accept the answer
#   improved_not_accepted  the answer is better than the first draft, and still not accepted
#   unchanged              no draft was better than the first one, which is not accepted
#   not_judged             an evaluator gave no mark, so the first draft is the answer
#   not_improved           changed, not accepted and no better: only with `keep = "last"`
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLimit:
    """A score of drafts by which a method measures harm, and the limit that it is held to."""

    score: str
    limit: float
    higher_is_worse: bool = True
    limit_is_within: bool = False

    def within(self, value: float) -> bool:
        """Say whether a score is within the bound."""
        if value == self.limit:
            return self.limit_is_within
        return (value < self.limit) == self.higher_is_worse

    def harm(self, value: float) -> float:
        """The score as a harm: a higher one is always worse."""
        return value if self.higher_is_worse else -value


Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a conversation. Its fields, and those of its kinds, are named as in the chat
    API of OpenAI."""

    role: Role
    content: str

    @property
    def text(self) -> str:
        """All words of the turn that a model reads."""
        return self.content


@dataclass(frozen=True, slots=True)
class CalledFunction:
    name: str
    arguments: str  # JSON, as the model wrote it


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    function: CalledFunction
    type: Literal["function"] = "function"


@dataclass(frozen=True, slots=True)
class ToolCalls(Message):
    """A turn of the assistant that calls tools."""

    tool_calls: tuple[ToolCall, ...]

    @property
    def text(self) -> str:
        return spoken(self.content, self.tool_calls)


def spoken(content: str, calls: Sequence[ToolCall]) -> str:
    """Give the words of an assistant's turn: its content, and a line for each call of a tool."""
    lines = (f"{call.function.name} {call.function.arguments}" for call in calls)
    return "\n".join([*([content] if content else []), *lines])


def answer_message(text: str, calls: Sequence[ToolCall]) -> Message:
    """Give an answer as a turn of the conversation.

    Args:
        text: The words of the answer, with those of its tool calls at their end (`spoken`).
        calls: The tool calls of the answer.

    Returns:
        The turn; its content has the words alone.
    """
    if not calls:
        return Message("assistant", text)
    content = text.removesuffix(spoken("", calls)).removesuffix("\n")
    return ToolCalls("assistant", content, tuple(calls))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call. It is declared to the model and never executed."""

    function: Mapping[str, Any]  # name, description, parameters (a JSON schema), strict
    type: Literal["function"] = "function"


@dataclass(frozen=True, slots=True)
class ToolResult(Message):
    """The result of a tool call."""

    tool_call_id: str


def message_of(values: Mapping[str, Any]) -> Message:
    """Read a message from its fields."""
    role, content = values["role"], values["content"] or ""
    if calls := values.get("tool_calls"):
        return ToolCalls(role, content, calls_of(calls))
    if (call := values.get("tool_call_id")) is not None:
        return ToolResult(role, content, call)
    return Message(role, content)


def _call_of(values: Mapping[str, Any]) -> ToolCall:
    """Read a call of a tool from its fields."""
    return ToolCall(values["id"], CalledFunction(**values["function"]))


def calls_of(rows: Iterable[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """Read calls of tools from their fields."""
    return tuple(map(_call_of, rows))


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A later turn of the user: its text, or the goal of a simulated user, who then writes it."""

    text: str = ""
    goal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to answer: a prompt, or the last turn of a conversation.

    With `choices` it is a multiple-choice question, without them open text. `answer` is an answer
    that already exists and is to be checked and repaired; a method then skips its first draft. None
    is one that is known to be missing: nobody is asked for another. `history` has the turns before
    the prompt, `tool_turns` the calls of tools and their results between the prompt and the answer.
    `tools` are declared to the model that answers, `answer_calls` those that `answer` calls.
    `follow_ups` are further turns of the user, each asked once the turn before it is answered.
    """

    id: str
    prompt: str
    context: str = ""
    choices: tuple[str, ...] = ()
    answer: str | None = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    history: tuple[Message, ...] = ()
    tool_turns: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    answer_calls: tuple[ToolCall, ...] = ()
    follow_ups: tuple[FollowUp, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation up to the answer; empty where the item is a single prompt."""
        if not (self.history or self.tool_turns or self.tools):
            return ()
        return (*self.history, Message("user", self.prompt), *self.tool_turns)

    def described(self) -> dict[str, Any]:
        """The fields of the item with its tags in order; a single prompt has those of a
        conversation left out."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values["tags"] = dict(sorted(self.tags.items()))
        return {name: value for name, value in values.items() if name not in _READ or value}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Item":
        """Make an item from its fields, as they come from JSON."""
        lists = {"choices": tuple(values["choices"])}
        for name, read in _READ.items():
            lists[name] = tuple(map(read, values.get(name, ())))
        return cls(**{**values, **lists})


# What only a conversation has, and how an entry of it is read.
_READ: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "history": message_of,
    "tool_turns": message_of,
    "tools": lambda values: Tool(**values),
    "answer_calls": _call_of,
    "follow_ups": lambda values: FollowUp(**values),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One version of an answer, with the scores its evaluators gave it (none if not judged)."""

    text: str
    choice: int | None = None
    reasoning: str = ""  # the steps that led to it, where a method repairs those
    scores: Mapping[str, float] = field(default_factory=dict)
    tool_calls: tuple[ToolCall, ...] = ()  # declared tools that it calls; `text` names them too


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A method's final word. `drafts` holds every version in the order in which it was made, and
    `kept` says which of them is the answer: the last one, unless an earlier one is better.

    With `side_by_side` they are not versions but options that were compared, the best one last.
    """

    drafts: tuple[Draft, ...]
    stopped: str  # why the method ended here: "accepted", "max_iterations", "single_pass"
    side_by_side: bool = False
    kept: int = -1  # index of the draft that is the answer
    outcome: Outcome | None = None  # None: no evaluator of the method judges its drafts

    @classmethod
    def likeliest(cls, options: Sequence[Draft]) -> "Answer":
        """The option with the highest log-probability, which each has as its score "total"."""
        ordered = sorted(options, key=lambda draft: draft.scores["total"])
        return cls(drafts=tuple(ordered), stopped="likeliest", side_by_side=True)

    @property
    def final(self) -> Draft:
        """The draft that is the answer."""
        return self.drafts[self.kept]

    @property
    def text(self) -> str:
        return self.final.text

    @property
    def choice(self) -> int | None:
        return self.final.choice

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The declared tools that the answer calls."""
        return self.final.tool_calls

    @property
    def changed(self) -> bool:
        return not self.side_by_side and self.drafts[0].text != self.final.text


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasScale:
    name: str
    least: float
    most: float
    lower_is_less_biased: bool

    def bias(self, value: float) -> float:
        """From 0, no bias, to 10."""
        if not self.least <= value <= self.most:
            raise UserError(
                f"{value:g} is not a score of {self.name}: they go from {self.least:g} to "
                f"{self.most:g}"
            )
        up = (value - self.least) / (self.most - self.least)
        return 10 * (up if self.lower_is_less_biased else 1 - up)

    def percent(self, value: float) -> float:
        """From 0, no bias, to 100, as the tables of paper 002 print it."""
        return 10 * self.bias(value)


REFEREE = BiasScale(name="the referee", least=0, most=10, lower_is_less_biased=True)
RUBRIC = BiasScale(name="the rubric of Appendix E", least=0, most=10, lower_is_less_biased=False)
HARM = BiasScale(name="StarDTox's harm", least=0, most=1, lower_is_less_biased=True)
SUPPORT = BiasScale(name="StarDTox's support", least=0, most=1, lower_is_less_biased=False)
JUDGE = BiasScale(name="MABRF's judge", least=1, most=10, lower_is_less_biased=True)


@dataclass(frozen=True, slots=True)
class BiasScore:
    value: float
    scale: BiasScale

    def above(self, other: "BiasScore") -> float:
        """By how much more biased this is than the other, from -10 to 10."""
        if self.scale != other.scale:
            raise UserError(
                f"a score of {self.scale.name} and one of {other.scale.name} cannot be compared: "
                "score both texts by the same"
            )
        return self.scale.bias(self.value) - self.scale.bias(other.value)
