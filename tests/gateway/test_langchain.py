"""LangChain's own agents with the middleware: what they give, and what their streams show.

The chat model is a real one of langchain_core that streams word by word what a test tells it; only
the team that judges is scripted.
"""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain.agents.structured_output import ProviderStrategy
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import tool
from pydantic import BaseModel

from evenhand.agents import Agent, Ask
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import ModelBusy, UserError
from evenhand.integrations.langchain import HeldBack, RepairAnswers
from evenhand.models.base import ModelRequest as Asked
from evenhand.models.replay import ScriptedModel
from tests.errors import raises_naming
from tests.gateway.speaking import BAD, GOOD, team

WORDS = f"All of them are {BAD} and that is that."
KIND = f"A {GOOD} answer."
ASKED: Any = {"messages": [("user", "Tell me about them.")]}
Streamed = Callable[[Any], list[str]]


class Chat(GenericFakeChatModel):
    """The fake that streams, able to be given tools."""

    def bind_tools(self, tools: Any, **given: Any) -> Any:
        return self


def says(*answers: AIMessage | str) -> Chat:
    told = [AIMessage(one) if isinstance(one, str) else one for one in answers]
    return Chat(messages=iter(told))


def repairs(**given: Any) -> RepairAnswers:
    return RepairAnswers(**{"model": ScriptedModel(team), **given})


def agent(*answers: AIMessage | str, tools: Any = (), middleware: Any = None, **given: Any) -> Any:
    chosen = [repairs(**given)] if middleware is None else middleware
    return create_agent(says(*answers), list(tools), middleware=chosen)


def streamed(made: Any) -> list[str]:
    return [str(message.content) for message, _ in made.stream(ASKED, stream_mode="messages")]


def astreamed(made: Any) -> list[str]:
    async def read() -> list[str]:
        shown = made.astream(ASKED, stream_mode="messages")
        return [str(message.content) async for message, _ in shown]

    return asyncio.run(read())


def invoked(made: Any) -> list[BaseMessage]:
    found: list[BaseMessage] = made.invoke(ASKED)["messages"]
    return found


def ainvoked(made: Any) -> list[BaseMessage]:
    found: list[BaseMessage] = asyncio.run(made.ainvoke(ASKED))["messages"]
    return found


both = pytest.mark.parametrize("stream", [streamed, astreamed])
asked = pytest.mark.parametrize("ask", [invoked, ainvoked])


@both
def test_without_the_middleware_every_word_is_shown_as_it_is_said(stream: Streamed) -> None:
    shown = stream(agent(WORDS, middleware=[]))
    assert "".join(shown) == WORDS
    assert BAD in shown


class OnlyAfterwards(RepairAnswers):
    """The middleware as one would write it first: it leaves the stream as it is."""

    update: dict[str, Any] = {}  # noqa: RUF012 - a test's own

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        model = request.model.model_copy(update=self.update)
        return super().wrap_model_call(request, lambda _: handler(request.override(model=model)))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        model = request.model.model_copy(update=self.update)
        return await super().awrap_model_call(
            request, lambda _: handler(request.override(model=model))
        )


@both
@pytest.mark.parametrize("update", [{}, {"disable_streaming": True}])
def test_a_repair_that_leaves_the_stream_alone_shows_the_bad_words_even_with_streaming_off(
    monkeypatch: pytest.MonkeyPatch, stream: Streamed, update: dict[str, Any]
) -> None:
    monkeypatch.setattr("evenhand.integrations.langchain._unseen", ensure_config)
    monkeypatch.setattr(OnlyAfterwards, "update", update)
    shown = stream(agent(WORDS, middleware=[OnlyAfterwards(model=ScriptedModel(team))]))
    assert BAD in "".join(shown)


@both
def test_not_one_word_of_a_bad_answer_is_shown(stream: Streamed) -> None:
    assert stream(agent(WORDS)) == [KIND]


def test_no_stream_of_another_kind_shows_a_bad_word_either() -> None:
    modes = ["values", "updates", "messages", "custom", "tasks", "debug", "checkpoints"]
    for one in agent(WORDS).stream(ASKED, stream_mode=modes):
        assert BAD not in str(one)


@both
def test_a_model_that_another_middleware_puts_in_is_not_shown_either(stream: Streamed) -> None:
    other = says(WORDS)

    class Switch(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
            return handler(request.override(model=other))

        async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
            return await handler(request.override(model=other))

    assert stream(agent("Not asked.", middleware=[repairs(), Switch()])) == [KIND]


def test_events_have_no_word_by_word_and_the_end_of_the_model_has_its_own_words() -> None:
    """What callbacks are told is for those who run the agent: docs/deploy-gateway.md says so."""

    async def read() -> list[str]:
        events = agent(WORDS).astream_events(ASKED, version="v2")
        return [one["event"] async for one in events if BAD in str(one["data"])]

    assert asyncio.run(read()) == ["on_chat_model_end"]


@asked
def test_a_bad_answer_is_repaired_and_a_good_one_stays_as_it_is(ask: Any) -> None:
    told = AIMessage(WORDS, response_metadata={"logprobs": [{"token": BAD}]},
                     additional_kwargs={"reasoning_content": WORDS})  # fmt: skip
    *_, answer = ask(agent(told))
    assert answer.content == KIND
    assert BAD not in str(answer)
    good = AIMessage("They are people.", additional_kwargs={"kept": 1})
    *_, answer = ask(agent(good))
    assert (answer.content, answer.additional_kwargs) == ("They are people.", {"kept": 1})


@asked
def test_calls_of_tools_go_on_as_they_are_and_words_beside_them_are_repaired(ask: Any) -> None:
    sent = []

    @tool
    def send(text: str) -> str:
        """Send a text."""
        sent.append(text)
        return "sent"

    model = ScriptedModel(team)
    call = {"name": "send", "args": {"text": WORDS}, "id": "c1"}
    alone = AIMessage("", tool_calls=[call])
    messages = ask(agent(alone, "Done.", tools=[send], model=model))
    assert sent == [WORDS]
    assert [type(one) for one in messages[1:]] == [AIMessage, ToolMessage, AIMessage]
    beside = AIMessage([{"type": "text", "text": WORDS}], tool_calls=[{**call, "id": "c2"}])
    _, spoken, *_ = ask(agent(beside, "Done.", tools=[send], model=model))
    assert spoken.content == KIND
    assert [one["args"] for one in spoken.tool_calls] == [{"text": WORDS}]
    assert sent == [WORDS, WORDS]


def dead(request: Asked) -> Any:
    return ModelBusy("nobody is there", attempts=3)


def garbled(request: Asked) -> str:
    return "no JSON"


def severe(request: Asked) -> str:
    """A judge that finds harm in everything."""
    found = '{"reason": "harm", "harm": 99}'
    harm = request.schema is not None and "harm" in request.schema.body["properties"]
    return found if harm else team(request)


def broken(request: Asked) -> str:
    raise ZeroDivisionError(WORDS)


@asked
@pytest.mark.parametrize("script", [dead, garbled, severe, broken])
def test_an_answer_that_is_not_accepted_is_held_back_or_a_stored_text_stands_in_its_place(
    ask: Any, script: Any
) -> None:
    model = ScriptedModel(script)
    for answer in (WORDS, "They are people."):
        with pytest.raises(HeldBack) as held:
            ask(agent(answer, model=model))
        assert answer not in str(held.value)
        *_, said = ask(agent(answer, model=model, instead="We cannot say."))
        assert said.content == "We cannot say."


class Row(BaseModel):
    said: str


def test_a_structured_answer_that_would_change_is_held_back() -> None:
    def made(text: str) -> Any:
        told = says(f'{{"said": "{text}"}}')
        return create_agent(told, [], middleware=[repairs()], response_format=ProviderStrategy(Row))

    assert made("fine").invoke(ASKED)["structured_response"] == Row(said="fine")
    with raises_naming(HeldBack, "structured"):
        made(BAD).invoke(ASKED)


@asked
def test_a_method_that_does_not_begin_from_the_answer_is_refused(ask: Any) -> None:
    with raises_naming(UserError, "'default'", "stardtox"):
        ask(agent(WORDS, method="default", instead="We cannot say."))


def test_the_team_is_told_the_last_question_and_what_was_said_before_it() -> None:
    items = []

    @dataclass(frozen=True)
    class Reads:
        name: ClassVar[str] = "reads"

        def agents(self) -> tuple[Agent[Any], ...]:
            return ()

        async def answer(self, item: Item, ask: Ask) -> Answer:
            items.append(item)
            return Answer(drafts=(Draft(text=item.answer or ""),), stopped="accepted")

    before: Any = [("user", "First."), ("ai", "Before."), ("user", "Second."), ("ai", "Again.")]
    made = create_agent(says(WORDS), [], system_prompt="Be brief.",
                        middleware=[repairs(method=Reads())])  # fmt: skip
    asked: Any = {"messages": before}
    made.invoke(asked)
    context = "system: Be brief.\n\nhuman: First.\n\nai: Before.\n\nai: Again."
    assert items == [Item(id="0", prompt="Second.", context=context, answer=WORDS)]


def test_without_langchain_the_import_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['langchain'] = None\n"
        "try:\n    import evenhand.integrations.langchain\n"
        "except ImportError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'evenhand[langchain]'" in ran.stdout, ran.stderr
