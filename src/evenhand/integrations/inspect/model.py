"""A model of Inspect as one of ours: Inspect asks, logs, caches, retries and limits each call."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelUsage,
    ResponseSchema,
    get_model,
)
from inspect_ai.util import JSONSchema

from evenhand.agents import Cast
from evenhand.core import Usage
from evenhand.core.errors import ModelRefused
from evenhand.methods import Method
from evenhand.models.base import ModelReply, ModelRequest, ReplySchema, Sample, TokenLogprob

_MESSAGES = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}
_FINISH = {"max_tokens": "length", "model_length": "length"}


def cast_of(method: Method) -> Cast:
    """The model under test plays all roles but those that were given to others by `--model-role`,
    and those that no language model may play."""
    roles = {agent.role for agent in method.agents() if not agent.needs_player}
    return Cast(InspectModel(get_model()), {r: InspectModel(get_model(role=r)) for r in roles})


class InspectModel:
    """A model that Inspect opened. An error of its calls is Inspect's own, and ends the sample as
    any other there: its `--retry-on-error` and `--fail-on-error` decide."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return str(self._model)

    def describe(self) -> dict[str, Any]:
        return {"kind": "inspect", "model": self.name}

    async def close(self) -> None:
        """Leave it open: Inspect closes it."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        if request.prompt is not None:
            raise ModelRefused("a text is to be continued, and a model of Inspect takes messages")
        # Inspect's cache cannot tell a question from the same asked again for another answer.
        again = {"cache": False} if request.occurrence else {}
        messages: list[ChatMessage] = [
            _MESSAGES[message.role](content=message.content) for message in request.messages
        ]
        clock = asyncio.get_running_loop().time
        started_us, started = time.time_ns() // 1000, clock()
        output = await self._model.generate(messages, config=_config(request), **again)
        if len(output.choices) < request.n:
            raise ModelRefused(output.error or f"{len(output.choices)} of {request.n} replies came")
        return ModelReply(
            samples=tuple(map(_sample, output.choices)),
            usage=_usage(output.usage),
            served_by=output.model,
            started_us=started_us,
            seconds=clock() - started,
        )


def _config(request: ModelRequest) -> GenerateConfig:
    return GenerateConfig(
        temperature=request.temperature,
        top_p=request.top_p,
        max_tokens=request.max_tokens,
        num_choices=request.n if request.n > 1 else None,
        seed=request.seed,
        stop_seqs=list(request.stop) or None,
        logprobs=True if request.logprobs is not None else None,
        top_logprobs=request.logprobs,
        response_schema=None if request.schema is None else _form(request.schema),
    )


def _form(schema: ReplySchema) -> ResponseSchema:
    form = JSONSchema.model_validate(_inlined(schema.body, schema.body.get("$defs", {})))
    return ResponseSchema(name=schema.name, json_schema=form, strict=True)


def _inlined(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Put named parts of a schema where they are named: Inspect's schemas have none."""
    if isinstance(part, Mapping):
        if "$ref" in part:
            return _inlined(definitions[part["$ref"].rpartition("/")[2]], definitions)
        return {key: _inlined(child, definitions) for key, child in part.items() if key != "$defs"}
    return [_inlined(child, definitions) for child in part] if isinstance(part, list) else part


def _sample(choice: ChatCompletionChoice) -> Sample:
    logprobs = choice.logprobs and tuple(
        TokenLogprob(
            token.token,
            token.logprob,
            tuple((top.token, top.logprob) for top in token.top_logprobs or ()),
        )
        for token in choice.logprobs.content
    )
    finish = _FINISH.get(choice.stop_reason, choice.stop_reason)
    return Sample(choice.message.text, finish, logprobs)


def _usage(usage: ModelUsage | None) -> Usage | None:
    """All tokens of the prompt, those from a provider's cache too."""
    if usage is None:
        return None
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return Usage(usage.input_tokens + cached, usage.output_tokens)
