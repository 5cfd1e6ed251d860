"""A guard model behind a chat endpoint: it answers in one word, and its score is how sure it is.

* Llama Guard says "safe", or "unsafe" and the categories it saw on the next line
* Granite Guardian says "Yes" (the risk is there) or "No", some versions within <score> tags

With log-probabilities the score is that of the bad word against both; without, 0 or 1. What says
neither word is `garbage`.
"""

import asyncio
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evenhand.domain import Message
from evenhand.errors import ModelError
from evenhand.models.base import ChatModel, ModelReply, ModelRequest, Sample, TokenLogprob
from evenhand.scorers.base import TOXICITY, Scores, Unscored, score_each

Form = Literal["llama_guard", "granite_guardian"]
_LONGEST_REPLY = 40  # tokens: the word, and a few categories
_TAG = "<score>"


@dataclass(frozen=True, slots=True)
class _Words:
    bad: str
    good: str


_WORDS: dict[Form, _Words] = {
    "llama_guard": _Words("unsafe", "safe"),
    "granite_guardian": _Words("yes", "no"),
}
# MLCommons' hazards as Llama Guard 3 numbers them; older versions number otherwise.
_HAZARDS = {"S1": "violent crimes", "S5": "defamation", "S10": "hate", "S12": "sexual content"}


class Guard:
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

    @property
    def attributes(self) -> tuple[str, ...]:
        return (TOXICITY,)

    def describe(self) -> dict[str, Any]:
        settings = {"form": self._form, "system": self._system, "logprobs": self._logprobs}
        return {"kind": "guard", **settings, "model": self._model.describe()}

    async def close(self) -> None:
        await self._model.close()

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_each(texts, self._score)

    def requests(self, text: str) -> tuple[ModelRequest, ...]:
        system = (Message("system", self._system),) if self._system else ()
        request = ModelRequest(
            messages=(*system, Message("user", text)),
            temperature=0.0,
            max_tokens=_LONGEST_REPLY,
            logprobs=self._logprobs,
        )
        return (request,)

    async def _score(self, text: str) -> Scores | Unscored:
        [request] = self.requests(text)
        ends = asyncio.get_running_loop().time() + self._seconds
        try:
            reply = await self._model.complete(replace(request, deadline=ends))
        except ModelError as error:
            return failed(error)
        return paid(read(reply.samples[0], self._form), reply)


def failed(error: ModelError) -> Unscored:
    reason = "timeout" if error.reason == "deadline_passed" else error.reason
    return Unscored(reason, str(error)[:300])


def paid(outcome: Scores | Unscored, reply: ModelReply) -> Scores | Unscored:
    """Give the outcome, readable or not, with the tokens that the language model took for it."""
    return replace(outcome, usage=reply.usage)


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


def _share_of_bad(tokens: Sequence[TokenLogprob], start: int, words: _Words) -> float | None:
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
