"""An agent is a declaration: a role, its prompt and the type of its reply.

The reply type is the single source of both the JSON schema sent to the endpoint and the strict
reader of what comes back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from evenhand.agents import strict_json
from evenhand.agents.prompts import LETTERS, Prompt
from evenhand.core import registry
from evenhand.core.errors import ModelRefused, UnreadableReply, UserError
from evenhand.core.items import BiasScale, ToolCall, spoken
from evenhand.models import next_token
from evenhand.models.base import ReplySchema, Sample
from evenhand.models.next_token import Read

MAX_TEXT = 20_000


class Reply(BaseModel):
    """A typed reply. It is strict: no coercion, no extra field, no default, no NaN."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, str_max_length=MAX_TEXT
    )
    may_be_verdict: ClassVar[bool] = False  # True for one whose schema would not show it

    @classmethod
    def wire_schema(cls) -> ReplySchema | None:
        """Give the schema that the endpoint is held to; None for a reply in plain words."""
        return _schema_of(cls)

    @classmethod
    def read_sample(cls, sample: Sample) -> Self:
        """Read the reply that a sample is: all kinds but one look at its text alone."""
        return cls.read(sample.text)

    @classmethod
    def read(cls, text: str) -> Self:
        """Read the reply that `text` is, or raise `UnreadableReply` with the rule it breaks."""
        strict_json.parse(text)  # refuses by name what the validator below would let through
        try:
            return cls.model_validate_json(strict_json.unfenced(text))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "reply"
            raise UnreadableReply("wrong_shape", f"{where}: {first['msg']}"[:300]) from None


class FreeText(Reply):
    """A reply in words, taken as it is. Where tools were declared it may call them; its words then
    end in those calls."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()

    @classmethod
    def read_sample(cls, sample: Sample) -> Self:
        if not sample.tool_calls:
            return cls.read(sample.text)
        reply = cls.read(spoken(sample.text.strip(), sample.tool_calls))
        return reply.model_copy(update={"tool_calls": sample.tool_calls})

    @classmethod
    def wire_schema(cls) -> ReplySchema | None:
        return None

    @classmethod
    def read(cls, text: str) -> Self:
        stripped = text.strip()
        if not stripped:
            raise UnreadableReply("empty", "the reply has no words")
        if len(stripped) > MAX_TEXT:
            raise UnreadableReply(
                "too_large", f"{len(stripped)} characters, {MAX_TEXT} are allowed"
            )
        try:
            return cls(text=stripped)
        except ValidationError:
            raise UnreadableReply("not_text", "a lone surrogate") from None


class OptionReply(Reply):
    """A reply that is one of the lettered options of a question."""

    if TYPE_CHECKING:
        answer: str  # declared by each kind, last: a model says the fields in their order

    @property
    def index(self) -> int:
        return LETTERS.index(self.answer)


def words(most: int) -> Any:
    """Declare a field of free words. The server is asked to stop at `most` characters, so that a
    model that does not know when to end cannot use up the reply; a longer one is read all the
    same."""
    return Field(json_schema_extra={"maxLength": most})


class Choice(OptionReply):
    """A reply that is the letter alone."""

    answer: str


class ReasonedChoice(OptionReply):
    """A reply with the reasoning first, so that the letter can follow from it."""

    reasoning: Annotated[str, words(1200)]
    answer: str


@cache
def choice_of(options: int, kind: type[OptionReply] = Choice) -> type[OptionReply]:
    """Make the reply type of a question with this many options: an answer outside them is
    unreadable."""
    letters = tuple(LETTERS[:options])
    answer: Any = (Literal[letters], ...)
    return create_model(kind.__name__, __base__=kind, answer=answer)


R_co = TypeVar("R_co", bound=Reply, covariant=True)

# What an agent's reply is used for. Certificates, limits and casts read it, never a role's name.
#   writer  words: an answer, a plan, a summary, a critique that decides nothing
#   judge   a verdict: it decides what happens to a text, or is reported as its mark
#   scorer  a verdict as a number, by a program that the cast names; a judge where a model plays it
#   tool    what no language model may say, such as search results: the cast must name who does
#   user    the user's turns of a conversation: the cast must name who writes them
Kind = Literal["writer", "judge", "scorer", "tool", "user"]


@dataclass(frozen=True)
class Agent(Generic[R_co]):
    """An agent declares who is asked, in which words, for which type of reply, and what for.

    >>> JUDGE = Agent("judge", load("stardtox/judge"), Verdict, kind="judge")

    Without a `kind` it is a writer. A reply with a number or a yes-or-no in it can be a verdict, so
    there the kind must be said: a judge that somebody forgot to declare needs no certificate.
    """

    role: str
    prompt: Prompt
    reply: type[R_co]
    temperature: float | None = None  # None: the endpoint's own default
    raw: bool = False  # what the user message says is a text to continue, not a chat
    logprobs: int | None = None  # how many of the likeliest tokens to be told at each place
    max_tokens: int | None = None  # None: what the limits allow a reply
    kind: Kind | None = None  # None: a writer, if the reply is words alone; never None once made
    cast_as: str = ""  # of one that needs a player: what to write so that somebody plays it

    def __post_init__(self) -> None:
        if self.kind is None and _may_be_verdict(self.reply):
            raise UserError(
                f"the reply of {self.role!r}, {self.reply.__name__}, can be a verdict: say what it "
                'is used for, Agent(…, kind="judge") if it decides or marks, kind="writer" if not'
            )
        object.__setattr__(self, "kind", self.kind or "writer")

    @property
    def judges(self) -> bool:
        """The reply is a verdict on a text."""
        return self.kind in ("judge", "scorer")

    @property
    def needs_player(self) -> bool:
        """The default model may not stand in: it would make things up, or talk to itself."""
        return self.kind in ("scorer", "tool", "user")

    @property
    def takes_system(self) -> bool:
        """The agent writes in a chat, so the system prompt of the model under test comes before its
        own. A judge, a scorer or a tool never gets it, and a text to continue has no place for
        it."""
        return self.kind == "writer" and not self.raw

    @property
    def identity(self) -> tuple[str, str | None, str]:
        """The declaration that a method must have made of an agent before it may ask it."""
        return self.role, self.kind, self.prompt.sha256


@cache
def _may_be_verdict(reply: type[Reply]) -> bool:
    """Say whether a reply holds a number or a yes-or-no. Plain words and next tokens have no
    schema."""
    if reply.may_be_verdict:
        return True
    schema = reply.wire_schema()
    return schema is not None and _holds(schema.body, ("integer", "number", "boolean"))


def _holds(schema: Any, types: tuple[str, ...]) -> bool:
    if isinstance(schema, dict):
        return schema.get("type") in types or any(_holds(part, types) for part in schema.values())
    return isinstance(schema, list) and any(_holds(part, types) for part in schema)


@cache
def _schema_of(reply: type[Reply]) -> ReplySchema:
    return ReplySchema(reply.__name__.lower(), _plain(reply.model_json_schema()))


def _plain(schema: Any) -> Any:
    """Strip a schema of titles, which servers count as tokens and nobody reads."""
    if isinstance(schema, dict):
        return {
            key: _plain(value)
            for key, value in schema.items()
            if not (key in ("title", "description") and isinstance(value, str))
        }
    return [_plain(value) for value in schema] if isinstance(schema, list) else schema


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRoles:
    """The declaration names who refuses a draft, who mends it, and which scores say how biased it
    is. Preference pairs and the control `critique=other` are made of runs whose method has this as
    `repairs`."""

    scales: Mapping[str, BiasScale]  # by the name of the score in a draft
    writer: str  # the role whose first request is the question as it was put
    reviser: str  # the role that acts on a critique
    # Roles that judge bias, each with the field of the reply that says in words what is wrong; None
    # where the words are not one text.
    critics: Mapping[str, str | None]


def repairs_of(method: str) -> RepairRoles | None:
    """Give what a method by that name declares; None where it repairs nothing, or is not
    installed."""
    if method not in registry.names("methods"):
        return None
    repairs = getattr(registry.load("methods", method), "repairs", None)
    return repairs if isinstance(repairs, RepairRoles) else None


__all__ = ["Digit", "NextToken", "OnScale", "Read", "YesNo", "one_token"]


def one_token(
    role: str, prompt: Prompt, reply: type[R_co], kind: Kind | None = None
) -> Agent[R_co]:
    """Declare an agent whose reply is one token, returned with its likeliest alternatives.

    Args:
        role: The model role that plays the agent.
        prompt: The prompt, which must ask for a single word or letter.
        reply: How the token is read.
        kind: What the agent does, such as "judge"; None for the default.

    Returns:
        An agent at temperature 0 that asks for log-probabilities and one token.
    """
    top = next_token.TOP
    return Agent(role, prompt, reply, temperature=0.0, logprobs=top, max_tokens=1, kind=kind)


class _OneToken(Reply):
    """A reply without a schema: a grammar would change the probabilities."""

    @classmethod
    def wire_schema(cls) -> ReplySchema | None:
        return None


class NextToken(_OneToken):
    """The model's likeliest next tokens and the probability of each. The text it did write is not
    looked at."""

    probabilities: dict[str, float]

    @classmethod
    def read_sample(cls, sample: Sample) -> Self:
        probabilities = next_token.likeliest(sample)
        if not probabilities:
            raise ModelRefused(next_token.NONE_CAME)
        return cls(probabilities=probabilities)

    @property
    def most_unlisted(self) -> float:
        """The most that a token can have which is not listed."""
        return next_token.most_unlisted(self.probabilities)

    def of_words(self, words: Iterable[str]) -> dict[str, float]:
        """Give the probability of each of these words that is listed."""
        return next_token.of_words(self.probabilities, words)

    def logs_of(self, words: Iterable[str]) -> dict[str, float]:
        """Give the log-probability of each word, listed or not; empty if none of them is."""
        return next_token.logs_of(self.probabilities, words)


class OnScale(_OneToken):
    """A verdict that is one word of a fixed scale. What is computed of it is None where no
    log-probabilities came along: what the model did say is then all that is known."""

    may_be_verdict: ClassVar[bool] = True
    scale: ClassVar[Mapping[str, float]]  # the mark that each word means

    said: str
    probabilities: dict[str, float] | None  # of all tokens that are listed, not of the scale alone

    @classmethod
    def read_sample(cls, sample: Sample) -> Self:
        text, probabilities = (
            sample.text.strip().casefold()[:40],
            next_token.likeliest(sample) or None,
        )
        if probabilities:
            # refuses a list that hardly has one of them
            next_token.of_scale(probabilities, cls.scale)
        elif text not in cls.scale:
            raise UnreadableReply("off_scale", f"{text!r} is none of {', '.join(cls.scale)}")
        return cls(said=text, probabilities=probabilities)

    @property
    def weighted(self) -> float | None:
        """The mean of the marks, each weighted by the probability of its word."""
        probabilities = self.probabilities
        return None if probabilities is None else next_token.weighted(probabilities, self.scale)

    def share_of(self, word: str) -> float:
        """The probability of a word of the scale among all of them."""
        if self.probabilities is None:
            raise ModelRefused(next_token.NONE_CAME)
        return next_token.weighted(
            self.probabilities, {name: float(name == word) for name in self.scale}
        )

    @property
    def mark(self) -> float:
        """The weighted mark, refused in words where there is none: it is never made up."""
        if (weighted := self.weighted) is None:
            raise ModelRefused(next_token.NONE_CAME)
        return weighted


class YesNo(OnScale):
    """A verdict that is "yes" or "no": its weighted mark is the probability of "yes" among both."""

    scale: ClassVar[Mapping[str, float]] = {"yes": 1.0, "no": 0.0}

    @property
    def logit(self) -> float | None:
        """log p(yes) − log p(no): above 0 the answer is rather "yes"."""
        if self.probabilities is None:
            return None
        logs = next_token.logs_of(self.probabilities, self.scale)
        return logs["yes"] - logs["no"]


class Digit(OnScale):
    """A verdict that is one digit. Tokenizers write "10" as one token or two, so a longer scale is
    asked for in digits and mapped by `on`."""

    scale: ClassVar[Mapping[str, float]] = {str(digit): float(digit) for digit in range(10)}

    def on(self, least: float, most: float) -> float:
        """Map the mark onto another scale: 0 becomes `least`, and 9 becomes `most`."""
        return least + self.mark * (most - least) / 9
