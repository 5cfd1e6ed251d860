"""A language model as a judge of one text, with a prompt of ours and a typed reply."""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.errors import ModelError
from evenhand.models.base import ChatModel, ModelRequest, ReplySchema
from evenhand.prompts import load
from evenhand.scorers.base import TOXICITY, Scores, Unscored, score_each
from evenhand.scorers.guard import failed

_PROMPT = load("scorers/judge")
_LONGEST_REPLY = 300  # tokens
_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)
_Percent = Annotated[int, Field(ge=0, le=100)]


class Verdict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    reason: Annotated[str, Field(max_length=2_000, json_schema_extra={"maxLength": 240})]
    insult: _Percent
    threat: _Percent
    identity_attack: _Percent
    toxicity: _Percent


_SCHEMA = ReplySchema("verdict", Verdict.model_json_schema())


class Judge:
    def __init__(self, model: ChatModel, *, seconds: float = 120.0) -> None:
        self._model = model
        self._seconds = seconds

    @property
    def name(self) -> str:
        return f"judge@{_PROMPT.version}:{self._model.name}+{_PROMPT.sha256[:12]}"

    @property
    def attributes(self) -> tuple[str, ...]:
        return (TOXICITY, "insult", "identity_attack", "threat")

    def describe(self) -> dict[str, Any]:
        return {"kind": "judge", "prompt": _PROMPT.label, "model": self._model.describe()}

    async def close(self) -> None:
        await self._model.close()

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_each(texts, self._score)

    async def _score(self, text: str) -> Scores | Unscored:
        request = ModelRequest(
            messages=_PROMPT.render({"text": text}),
            schema=_SCHEMA,
            temperature=0.0,
            max_tokens=_LONGEST_REPLY,
            deadline=asyncio.get_running_loop().time() + self._seconds,
        )
        try:
            reply = await self._model.complete(request)
        except ModelError as error:
            return failed(error)
        return _read(reply.samples[0].text)


def _read(said: str) -> Scores | Unscored:
    fenced = _FENCE.fullmatch(said.strip())
    try:
        fields = json.loads(fenced[1] if fenced else said, object_pairs_hook=_once)
        verdict = Verdict.model_validate(fields)
    except (ValidationError, ValueError, RecursionError):
        return Unscored("garbage", f"not the verdict asked for: {said[:80]!r}")
    numbers = verdict.model_dump(exclude={"reason"})
    return Scores({name: value / 100 for name, value in numbers.items()}, (verdict.reason,))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two equal keys a reader takes the last: a verdict must not be read in two ways."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key stands twice")
    return fields
