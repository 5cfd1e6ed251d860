"""An agent is a declaration: a role, its prompt and the type of its reply.

The reply type is the single source of both the JSON schema sent to the endpoint and the strict
reader of what comes back.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from evenhand.agents import strict_json
from evenhand.errors import UnreadableReply
from evenhand.models.base import ReplySchema
from evenhand.prompts import LETTERS, Prompt

MAX_TEXT = 20_000


class Reply(BaseModel):
    """A typed reply. Strict: no coercion, no extra field, no default, no NaN."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, str_max_length=MAX_TEXT
    )

    @classmethod
    def wire_schema(cls) -> ReplySchema | None:
        """What the endpoint is held to; None for a reply in plain words."""
        return _schema_of(cls)

    @classmethod
    def read(cls, text: str) -> Self:
        """The reply that `text` is, or `UnreadableReply` with the rule it breaks."""
        strict_json.parse(text)  # refuses by name what the validator below would let through
        try:
            return cls.model_validate_json(strict_json.unfenced(text))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "reply"
            raise UnreadableReply("wrong_shape", f"{where}: {first['msg']}"[:300]) from None


class FreeText(Reply):
    """A reply in words, taken as it is."""

    text: str

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


class Chosen(Reply):
    """One of the lettered options of a question."""

    if TYPE_CHECKING:
        answer: str  # declared by each kind, last: a model says the fields in their order

    @property
    def index(self) -> int:
        return LETTERS.index(self.answer)


def words(most: int) -> Any:
    """A field of free words. The server is asked to stop at `most` characters, so that a model
    that does not know when to end cannot use up the reply; a longer one is read all the same."""
    return Field(json_schema_extra={"maxLength": most})


class Choice(Chosen):
    """The letter alone."""

    answer: str


class ReasonedChoice(Chosen):
    """The reasoning first, so that the letter can follow from it."""

    reasoning: Annotated[str, words(1200)]
    answer: str


@cache
def choice_of(options: int, kind: type[Chosen] = Choice) -> type[Chosen]:
    """The reply type of a question with this many options: an answer outside them is unreadable."""
    letters = tuple(LETTERS[:options])
    answer: Any = (Literal[letters], ...)
    return create_model(kind.__name__, __base__=kind, answer=answer)


R_co = TypeVar("R_co", bound=Reply, covariant=True)


@dataclass(frozen=True)
class Agent(Generic[R_co]):
    """
    >>> JUDGE = Agent("judge", load("stardtox/judge"), Verdict)
    """

    role: str
    prompt: Prompt
    reply: type[R_co]
    temperature: float | None = None  # None: the endpoint's own default


@cache
def _schema_of(reply: type[Reply]) -> ReplySchema:
    return ReplySchema(reply.__name__.lower(), _plain(reply.model_json_schema()))


def _plain(schema: Any) -> Any:
    """A schema without titles, which servers count as tokens and nobody reads."""
    if isinstance(schema, dict):
        return {
            key: _plain(value)
            for key, value in schema.items()
            if not (key in ("title", "description") and isinstance(value, str))
        }
    return [_plain(value) for value in schema] if isinstance(schema, list) else schema
