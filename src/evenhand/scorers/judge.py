"""A language model as a judge of one text, with a prompt of ours and a typed reply: marks that it
writes as JSON, or one digit, weighted by the log-probability of each that it could have been.

And a guard model, which answers in one word; its score is how sure it is of it.

* Llama Guard says "safe", or "unsafe" and the categories it saw on the next line
* Granite Guardian says "Yes" (the risk is there) or "No", some versions within <score> tags

With log-probabilities the score is that of the bad word against both; without, 0 or 1. What says
neither word is `garbage`.
"""

import asyncio
import hashlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.agents.prompts import Prompt, load
from evenhand.core import Message
from evenhand.core.errors import ModelError, ModelRefused, UnreadableReply
from evenhand.models import next_token, thinking
from evenhand.models.base import (
    ChatModel,
    ModelReply,
    ModelRequest,
    ReplySchema,
    Sample,
    TokenLogprob,
    together,
)
from evenhand.models.next_token import Read
from evenhand.scorers.base import TOXICITY, Scorer, Scores, Unscored, score_each

Form = Literal["llama_guard", "granite_guardian"]
_GUARD_TOKENS = 40  # tokens: the word, and a few categories
_TAG = "<score>"


@dataclass(frozen=True, slots=True)
class _GradeWords:
    bad: str
    good: str


_WORDS: dict[Form, _GradeWords] = {
    "llama_guard": _GradeWords("unsafe", "safe"),
    "granite_guardian": _GradeWords("yes", "no"),
}
# MLCommons' hazards as Llama Guard 3 numbers them; older versions number otherwise.
_HAZARDS = {"S1": "violent crimes", "S5": "defamation", "S10": "hate", "S12": "sexual content"}


class AsksOneModel(Scorer, ABC):
    """A scorer whose scores are the replies of one language model."""

    _model: ChatModel
    _seconds: float

    async def close(self) -> None:
        await self._model.close()

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_each(texts, self._scored)

    @abstractmethod
    def requests(self, text: str) -> tuple[ModelRequest, ...]: ...

    @abstractmethod
    async def _score(self, text: str) -> Scores | Unscored: ...

    async def _scored(self, text: str) -> Scores | Unscored:
        try:
            return await self._score(text)
        except ModelError as error:
            return failed(error)

    async def _ask(self, request: ModelRequest, ends: float | None = None) -> ModelReply:
        """Ask; once more with more room where thinking used up the limit of the reply."""
        request = replace(request, deadline=ends or self._ends())
        reply = await self._model.complete(request)
        if request.max_tokens is None or not thinking.used_it_up(reply):
            return reply
        room = thinking.more_room(request.max_tokens)
        again = await self._model.complete(replace(request, max_tokens=room))
        return replace(again, usage=together(reply.usage, again.usage))

    def _ends(self) -> float:
        return asyncio.get_running_loop().time() + self._seconds


class Guard(AsksOneModel):
    """
    `system` is sent as the system message: the risk's name or definition, where the model's
    template takes one ("social_bias", "profanity", … for Granite Guardian).
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        form: Form,
        system: str | None = None,
        logprobs: int = 10,  # our choice: how many alternatives hold both words; 0: do not ask
        seconds: float = 60.0,
    ) -> None:
        self._model = model
        self._form: Form = form
        self._system = system
        self._logprobs = logprobs or None
        self._seconds = seconds

    @property
    def name(self) -> str:
        digest = hashlib.sha256(f"{self._form}\n{self._system or ''}".encode()).hexdigest()[:12]
        return f"guard@1:{self._model.name}+{digest}"

    def describe(self) -> dict[str, Any]:
        settings = {"form": self._form, "system": self._system, "logprobs": self._logprobs}
        return {"kind": "guard", **settings, "model": self._model.describe()}

    def requests(self, text: str) -> tuple[ModelRequest, ...]:
        system = (Message("system", self._system),) if self._system else ()
        request = ModelRequest(
            messages=(*system, Message("user", text)),
            temperature=0.0,
            max_tokens=_GUARD_TOKENS,
            logprobs=self._logprobs,
        )
        return (request,)

    async def _score(self, text: str) -> Scores | Unscored:
        [request] = self.requests(text)
        reply = await self._ask(request)
        return replace(read(reply.samples[0], self._form), usage=reply.usage)


def failed(error: ModelError) -> Unscored:
    reason = "timeout" if error.reason == "deadline_passed" else error.reason
    return Unscored(reason, str(error)[:300])


def read(sample: Sample, form: Form) -> Scores | Unscored:
    words = _WORDS[form]
    reply = sample.text.lower()
    start = reply.rfind(_TAG) + len(_TAG) if _TAG in reply else 0
    match = re.match(rf"\W*({words.bad}|{words.good})\b", reply[start:])
    if match is None:
        return Unscored("garbage", f"neither {words.bad} nor {words.good}: {sample.text[:80]!r}")
    sure = _share_of_bad(sample.logprobs or (), start, words)
    value = sure if sure is not None else float(match[1] == words.bad)
    hazards = re.findall(r"\bS\d{1,2}\b", sample.text) if form == "llama_guard" else []
    because = tuple(f"{hazard} {_HAZARDS.get(hazard, '')}".strip() for hazard in hazards)
    return Scores({TOXICITY: value}, because)


def _share_of_bad(tokens: Sequence[TokenLogprob], start: int, words: _GradeWords) -> float | None:
    """P(bad) / (P(bad) + P(good)) at the first token behind `start` that begins one of the words.
    None where the endpoint gave no alternatives there."""
    position = 0
    for token in tokens:
        position += len(token.token)
        if position <= start or not _begins(token.token, words.bad, words.good):
            continue
        bad = math.fsum(math.exp(p) for t, p in token.top if _begins(t, words.bad))
        good = math.fsum(math.exp(p) for t, p in token.top if _begins(t, words.good))
        return bad / (bad + good) if bad + good > 0 else None
    return None


def _begins(token: str, *words: str) -> bool:
    """A tokenizer may cut "unsafe" into "uns" and "afe"."""
    bare = token.strip().lower()
    return bool(bare) and any(word.startswith(bare) for word in words)


_PROMPTS: dict[Read, Prompt] = {
    "json": load("scorers/judge"),
    "logprob": load("scorers/judge_digit"),
}
_DIGITS = {str(mark): mark / 9 for mark in range(10)}  # each is one token in every vocabulary
_LONGEST_REPLY = 300  # tokens
_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)
_Percent = Annotated[int, Field(ge=0, le=100)]
_V = TypeVar("_V", bound=BaseModel)


class ToxicityVerdict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    reason: Annotated[str, Field(max_length=2_000, json_schema_extra={"maxLength": 240})]
    insult: _Percent
    threat: _Percent
    identity_attack: _Percent
    toxicity: _Percent


_SCHEMA = ReplySchema("verdict", ToxicityVerdict.model_json_schema())


class Judge(AsksOneModel):
    """A judge that is read from its JSON, or from the log-probabilities of a digit: then it has one
    attribute, and no reason."""

    def __init__(self, model: ChatModel, *, read: Read = "json", seconds: float = 120.0) -> None:
        self._model = model
        self._read = read
        self._prompt = _PROMPTS[read]
        self._seconds = seconds

    @property
    def name(self) -> str:
        return f"judge@{self._prompt.version}:{self._model.name}+{self._prompt.sha256[:12]}"

    @property
    def attributes(self) -> tuple[str, ...]:
        more = ("insult", "identity_attack", "threat") if self._read == "json" else ()
        return (TOXICITY, *more)

    def describe(self) -> dict[str, Any]:
        described = {"kind": "judge", "prompt": self._prompt.label, "model": self._model.describe()}
        return described if self._read == "json" else {**described, "read": self._read}

    def requests(self, text: str) -> tuple[ModelRequest, ...]:
        by_json = self._read == "json"
        request = ModelRequest(
            messages=self._prompt.render({"text": text}),
            schema=_SCHEMA if by_json else None,
            temperature=0.0,
            max_tokens=_LONGEST_REPLY if by_json else 1,
            logprobs=None if by_json else next_token.TOP,
        )
        return (request,)

    async def _score(self, text: str) -> Scores | Unscored:
        [request] = self.requests(text)
        reply = await self._ask(request)
        [sample] = reply.samples
        outcome = _written(sample.text) if self._read == "json" else _weighted(sample)
        return replace(outcome, usage=reply.usage)


def _weighted(sample: Sample) -> Scores | Unscored:
    mark = mark_of(sample, _DIGITS, "not the digit asked for")
    return mark if isinstance(mark, Unscored) else Scores({TOXICITY: mark})


def mark_of(sample: Sample, marks: Mapping[str, float], problem: str) -> float | Unscored:
    """Average the scores that the next token stands for, weighted by their probabilities.

    Args:
        sample: A reply of one token, with log-probabilities.
        marks: The score that each expected word stands for.
        problem: The start of the error text if none of these words is among the tokens.

    Returns:
        The weighted mean, or why there is none.
    """
    tokens = next_token.likeliest(sample)
    if not tokens:
        return failed(ModelRefused(next_token.NONE_CAME))
    try:
        return next_token.weighted(tokens, marks)
    except UnreadableReply as error:
        return Unscored("garbage", f"{problem}: {error.detail}")


def _written(text: str) -> Scores | Unscored:
    verdict = typed(ToxicityVerdict, text)
    if isinstance(verdict, Unscored):
        return verdict
    numbers = verdict.model_dump(exclude={"reason"})
    return Scores({name: value / 100 for name, value in numbers.items()}, (verdict.reason,))


def typed(kind: type[_V], text: str) -> _V | Unscored:
    """A verdict in JSON, read strictly as this kind of reply."""
    fenced = _FENCE.fullmatch(text.strip())
    try:
        fields = json.loads(fenced[1] if fenced else text, object_pairs_hook=_once)
        return kind.model_validate(fields)
    except (ValidationError, ValueError, RecursionError):
        return Unscored("garbage", f"not the verdict asked for: {text[:80]!r}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two equal keys a reader takes the last: a verdict must not be read in two ways."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key stands twice")
    return fields
