"""A method answers a sample of Inspect, and says in the sample's store what it did.

A model of Inspect is one of ours: Inspect asks, logs, caches, retries and limits each call.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
    get_model,
)
from inspect_ai.solver import TaskState
from inspect_ai.util import JSONSchema
from pydantic import TypeAdapter, ValidationError

from evenhand.agents import Cast, Limits
from evenhand.core import Item, Turn, Usage
from evenhand.core.errors import ModelRefused, UserError
from evenhand.core.results import Answered, Event
from evenhand.interop.inspect_task import context_and_question
from evenhand.methods import Method
from evenhand.methods import settings as settings_of
from evenhand.methods.build import build_method
from evenhand.models.base import ModelReply, ModelRequest, ReplySchema, Sample, TokenLogprob
from evenhand.runs.runners import ItemList
from evenhand.runs.runners.local import answer_one
from evenhand.runs.runners.plan import RunPlan

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


STORED = "evenhand"  # the name in a sample's store


@dataclass(frozen=True, slots=True)
class MethodSolver:
    """A method with the limits of one sample."""

    method: Method
    limits: Limits

    @classmethod
    def of(
        cls, name: str, limits: Mapping[str, Any] | None, settings: Mapping[str, Any]
    ) -> "MethodSolver":
        """Build a method from what `-S name=value` said of it."""
        return cls(
            build_method(name, [_assigned(*setting) for setting in settings.items()]), _of(limits)
        )

    async def answer(self, state: TaskState) -> None:
        """Answer the sample. One that a method has no answer to is left without, and says why."""
        item = item_of(state)
        plan = RunPlan(
            method=self.method,
            cast=cast_of(self.method),
            source=ItemList([item]),
            limits=self.limits,
        )
        turns: list[Turn] = []
        ended = await answer_one(plan, 0, item, turns.append)
        _put(state, ended)
        state.store.set(
            STORED, {**_did(self.method, ended), "asked": [turn.role for turn in turns]}
        )


def item_of(state: TaskState) -> Item:
    """What a method is asked: the user's last words, and what was said before them."""
    messages = [(message.role, message.text) for message in state.messages]
    user_turns = [index for index, (role, text) in enumerate(messages) if role == "user" and text]
    if not user_turns:
        raise UserError(f"the sample {state.sample_id} has no text to answer")
    context, question = context_and_question(messages.pop(user_turns[-1])[1])
    before = [f"{role}: {text}" for role, text in messages if text]
    return Item(
        id=str(state.sample_id),
        prompt=question,
        context="\n\n".join([*before, context] if context else before),
        choices=tuple(choice.value for choice in state.choices),
    )


def _put(state: TaskState, ended: Event) -> None:
    """Put the answer where Inspect's scorers look for it."""
    if not isinstance(ended, Answered):
        state.output = ModelOutput(model=str(state.model))
        return
    text, choice = ended.answer.text, ended.answer.choice
    if choice is not None:
        for index in range(len(state.choices)):
            state.choices.mark_choice(index, index == choice)
        text = f"ANSWER: {chr(ord('A') + choice)}"
    state.output = ModelOutput.from_content(str(state.model), text)
    state.messages.append(state.output.message)


def _did(method: Method, ended: Event) -> dict[str, Any]:
    did: dict[str, Any] = {
        "method": method.name,
        "settings": settings_of(method),
        "calls": ended.calls,
        "prompt_tokens": ended.prompt_tokens,
        "completion_tokens": ended.completion_tokens,
    }
    if not isinstance(ended, Answered):
        return {**did, "failed": ended.reason, "message": ended.message}
    answer = ended.answer
    return {
        **did,
        "stopped": answer.stopped,
        "outcome": answer.outcome,
        "changed": answer.changed,
        "choice": answer.choice,
        "drafts": [asdict(draft) for draft in answer.drafts],
    }


def _assigned(name: str, value: Any) -> str:
    """A setting as a command line has it; Inspect has made a list of what had commas in it."""
    return f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"


def _of(limits: Mapping[str, Any] | None) -> Limits:
    try:
        return TypeAdapter(Limits).validate_python(dict(limits or {}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UserError(f"limits: {first['loc'][0]}: {first['msg']}") from None
