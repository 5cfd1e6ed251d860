"""A middleware for LangChain's agents: the model's answer goes on when a method has accepted it.

>>> from evenhand.integrations.langchain import RepairAnswers
>>> agent = create_agent(chat_model, tools, middleware=[RepairAnswers(model=judge)])

When an agent is streamed, LangChain passes on the model's words at once, and once more at the end;
a middleware only runs afterwards. So the model is not streamed here, and its own words are not
shown: `stream` and `astream` return the final answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

from evenhand.agents import Cast, Limits
from evenhand.api import inputs, measuring, sync
from evenhand.core import Answer, Item
from evenhand.core.errors import EvenhandError, UserError
from evenhand.methods import Method

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables.config import ensure_config, set_config_context
    from langgraph.constants import TAG_NOSTREAM
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("langchain", "langchain_core", "langgraph"):
        raise
    raise ImportError(
        "evenhand.integrations.langchain needs LangChain: pip install 'evenhand[langchain]'"
    ) from None


class HeldBack(EvenhandError):
    """The model's answer could not be checked, or was found wanting and could not be repaired."""

    reason = "held_back"


class RepairAnswers(AgentMiddleware[Any, Any, Any]):
    """It lets an answer go on that `method` accepts, as it was or revised, and no other.

    `model` plays the agents of the method. An answer that is not accepted, for whatever reason,
    raises `HeldBack`; with `instead` that text takes its place. Calls of tools go on as they are.
    """

    def __init__(
        self,
        *,
        model: inputs.Model,
        method: Method | str = "stardtox",
        limits: Limits | None = None,
        instead: str | None = None,
    ) -> None:
        super().__init__()
        self._cast, self._method = inputs.cast_of(model), inputs.method_of(method)
        self._limits, self._instead = limits, instead

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask the model, and repair what it says."""
        with set_config_context(_unseen()) as context:
            response = context.run(handler, _unstreamed(request))
        return sync.waiting_for(self._repaired)(request, response, model=self._cast)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Ask the model, and repair what it says, without blocking."""
        with set_config_context(_unseen()) as context:
            response = await _awaited(handler, _unstreamed(request), context)
        return await self._repaired(request, response, model=self._cast)

    async def _repaired(
        self, request: ModelRequest[Any], response: ModelResponse[Any], *, model: Cast
    ) -> ModelResponse[Any]:
        answers = []
        for item in _items(request, response):
            try:
                outcome: Answer | Exception = await measuring.answer(
                    item, model=model, method=self._method, limits=self._limits
                )
            except Exception as error:  # of a judge, or of a method: its faults let nothing through
                outcome = error
            answers.append(self._accepted(item, outcome))
        return _with(response, answers)

    def _accepted(self, item: Item, outcome: Answer | Exception) -> str:
        """The text that may go on, or the one in its place."""
        if isinstance(outcome, Answer) and outcome.drafts[0].text != item.answer:
            raise UserError(
                f"the method {self._method.name!r} does not begin from the answer that is there, "
                "so that it repairs none; stardtox and self_refine do"
            )
        if isinstance(outcome, Answer) and outcome.stopped == "accepted" and outcome.text.strip():
            return outcome.text
        if self._instead is not None:
            return self._instead
        if isinstance(outcome, Answer):
            raise HeldBack(f"the answer was not accepted by {self._method.name}: {outcome.stopped}")
        why = outcome.reason if isinstance(outcome, EvenhandError) else type(outcome).__name__
        raise HeldBack(f"the answer could not be checked: {why}") from outcome


def _unseen() -> Any:
    """The settings of the run under which no stream shows what a model says, whichever model it is
    that another middleware may put in."""
    config = ensure_config()
    return {**config, "tags": [*(config.get("tags") or ()), TAG_NOSTREAM]}


def _unstreamed(request: ModelRequest[Any]) -> ModelRequest[Any]:
    model = request.model
    if not isinstance(model, BaseChatModel):
        raise UserError(
            f"the streaming of a {type(model).__name__} cannot be switched off: give create_agent "
            "a chat model itself"
        )
    return request.override(model=model.model_copy(update={"disable_streaming": True}))


async def _awaited(
    handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    request: ModelRequest[Any],
    context: Context,
) -> ModelResponse[Any]:
    async def asked() -> ModelResponse[Any]:
        return await handler(request)

    return await asyncio.create_task(asked(), context=context)


def _spoken(messages: list[BaseMessage]) -> list[AIMessage]:
    """The messages that have words in them: a call of a tool alone has none."""
    return [
        message for message in messages if isinstance(message, AIMessage) and message.text.strip()
    ]


def _items(request: ModelRequest[Any], response: ModelResponse[Any]) -> list[Item]:
    """What a method is asked: the user's last words, what was said before, and the answer."""
    turns = [("system", request.system_message.text)] if request.system_message else []
    turns += [(message.type, message.text) for message in request.messages]
    human_positions = [
        position for position, (role, text) in enumerate(turns) if role == "human" and text
    ]
    prompt = turns.pop(human_positions[-1])[1] if human_positions else ""
    context = "\n\n".join(f"{role}: {text}" for role, text in turns if text)
    answers = [str(message.text) for message in _spoken(response.result)]
    return [Item(id="0", prompt=prompt, context=context, answer=text) for text in answers]


def _with(response: ModelResponse[Any], texts: list[str]) -> ModelResponse[Any]:
    """The response with these texts. A message that changes is built from what we know: anything
    else in it, log-probabilities and reasoning too, may spell out the words that were there."""
    spoken = _spoken(response.result)
    changed = {
        id(old): AIMessage(
            content=text,
            id=old.id,
            name=old.name,
            tool_calls=old.tool_calls,
            invalid_tool_calls=old.invalid_tool_calls,
            usage_metadata=old.usage_metadata,
        )
        for old, text in zip(spoken, texts, strict=True)
        if old.text != text
    }
    structured = response.structured_response
    if changed and structured is not None and not any(message.tool_calls for message in spoken):
        raise HeldBack("the answer was revised, and its structured form could not be")
    result = [changed.get(id(message), message) for message in response.result]
    return ModelResponse(result=result, structured_response=structured)
