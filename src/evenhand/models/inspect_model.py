"""Inspect's models as ours: within Inspect one that it opened, elsewhere any that it knows.

Both take the body of a chat request and give that of a chat answer, so that what a model refuses,
what it thinks and how its reply is read is the same as at an endpoint.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import orjson

from evenhand.core.errors import ModelRefused, UserError
from evenhand.models import wire
from evenhand.models.base import ModelReply, ModelRequest
from evenhand.models.libraries import MOST_AT_ONCE, LibraryModel, missing

try:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessage,
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageTool,
        ChatMessageUser,
        ContentReasoning,
        GenerateConfig,
        Logprobs,
        Model,
        ModelOutput,
        ModelUsage,
        ResponseSchema,
        get_model,
    )
    from inspect_ai.tool import ToolCall, ToolInfo, ToolParams
    from inspect_ai.util import JSONSchema
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "inspect_ai":
        raise
    raise missing("inspect", "Inspect") from None

_MESSAGES = {
    "system": ChatMessageSystem,
    "developer": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}
_FINISH = {"max_tokens": "length", "model_length": "length"}
_RENAMED = {"n": "num_choices", "stop": "stop_seqs"}
_NOT_TOLD = (
    "model",
    "stream",
    "stream_options",
)  # it streams by itself
_USUAL = wire.Dialect()


class InspectModel:
    """A model that Inspect opened. It asks, logs, caches, retries and limits each call, and an
    error of its calls is Inspect's own, and ends the sample as any other there: its
    `--retry-on-error` and `--fail-on-error` decide."""

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
        chat = asked(orjson.loads(wire.encode(request, self.name, _USUAL)))
        clock = asyncio.get_running_loop().time
        started_us, started = time.time_ns() // 1000, clock()
        output = await self._model.generate(
            chat.messages, tools=chat.tools, config=chat.config, **again
        )
        if len(output.choices) < request.n:
            raise ModelRefused(output.error or f"{len(output.choices)} of {request.n} replies came")
        samples, usage, served_by = wire.decode(orjson.dumps(answered(output)), request)
        return ModelReply(
            samples=samples,
            usage=usage,
            served_by=served_by,
            started_us=started_us,
            seconds=clock() - started,
        )


class InspectLibraryModel(LibraryModel):
    """A model by the name that Inspect knows it by, asked outside of Inspect.

    >>> model = evenhand.models.open_by_name("inspect:anthropic/claude-sonnet-4-5")

    The key is the one in the environment that Inspect reads for the provider. What Inspect knows
    that a model refuses it leaves out by itself, and says so on its own console alone.
    """

    library: ClassVar[str] = "inspect"

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        self._asks: Model | None = None
        self._opened()  # at once: a missing key or package is known before anything is asked

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_asks": None}  # its clients belong to this process

    def _opened(self) -> Model:
        if self._asks is None:
            try:
                with contextlib.redirect_stdout(sys.stderr):  # it greets; stdout may be JSON
                    self._asks = get_model(
                        self._known_as,
                        base_url=self._base_url,
                        api_key=self._api_key,
                        config=GenerateConfig(max_retries=0, max_connections=MOST_AT_ONCE),
                        memoize=False,
                    )
            except Exception as error:  # of Inspect, or of the provider's own package
                raise UserError(f"{self.name}: {self._words(error)}") from None
            client: Any = getattr(self._asks.api, "client", None)
            if hasattr(client, "max_retries"):  # OpenAI's and Anthropic's packages
                client.max_retries = 0
        return self._asks

    async def close(self) -> None:
        opened, self._asks = self._asks, None
        if opened is not None:
            await opened.api.aclose()

    async def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        chat = asked(body)
        output = await self._opened().generate(
            chat.messages, tools=chat.tools, config=chat.config, cache=False
        )
        if output.error and not output.choices:
            raise ModelRefused(output.error)
        return answered(output)

    def _may_pass(self, error: Exception) -> bool:
        return bool(self._opened().should_retry(error)) or super()._may_pass(error)


class InspectChat(NamedTuple):
    """What Inspect takes of a chat request."""

    messages: list[ChatMessage]
    tools: list[ToolInfo]
    config: GenerateConfig


def asked(body: Mapping[str, Any]) -> InspectChat:
    """Make the body of a chat request what Inspect takes. A field that it has no name for goes to
    the provider as it is, where Inspect can do that."""
    told = {name: value for name, value in body.items() if name not in _NOT_TOLD}
    fields = {_RENAMED.get(name, name): value for name, value in told.items()}
    sent = fields.pop("messages")
    names = {
        call["id"]: call["function"]["name"]
        for message in sent
        for call in message.get("tool_calls") or ()
    }
    messages = [_message(message, names) for message in sent]
    tools = [_tool(tool["function"]) for tool in fields.pop("tools", ())]
    form = fields.pop("response_format", None)
    known = {name: fields.pop(name) for name in list(fields) if name in GenerateConfig.model_fields}
    if fields:
        known["extra_body"] = {**(known.get("extra_body") or {}), **fields}
    schema = (form or {}).get("json_schema")
    config = GenerateConfig(**known, response_schema=_form(schema) if schema else None)
    return InspectChat(messages, tools, config)


def _message(message: Mapping[str, Any], names: Mapping[str, str]) -> ChatMessage:
    """Write a turn; some providers want the name of a tool beside its result."""
    role, content = message["role"], message["content"]
    if role == "tool":
        called = message["tool_call_id"]
        return ChatMessageTool(content=content, tool_call_id=called, function=names.get(called))
    if calls := message.get("tool_calls"):
        return ChatMessageAssistant(content=content, tool_calls=[_call(call) for call in calls])
    return _MESSAGES[role](content=content)


def _call(call: Mapping[str, Any]) -> ToolCall:
    arguments = wire.arguments_of(call, "Inspect")
    return ToolCall(id=call["id"], function=call["function"]["name"], arguments=arguments)


def _tool(function: Mapping[str, Any]) -> ToolInfo:
    schema = function.get("parameters") or {}
    return ToolInfo(
        name=function["name"],
        description=function.get("description", ""),
        parameters=ToolParams.model_validate(_inlined(schema, schema.get("$defs", {}))),
    )


def _form(schema: Mapping[str, Any]) -> ResponseSchema:
    body = schema["schema"]
    form = JSONSchema.model_validate(_inlined(body, body.get("$defs", {})))
    return ResponseSchema(name=schema["name"], json_schema=form, strict=True)


def _inlined(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Put named parts of a schema where they are named: Inspect's schemas have none."""
    if isinstance(part, Mapping):
        if "$ref" in part:
            return _inlined(definitions[part["$ref"].rpartition("/")[2]], definitions)
        return {key: _inlined(child, definitions) for key, child in part.items() if key != "$defs"}
    return [_inlined(child, definitions) for child in part] if isinstance(part, list) else part


def answered(output: ModelOutput) -> dict[str, Any]:
    """Make what Inspect gives the body of a chat answer."""
    return {
        "model": output.model,
        "choices": [_choice(choice) for choice in output.choices],
        "usage": _usage(output.usage),
    }


def _choice(choice: ChatCompletionChoice) -> dict[str, Any]:
    message = choice.message
    parts = message.content if isinstance(message.content, list) else []
    thought = [_thought(part) for part in parts if isinstance(part, ContentReasoning)]
    return {
        "message": {
            "content": message.text,
            "tool_calls": [
                {"id": call.id, "function": {"name": call.function, "arguments": call.arguments}}
                for call in message.tool_calls or ()
            ],
            "reasoning_content": "\n\n".join(filter(None, thought)) or None,
        },
        "finish_reason": _FINISH.get(choice.stop_reason, choice.stop_reason),
        "logprobs": _logprobs(choice.logprobs),
    }


def _thought(part: ContentReasoning) -> str:
    """The words of a thought; where the provider hides them, its summary."""
    return (part.summary or "") if part.redacted else part.reasoning or part.summary or ""


def _logprobs(logprobs: Logprobs | None) -> dict[str, Any] | None:
    if logprobs is None:
        return None
    return {
        "content": [
            {
                "token": token.token,
                "logprob": token.logprob,
                "top_logprobs": [
                    {"token": top.token, "logprob": top.logprob} for top in token.top_logprobs or ()
                ],
            }
            for token in logprobs.content
        ]
    }


def _usage(usage: ModelUsage | None) -> dict[str, Any] | None:
    """All tokens of the prompt, those from a provider's cache too."""
    if usage is None:
        return None
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return {
        "prompt_tokens": usage.input_tokens + cached,
        "completion_tokens": usage.output_tokens,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
