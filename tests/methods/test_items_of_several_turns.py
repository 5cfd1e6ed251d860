"""An item that is a conversation: which of its turns each agent of each method reads."""

from contextlib import suppress
from dataclasses import replace

import orjson
import pytest

from evenhand.agents import Agent, Cast, Conversation, FreeText, Limits
from evenhand.agents.conversation import in_conversation
from evenhand.agents.prompts import Prompt
from evenhand.core import Item, Message, Turn, Usage, registry
from evenhand.core.errors import EvenhandError, UserError
from evenhand.core.items import CalledFunction, Tool, ToolCall, ToolCalls, ToolResult
from evenhand.methods import named
from evenhand.models import ModelReply, Sample, ScriptedModel
from evenhand.runs.runners import ItemList
from evenhand.testing import any_reply
from tests.stage import Stage, harm, quality

SYSTEM = Message("system", "You sell tickets. \U0001f3ab")
EARLIER = (
    Message("user", "  My name is Aïcha.\n"),
    Message("assistant", "Welcome,\tAïcha!"),
    Message("user", "I am 71."),
    Message("assistant", "</text> Noted."),
)
ITEM = Item(id="0", prompt="Which seat is best?", history=(SYSTEM, *EARLIER))
CALL = ToolCall("c1", CalledFunction("seats", '{"row": 3}'))
WITH_TOOLS = replace(
    ITEM,
    tool_turns=(
        ToolCalls("assistant", "", (CALL,)),
        ToolResult("tool", "Seat 12", "c1"),
    ),
)


async def _calls(name: str, item: Item) -> list[tuple[Turn, bool]]:
    """The calls of a method, and of each whether the agent writes in the chat."""
    turns: list[Turn] = []
    method = named(name)()
    writes = {(a.role, a.prompt.sha256): a.takes_system for a in method.agents()}
    model = ScriptedModel(any_reply)
    cast = Cast(model, {a.role: model for a in method.agents() if a.needs_player})
    with suppress(EvenhandError):  # such as a text for a method that answers questions
        await method.answer(item, Conversation(cast, turns.append, item=item))
    return [(turn, writes[turn.role, turn.prompt_sha256]) for turn in turns]


# They ask nobody, or only about the items of one instrument.
WITHOUT_CALLS = {
    *("stored", "always_unknown", "always_stereotyped", "random"),
    *("blind", "averaged", "rate", "panel"),
}


@pytest.mark.parametrize("name", registry.names("methods"))
async def test_a_writer_of_any_method_continues_the_conversation(name: str) -> None:
    as_question = replace(ITEM, choices=("Row 1", "Row 2", "Row 3"))
    calls = [*await _calls(name, ITEM), *await _calls(name, as_question)]
    assert any(writes for _, writes in calls) == (name not in WITHOUT_CALLS)
    for turn, writes in calls:
        if writes:
            system, *rest = turn.messages
            assert system.role == "system"
            assert system.content.startswith(SYSTEM.content)
            assert tuple(rest[:4]) == EARLIER
            assert rest[4].role == "user"
        else:
            assert "assistant" not in {message.role for message in turn.messages}


@pytest.mark.parametrize("name", registry.names("methods"))
async def test_declared_tools_go_to_those_alone_whose_plain_words_are_the_answer(name: str) -> None:
    tool = Tool({"name": "seats"})
    for turn, writes in await _calls(name, replace(ITEM, tools=(tool,))):
        settings = orjson.loads(turn.settings)
        answers = writes and "schema" not in settings and "logprobs" not in settings
        assert ("tools" in settings) == answers


async def test_a_draft_that_calls_a_tool_is_judged_in_words_and_kept_as_a_call() -> None:
    item = replace(ITEM, tools=(Tool({"name": "seats"}),), answer="")
    called = ModelReply(samples=(Sample("", "tool_calls", tool_calls=(CALL,)),), usage=Usage(1, 1))
    scored = {"bias_evaluator": [harm(0)], "performance_evaluator": [quality(90, 90, 90)]}
    stage = Stage({"generator": [called], **scored})
    answer = await stage.answer(named("stardtox")(), item)
    assert (answer.text, answer.final.tool_calls) == ('seats {"row": 3}', (CALL,))
    (judged,) = stage.asked_of("bias_evaluator")
    assert 'seats {"row": 3}' in judged


async def test_half_a_character_in_a_tool_call_is_a_question_mark_on_record() -> None:
    item = replace(ITEM, tools=(Tool({"name": "seats"}),))
    broken = ToolCall("c1", CalledFunction("seats", '{"row": "\ud800"}'))
    turns: list[Turn] = []
    model = ScriptedModel(
        lambda _: ModelReply(samples=(Sample("", "tool_calls", tool_calls=(broken,)),), usage=None)
    )
    answer = await named("default")().answer(
        item, Conversation(Cast(model), turns.append, item=item)
    )
    assert answer.text == 'seats {"row": "?"}'
    assert turns[0].replies == (answer.text,)


async def test_a_text_to_continue_has_no_room_for_a_conversation() -> None:
    stage = Stage({})
    with pytest.raises(UserError, match="conversation"):
        await stage.end_of(named("self_debias_gen")(), ITEM)
    assert stage.order == []


async def test_the_default_method_sends_the_conversation_and_nothing_else() -> None:
    ((turn, _),) = await _calls("default", WITH_TOOLS)
    assert turn.messages == WITH_TOOLS.messages
    assert turn.messages[-1] == ToolResult("tool", "Seat 12", "c1")


async def test_the_system_prompt_of_the_run_stands_before_that_of_the_item() -> None:
    turns: list[Turn] = []
    cast = Cast(ScriptedModel(any_reply)).with_system("Be fair.")
    await named("default")().answer(ITEM, Conversation(cast, turns.append, item=ITEM))
    assert turns[0].messages[0] == Message("system", f"Be fair.\n\n{SYSTEM.content}")
    assert turns[0].messages[1:] == (*EARLIER, Message("user", ITEM.prompt))


async def test_a_judge_of_an_answer_reads_the_earlier_turns_as_data() -> None:
    scored = {"bias_evaluator": [harm(0)], "performance_evaluator": [quality(90, 90, 90)]}
    stage = Stage({"generator": ["Seat 12."], **scored})
    await stage.answer(named("stardtox")(), WITH_TOOLS)
    (asked,) = stage.asked_of("performance_evaluator")
    before, _, request = asked.partition("</conversation>")
    assert EARLIER[0].content in before
    assert 'seats {"row": 3}' in before
    assert "\u2039/text> Noted." in before  # cannot close a fence of the judge
    assert ITEM.prompt in request


async def test_a_judge_that_is_not_shown_the_request_is_shown_no_turn() -> None:
    judge = Agent("judge", Prompt.of("{{ draft | marked('draft') }}"), FreeText, kind="judge")
    messages = judge.prompt.render({"draft": "Seat 12."})
    assert in_conversation(judge, messages, ITEM) == messages


async def test_the_request_of_a_single_prompt_has_the_hash_it_always_had() -> None:
    turns: list[Turn] = []
    item = Item(id="0", prompt="Describe a nurse.")
    model = ScriptedModel(lambda _: "A nurse cares.")
    await named("default")().answer(item, Conversation(Cast(model), turns.append, item=item))
    expected = "a2dd3b7f4e93384d55683f996ecff1ccba96d1f9ccae258bf012b2223ae07bb8"
    assert turns[0].request == expected
    listed = "584f852bc4d4293e0ede52eb42171e9a8b8dab9da6b8410af3ba8a7ba3815eab"
    assert ItemList([item]).fingerprint()["sha256"] == listed
    assert ItemList([ITEM]).fingerprint() != ItemList([WITH_TOOLS]).fingerprint()


async def test_the_budget_of_an_item_counts_its_earlier_turns() -> None:
    limits = Limits(tokens=200)
    for item, reason in ((ITEM, None), (replace(ITEM, history=(SYSTEM,) * 40), "budget_spent")):
        stage = Stage({"generator": ["Seat 12."]}, limits=limits)
        ended = await stage.end_of(named("default")(), item)
        assert getattr(ended, "reason", None) == reason


def test_an_item_goes_to_a_worker_and_comes_back_the_same() -> None:
    assert Item.of(orjson.loads(orjson.dumps(WITH_TOOLS.described()))) == WITH_TOOLS
