"""The kinds of scorers that a config file can name, and how one is built.

[scorers.moderation]
kind = "openai_moderation"

[scorers.guard]
kind = "guard"
base_url = "http://127.0.0.1:8080/v1"
model = "llama-guard3"
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from evenhand.errors import UserError
from evenhand.models import Endpoint
from evenhand.scorers import openai_moderation
from evenhand.scorers.base import Scorer
from evenhand.scorers.canonical import Canonicalised
from evenhand.scorers.classifier import LABELS, Classifier
from evenhand.scorers.guard import Form, Guard
from evenhand.scorers.http_guardrail import HttpGuardrail
from evenhand.scorers.judge import Judge
from evenhand.scorers.openai_moderation import OpenAIModeration
from evenhand.scorers.perspective import Perspective

_Seconds = Annotated[float, Field(gt=0)]
_Labels = dict[str, tuple[str, ...]]


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    canonical: bool = False  # read each text a second time with Unicode tricks undone
    api_key_env: str = "EVENHAND_API_KEY"
    seconds: _Seconds = 60.0  # a call with all its tries


class ModerationConfig(_Config):
    kind: Literal["openai_moderation"]
    url: str = openai_moderation.URL
    model: str = openai_moderation.MODEL
    api_key_env: str = "OPENAI_API_KEY"
    labels: _Labels = dict(openai_moderation.LABELS)

    def scorer(self, key: str | None) -> Scorer:
        return OpenAIModeration(
            self.url, model=self.model, key=key, labels=self.labels, seconds=self.seconds
        )


class PerspectiveConfig(_Config):
    kind: Literal["perspective"]
    url: str
    api_key_env: str = "PERSPECTIVE_API_KEY"

    def scorer(self, key: str | None) -> Scorer:
        return Perspective(self.url, key=key, seconds=self.seconds)


class ClassifierConfig(_Config):
    kind: Literal["classifier"]
    source: str  # a folder, or a name on the hub
    revision: str | None = None
    labels: _Labels = dict(LABELS)

    def scorer(self, key: str | None) -> Scorer:
        del key
        return Classifier(self.source, revision=self.revision, labels=self.labels)


class GuardConfig(_Config):
    kind: Literal["guard"]
    base_url: str
    model: str
    form: Form = "llama_guard"
    system: str | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] = 10

    def scorer(self, key: str | None) -> Scorer:
        return Guard(
            Endpoint(self.base_url, model=self.model, api_key=key),
            form=self.form,
            system=self.system,
            logprobs=self.logprobs,
            seconds=self.seconds,
        )


class JudgeConfig(_Config):
    kind: Literal["judge"]
    base_url: str
    model: str
    seconds: _Seconds = 120.0

    def scorer(self, key: str | None) -> Scorer:
        endpoint = Endpoint(self.base_url, model=self.model, api_key=key)
        return Judge(endpoint, seconds=self.seconds)


class HttpConfig(_Config):
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


ScorerConfig = Annotated[
    ModerationConfig
    | PerspectiveConfig
    | ClassifierConfig
    | GuardConfig
    | JudgeConfig
    | HttpConfig,
    Field(discriminator="kind"),
]
_ADAPTER: TypeAdapter[ScorerConfig] = TypeAdapter(ScorerConfig)
KINDS = ("openai_moderation", "perspective", "classifier", "guard", "judge", "http")
_CHAT = ("guard", "judge")


def build(config: ScorerConfig, environment: Mapping[str, str]) -> Scorer:
    scorer = config.scorer(environment.get(config.api_key_env))
    return Canonicalised(scorer) if config.canonical else scorer


def spoken(said: str) -> ScorerConfig:
    """A scorer said on the spot, as KIND=ADDRESS or, behind a chat endpoint, KIND=URL#MODEL."""
    kind, _, address = said.partition("=")
    url, _, model = address.partition("#")
    place = "base_url" if kind in _CHAT else "source" if kind == "classifier" else "url"
    fields = {"kind": kind, place: url, **({"model": model} if model else {})}
    try:
        return _ADAPTER.validate_python(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{kind}=…: {where}: {first['msg']}. Write KIND=URL, or KIND=URL#MODEL for a chat "
            f"endpoint; kinds: {', '.join(KINDS)}"
        ) from None
