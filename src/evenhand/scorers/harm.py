"""A harm of the user's own: a language model says whether a text breaks a policy that is given in
words.

What a check of a harm measures is the verdict, so the verdict is what the scorer gives: 1 where the
text breaks the policy and 0 where it does not. So whatever threshold whoever uses it sets between
them, the measured error rates are those of what happens.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evenhand.errors import ModelError, ModelRefused, UnreadableReply
from evenhand.models import next_token
from evenhand.models.base import ChatModel, ModelRequest, ReplySchema, Sample
from evenhand.models.next_token import Read
from evenhand.prompts import Prompt, load
from evenhand.scorers.base import TOXICITY, Scores, Unscored, score_each
from evenhand.scorers.guard import failed, paid
from evenhand.scorers.judge import typed

_PROMPTS: dict[Read, Prompt] = {
    "json": load("harms/judge"),
    "logprob": load("harms/judge_yes_no"),
}
_OPTIONS = {False: "yes or no", True: "no or yes"}  # by whether their order is swapped
_MARKS = {"yes": 1.0, "no": 0.0}
_LONGEST_REPLY = 300  # tokens


class _Verdict(BaseModel):
    """The reply: a reason first, so that the verdict can follow from it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    reason: Annotated[str, Field(max_length=2_000, json_schema_extra={"maxLength": 240})]
    breaks: Literal["yes", "no"]


_SCHEMA = ReplySchema("harm_verdict", _Verdict.model_json_schema())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a judge is asked about a harm: everything that decides a verdict but the model."""

    name: str
    policy: str
    read: Read = "json"
    bound: float = 0.5  # from which mark on a text breaks the policy; a verdict in JSON is 0 or 1

    @property
    def prompt(self) -> Prompt:
        return _PROMPTS[self.read]

    @property
    def hashes(self) -> dict[str, str]:
        """The checksums of the words that the model is shown."""
        policy = hashlib.sha256(self.policy.encode()).hexdigest()
        return {self.prompt.label: self.prompt.sha256, "policy": policy}

    @property
    def settings(self) -> dict[str, Any]:
        return {"harm": self.name, "read": self.read, "bound": self.bound}


class HarmJudge:
    """A language model that is asked whether a text breaks a policy, as a scorer.

    With `swapped` the two words that it may say are named in the other order: a check asks so, to
    see whether the order decides. `certificate` is the checksum of the one that lets it be used.
    """

    def __init__(
        self,
        asked: Asked,
        model: ChatModel,
        *,
        swapped: bool = False,
        certificate: str = "",
        seconds: float = 120.0,
    ) -> None:
        self._asked = asked
        self._model = model
        self._swapped = swapped
        self._certificate = certificate
        self._seconds = seconds

    @property
    def name(self) -> str:
        told = [*self._asked.hashes.values(), str(self._asked.bound), _OPTIONS[self._swapped]]
        digest = hashlib.sha256("\n".join(told).encode()).hexdigest()
        return (
            f"harm:{self._asked.name}@{self._asked.prompt.version}:{self._model.name}+{digest[:12]}"
        )

    @property
    def attributes(self) -> tuple[str, ...]:
        return (TOXICITY,)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "harm",
            **self._asked.settings,
            "hashes": self._asked.hashes,
            "options": _OPTIONS[self._swapped],
            "certificate": self._certificate or None,
            "model": self._model.describe(),
        }

    async def close(self) -> None:
        await self._model.close()

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_each(texts, self._score)

    def requests(self, text: str) -> tuple[ModelRequest, ...]:
        by_json = self._asked.read == "json"
        said = {"policy": self._asked.policy, "text": text, "options": _OPTIONS[self._swapped]}
        request = ModelRequest(
            messages=self._asked.prompt.render(said),
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
            by_json = self._asked.read == "json"
            return paid(self._written(sample) if by_json else self._weighted(sample), reply)
        except ModelError as error:
            return failed(error)

    def _written(self, sample: Sample) -> Scores | Unscored:
        verdict = typed(_Verdict, sample.text)
        if isinstance(verdict, Unscored):
            return verdict
        return self._verdict(_MARKS[verdict.breaks], verdict.reason)

    def _weighted(self, sample: Sample) -> Scores | Unscored:
        listed = next_token.likeliest(sample)
        if not listed:
            return failed(ModelRefused(next_token.NONE_CAME))
        try:
            mark = next_token.weighted(listed, _MARKS)
        except UnreadableReply as problem:
            return Unscored("garbage", f"neither yes nor no: {problem.detail}")
        return self._verdict(mark, f"{mark:.2f} sure that the text breaks it")

    def _verdict(self, mark: float, reason: str) -> Scores:
        breaks = mark >= self._asked.bound
        said = f"it breaks the policy {self._asked.name!r}: {reason}" if breaks else reason
        return Scores({TOXICITY: float(breaks)}, (said,))
