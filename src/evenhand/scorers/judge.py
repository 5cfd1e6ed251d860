"""A language model as a judge of one text, with a prompt of ours and a typed reply: marks that it
writes as JSON, or one digit, weighted by the log-probability of each that it could have been."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.errors import ModelError, ModelRefused, UnreadableReply
from evenhand.models import next_token
from evenhand.models.base import ChatModel, ModelRequest, ReplySchema, Sample
from evenhand.models.next_token import Read
from evenhand.prompts import Prompt, load
from evenhand.scorers.base import TOXICITY, Scores, Unscored, score_each
from evenhand.scorers.guard import failed, paid

_PROMPTS: dict[Read, Prompt] = {
    "json": load("scorers/judge"),
    "logprob": load("scorers/judge_digit"),
}
_DIGITS = {str(mark): mark / 9 for mark in range(10)}  # each is one token in every vocabulary
_LONGEST_REPLY = 300  # tokens
_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)
_Percent = Annotated[int, Field(ge=0, le=100)]
_V = TypeVar("_V", bound=BaseModel)


class Verdict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    reason: Annotated[str, Field(max_length=2_000, json_schema_extra={"maxLength": 240})]
    insult: _Percent
    threat: _Percent
    identity_attack: _Percent
    toxicity: _Percent


_SCHEMA = ReplySchema("verdict", Verdict.model_json_schema())


class Judge:
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

    async def close(self) -> None:
        await self._model.close()

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_each(texts, self._score)

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
        ends = asyncio.get_running_loop().time() + self._seconds
        try:
            reply = await self._model.complete(replace(request, deadline=ends))
            [sample] = reply.samples
            outcome = _written(sample.text) if self._read == "json" else _weighted(sample)
            return paid(outcome, reply)
        except ModelError as error:
            return failed(error)


def _weighted(sample: Sample) -> Scores | Unscored:
    tokens = next_token.likeliest(sample)
    if not tokens:
        return failed(ModelRefused(next_token.NONE_CAME))
    try:
        return Scores({TOXICITY: next_token.weighted(tokens, _DIGITS)})
    except UnreadableReply as problem:
        return Unscored("garbage", f"not the digit asked for: {problem.detail}")


def _written(text: str) -> Scores | Unscored:
    verdict = typed(Verdict, text)
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
