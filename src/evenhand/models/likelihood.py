"""A likelihood model says how likely it finds a text: the log-probability of each of its tokens.

An endpoint gives them if it echoes the prompt: `POST /completions` with `echo`, `logprobs` and one
new token, whose reply holds `tokens` and `token_logprobs` of the prompt first (OpenAI's older API,
vLLM, SGLang). llama.cpp does not echo.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evenhand.core.errors import ModelError, UserError
from evenhand.models.base import ChatModel, ModelReply, ModelRequest

_PROBE = "The sky is blue."
_NO_ECHO = (
    "{name} gives no log-probabilities of a prompt: {why}. Serve the model with vLLM, whose "
    "/completions echoes the prompt, or give its Hugging Face folder with --weights (llama.cpp, "
    "and so `evenhand serve-local`, does not echo)"
)


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """The natural logarithms of the tokens' probabilities, one per token, in order.

    `uncounted` is the first token where a model says nothing about it: it starts from no token of
    its own, so that nothing precedes the first one. None: every token is counted.
    """

    logprobs: tuple[float, ...]
    uncounted: str | None = None

    @property
    def total(self) -> float:
        return math.fsum(self.logprobs)


@dataclass(frozen=True, slots=True)
class LikelihoodFailure:
    """A failure is a text without log-probabilities, and why. It is never a likelihood of 0."""

    reason: str
    message: str


class LikelihoodModel(Protocol):
    @property
    def name(self) -> str: ...

    def describe(self) -> dict[str, Any]:
        """What the run's record keeps of it: no key, no password."""
        ...

    async def log_likelihoods(
        self, texts: Sequence[str]
    ) -> list[TokenLogprobs | LikelihoodFailure]: ...

    def after_another_start(self) -> "LikelihoodModel | None":
        """The same model, reading every text after another start token; None where it has no
        choice."""
        ...

    async def close(self) -> None: ...


class EchoedLikelihood:
    """A likelihood model that has an endpoint echo the text with log-probabilities."""

    def __init__(self, endpoint: ChatModel) -> None:
        self._endpoint = endpoint

    @property
    def name(self) -> str:
        return self._endpoint.name

    def describe(self) -> dict[str, Any]:
        return {**self._endpoint.describe(), "likelihood": "echo"}

    def after_another_start(self) -> None:
        return None  # the server puts what it likes before a text

    async def close(self) -> None:
        await self._endpoint.close()

    async def check(self) -> None:
        """Try one short text: `UserError` if the endpoint does not echo, before a thousand are
        sent."""
        outcome = await self._one(_PROBE)
        if isinstance(outcome, LikelihoodFailure):
            raise UserError(_NO_ECHO.format(name=self.name, why=outcome.message[:300]))

    async def log_likelihoods(
        self, texts: Sequence[str]
    ) -> list[TokenLogprobs | LikelihoodFailure]:
        return await asyncio.gather(*(self._one(text) for text in texts))

    async def _one(self, text: str) -> TokenLogprobs | LikelihoodFailure:
        # One new token and not none: some servers refuse to make none.
        request = ModelRequest(prompt=text, echo=True, logprobs=1, max_tokens=1, temperature=0.0)
        try:
            return _of_prompt(text, await self._endpoint.complete(request))
        except ModelError as error:
            return LikelihoodFailure(error.reason, str(error))


def _of_prompt(text: str, reply: ModelReply) -> TokenLogprobs | LikelihoodFailure:
    sample = reply.samples[0]
    if not sample.text.startswith(text):
        return LikelihoodFailure("not_echoed", "the reply does not begin with the prompt")
    if not sample.logprobs:
        return LikelihoodFailure("no_logprobs", "the reply holds no log-probabilities")
    prompt_tokens = reply.usage.prompt_tokens if reply.usage else len(sample.logprobs) - 1
    tokens = sample.logprobs[:prompt_tokens]
    if not tokens or len(sample.logprobs) < prompt_tokens:
        return LikelihoodFailure(
            "not_echoed", "fewer log-probabilities came than the prompt has tokens"
        )
    first, counted = tokens[0], tokens[tokens[0].logprob is None :]
    values = [token.logprob for token in counted]
    if any(value is None or not math.isfinite(value) for value in values):
        return LikelihoodFailure("no_logprobs", "a token within the prompt has no log-probability")
    # A start token that the server adds is not part of the text: then nothing is left out.
    starts_the_text = bool(first.token) and text.startswith(first.token)
    left_out = first.token if first.logprob is None and starts_the_text else None
    return TokenLogprobs(tuple(value for value in values if value is not None), left_out)
