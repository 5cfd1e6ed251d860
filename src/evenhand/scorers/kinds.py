"""The kinds of scorers that a config file can name, and how one is built.

[scorers.moderation]
kind = "openai_moderation"

[scorers.guard]
kind = "guard"
base_url = "http://127.0.0.1:8080/v1"
model = "llama-guard3"
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.models import Endpoint
from evenhand.models.endpoint import RemoteModel
from evenhand.models.keys import KeyPlace, key_place, origin
from evenhand.models.libraries import library_of, open_by_name
from evenhand.models.next_token import Read
from evenhand.scorers import services
from evenhand.scorers.base import Canonicalised, Scorer
from evenhand.scorers.classifier import LABELS, Classifier
from evenhand.scorers.judge import Form, Guard, Judge
from evenhand.scorers.offline import OfflineScorer
from evenhand.scorers.offline.staged import StagedScorer
from evenhand.scorers.regard import RegardScorer
from evenhand.scorers.services import HttpGuardrail, OpenAIModeration, Perspective
from evenhand.scorers.wordlist import WordList


def offline() -> Scorer:
    """Make the offline scorer as it is offered by name.

    Of 200 toxic prompts in leetspeak it keeps 87% alone and 100% when it reads both ways; 95% if
    words that become digits alone ("455") are changed too.
    """
    return Canonicalised(OfflineScorer())


def staged() -> Scorer:
    """Make the staged scorer as it is offered by name."""
    return Canonicalised(StagedScorer())


BUILT_IN: Mapping[str, Callable[[], Scorer]] = {
    "offline": offline,
    "staged": staged,
    "wordlist": WordList,
    "regard": RegardScorer,
}
# What a score of each says, in a few words.
SAYS: Mapping[str, str] = {
    "offline": "how toxic a text is, by a small network",
    "staged": "as offline, behind a fast first stage: for screens",
    "wordlist": "how toxic a text is, by a few dozen insults",
    "regard": "how ill a text speaks of whom it is about",
}


_Seconds = Annotated[float, Field(gt=0)]
_Labels = dict[str, tuple[str, ...]]


class ScorerKind(BaseModel, ABC):
    """The settings of one kind of scorer, and how a scorer is built from them. A kind of another
    package is a subclass that is registered under the one value of its field `kind`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    address: ClassVar[str] = "url"  # the field that stands behind "=" in KIND=ADDRESS
    kind: str
    canonical: bool = False  # read each text a second time with Unicode tricks undone
    api_key_env: str | None = None  # None: the usual variable of its address, if that has one
    usual_keys: ClassVar[Mapping[str, str]] = {}  # origin: variable
    seconds: _Seconds = 60.0  # a call with all its tries

    @abstractmethod
    def scorer(self, key: str | None) -> Scorer: ...

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if getattr(self, self.address, None) == "":
            raise PydanticCustomError("empty", "the {field} is empty", {"field": self.address})
        return self

    def key_place(self, default: Mapping[str, str]) -> KeyPlace | None:
        """Which variable's key is sent where. `default` is the default model's origin and key."""
        address = str(getattr(self, self.address, None) or "")  # a scorer without one sends nothing
        return key_place(address, self.api_key_env, {**default, **self.usual_keys})


class ModerationConfig(ScorerKind):
    kind: Literal["openai_moderation"]
    url: str = services.MODERATION_URL
    model: str = services.MODERATION_MODEL
    usual_keys: ClassVar[Mapping[str, str]] = {origin(services.MODERATION_URL): "OPENAI_API_KEY"}
    labels: _Labels = dict(services.MODERATION_LABELS)

    def scorer(self, key: str | None) -> Scorer:
        return OpenAIModeration(
            self.url, model=self.model, key=key, labels=self.labels, seconds=self.seconds
        )


class PerspectiveConfig(ScorerKind):
    kind: Literal["perspective"]
    url: str
    usual_keys: ClassVar[Mapping[str, str]] = {origin(services.GOOGLES): "PERSPECTIVE_API_KEY"}

    def scorer(self, key: str | None) -> Scorer:
        return Perspective(self.url, key=key, seconds=self.seconds)


class ClassifierConfig(ScorerKind):
    address: ClassVar[str] = "source"
    kind: Literal["classifier"]
    source: str  # a folder, or a name on the hub
    revision: str | None = None
    labels: _Labels = dict(LABELS)

    def scorer(self, key: str | None) -> Scorer:
        del key
        return Classifier(self.source, revision=self.revision, labels=self.labels)


class ChatScorerKind(ScorerKind):
    """A scorer that asks a chat model: at an endpoint, or by the library that the model names."""

    address: ClassVar[str] = "base_url"
    base_url: str | None = None  # None: the library knows where its provider is
    model: str

    @model_validator(mode="after")
    def _is_reached(self) -> Self:
        if not self.base_url and not library_of(self.model):
            raise PydanticCustomError("nowhere", "base_url: Field required")
        return self

    @property
    def library_url(self) -> str | None:
        """The address that a library sends to, where one is named."""
        return self.base_url if library_of(self.model) else None

    def asked(self, key: str | None) -> RemoteModel:
        """The model that is asked."""
        if library_of(self.model):
            return open_by_name(self.model, base_url=self.base_url, api_key=key)
        return Endpoint(self.base_url or "", model=self.model, api_key=key)


class GuardConfig(ChatScorerKind):
    kind: Literal["guard"]
    form: Form = "llama_guard"
    system: str | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] = 10

    def scorer(self, key: str | None) -> Scorer:
        return Guard(
            self.asked(key),
            form=self.form,
            system=self.system,
            logprobs=self.logprobs,
            seconds=self.seconds,
        )


class JudgeConfig(ChatScorerKind):
    kind: Literal["judge"]
    read: Read = "json"
    seconds: _Seconds = 120.0

    def scorer(self, key: str | None) -> Scorer:
        return Judge(self.asked(key), read=self.read, seconds=self.seconds)


class HttpConfig(ScorerKind):
    kind: Literal["http"]
    url: str
    text_field: str = "text"
    score_field: str = "score"

    def scorer(self, key: str | None) -> Scorer:
        return HttpGuardrail(
            self.url,
            text_field=self.text_field,
            score_field=self.score_field,
            key=key,
            seconds=self.seconds,
        )


def read(config: Any) -> Any:
    """A scorer of the config, held to the settings of its own kind."""
    if not isinstance(config, Mapping):
        return config
    try:
        return _kind(str(config.get("kind", ""))).model_validate(config)
    except UserError as problem:
        raise PydanticCustomError("kind", "kind: {problem}", {"problem": str(problem)}) from None
    except ValidationError as error:
        raise PydanticCustomError("settings", "{problem}", {"problem": _first(error)}) from None


def said_as(name: str) -> str:
    """How a kind is said on the spot: by its name, and with its address and its model where it must
    have them."""
    kind = _kind(name)
    needs = [key for key, field in kind.model_fields.items() if field.is_required()]
    if needs == ["kind"]:
        return name
    return f"{name}={kind.address.upper()}" + ("#MODEL" if "model" in needs else "")


def _kind(name: str) -> type[ScorerKind]:
    kind = registry.load("scorers", name)
    if not (isinstance(kind, type) and issubclass(kind, ScorerKind)):
        raise UserError(f"the kind of scorer {name!r} is not made as one: subclass ScorerKind")
    return kind


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")


ScorerConfig = Annotated[ScorerKind, BeforeValidator(read)]


def build(config: ScorerKind, environment: Mapping[str, str], default: Mapping[str, str]) -> Scorer:
    location = config.key_place(default)
    scorer = config.scorer(environment.get(location.variable) if location else None)
    return Canonicalised(scorer) if config.canonical else scorer


def spoken(spec: str) -> ScorerKind:
    """A scorer said on the spot: KIND=ADDRESS; behind a chat endpoint KIND=URL#MODEL; by a library
    KIND=litellm:PROVIDER/MODEL; and KIND alone where nothing more has to be known."""
    name, separator, address = spec.partition("=")
    url, _, model = address.partition("#")
    kind = _kind(name)
    by_library = library_of(address) and not address.startswith(("http:", "https:"))
    if by_library and issubclass(kind, ChatScorerKind):
        return kind.model_validate({"kind": name, "model": address})
    fields = {"kind": name, **({kind.address: url} if separator else {})}
    fields |= {"model": model} if model else {}
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise UserError(
            f"{name}=…: {_first(error)}. Write KIND=URL, or KIND=URL#MODEL for a chat endpoint; "
            f"kinds: {', '.join(registry.names('scorers'))}"
        ) from None
