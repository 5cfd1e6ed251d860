"""The conversation: what it records, how it counts, what it refuses to pay for."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Any, Self

import pytest

from evenhand.agents import Agent, Cast, Conversation, FreeText, Limits, side_by_side
from evenhand.agents.prompts import load
from evenhand.core import Failed, Item, Turn
from evenhand.core.errors import BudgetSpent, DeadlinePassed, ModelBusy, UnreadableReply
from evenhand.methods import DefaultPrompt
from evenhand.methods.stardtox import TEXT_JUDGE, WRITER
from evenhand.models import ModelReply, ModelRequest, Sample, ScriptedModel
from tests.errors import raises_naming
from tests.stage import Stage, harm

Record = Callable[[Turn], None]
NURSE = Item(id="nurse", prompt="hello")


def echo(request: ModelRequest) -> str:
    return request.messages[-1].content


def talk(record: Record, **settings: Any) -> Conversation:
    return Conversation(Cast(ScriptedModel(echo)), record, **settings)


# -- the tape ------------------------------------------------------------------------------------


async def test_a_reply_is_on_the_tape_before_it_is_read() -> None:
    turns: list[Turn] = []
    on_tape_when_read: list[int] = []

    class Watched(FreeText):
        @classmethod
        def read(cls, text: str) -> Self:
            on_tape_when_read.append(len(turns))
            raise UnreadableReply("not_json", "on purpose")

    agent = Agent("generator", load("baselines/default_text"), Watched)
    with pytest.raises(UnreadableReply):
        await talk(turns.append)(agent, prompt="hello")
    assert on_tape_when_read == [1, 2]
    assert turns[0].texts == ("hello",)


async def test_a_turn_says_who_was_asked_what_with_which_prompt() -> None:
    turns: list[Turn] = []
    await talk(turns.append, position=3, item=NURSE)(WRITER, prompt="hello")
    (turn,) = turns
    assert (turn.position, turn.item_id, turn.index, turn.role) == (3, "nurse", 0, "generator")
    assert (turn.prompt, turn.prompt_sha256) == (WRITER.prompt.label, WRITER.prompt.sha256)
    assert [(m.role, m.content) for m in turn.messages] == [("user", "hello")]
    assert json.loads(turn.settings) == {"max_tokens": 1024}
    assert (turn.model, turn.served_by, turn.error) == ("scripted", "scripted", None)
    assert (turn.prompt_tokens, turn.completion_tokens) == (1, 1)  # counted in words


async def test_the_same_request_is_told_apart_by_how_often_it_was_asked() -> None:
    turns: list[Turn] = []
    ask = talk(turns.append)
    for prompt in ("one", "two", "one", "one"):
        await ask(WRITER, prompt=prompt)
    assert [turn.occurrence for turn in turns] == [0, 0, 1, 2]
    assert turns[0].request == turns[2].request == turns[3].request != turns[1].request
    assert [turn.index for turn in turns] == [0, 1, 2, 3]


async def test_turns_are_numbered_in_the_order_asked_though_the_answers_come_in_another() -> None:
    turns: list[Turn] = []
    slow, fast = ScriptedModel(echo, seconds=0.05), ScriptedModel(echo)
    ask = Conversation(Cast(fast, {"slow": slow}), turns.append)
    agents = [Agent(role, WRITER.prompt, FreeText) for role in ("slow", "fast")]
    await side_by_side(*(ask(agent, prompt="hello") for agent in agents))
    assert [(turn.role, turn.index) for turn in turns] == [("fast", 1), ("slow", 0)]


async def test_half_a_surrogate_pair_is_a_question_mark_on_the_tape_and_to_the_reader() -> None:
    turns: list[Turn] = []
    ask = Conversation(Cast(ScriptedModel(lambda _: "a\ud83d")), turns.append)
    assert (await ask(WRITER, prompt="hello")).text == "a?"
    assert turns[0].texts == ("a?",)


async def test_of_several_agents_the_first_failure_is_raised_once_all_have_been_heard() -> None:
    stage = Stage(
        {"a": ["fine"], "b": [ModelBusy("b is busy")], "c": [ModelBusy("c is busy")]},
    )
    ask = stage.conversation()
    agents = [Agent(role, WRITER.prompt, FreeText) for role in "cab"]
    with raises_naming(ModelBusy, "c is busy"):
        await side_by_side(*(ask(agent, prompt="hello") for agent in agents))
    assert [(turn.role, turn.error) for turn in stage.turns] == [
        ("c", "model_busy"),
        ("a", None),
        ("b", "model_busy"),
    ]


# -- seeds ---------------------------------------------------------------------------------------


async def _seeds(run_seed: int | None, item_id: str = "nurse") -> list[int | None]:
    turns: list[Turn] = []
    ask = talk(turns.append, seed=run_seed, item=Item(id=item_id, prompt="hello"))
    for _ in range(3):
        await ask(WRITER, prompt="hello")
    return [json.loads(turn.settings).get("seed") for turn in turns]


async def test_seeds_differ_by_occurrence_and_are_the_same_in_every_run_with_the_same_seed() -> (
    None
):
    first = await _seeds(1)
    assert len(set(first)) == 3
    assert await _seeds(1) == first
    assert set(await _seeds(2)).isdisjoint(first)
    assert set(await _seeds(1, "boss")).isdisjoint(first)


async def test_a_seed_is_thirty_one_bits_of_the_hash_of_its_place() -> None:
    turns: list[Turn] = []
    await talk(turns.append, seed=7, item=NURSE)(WRITER, prompt="hello")
    place = f"7:nurse:{turns[0].request}:0"
    expected = int(hashlib.sha256(place.encode()).hexdigest()[:8], 16) // 2
    assert json.loads(turns[0].settings)["seed"] == expected < 2**31


async def test_a_run_without_a_seed_sends_none() -> None:
    assert await _seeds(None) == [None, None, None]


async def test_the_key_of_a_request_does_not_depend_on_the_seed_of_the_run() -> None:
    keys = []
    for seed in (None, 1, 2):
        turns: list[Turn] = []
        await talk(turns.append, seed=seed)(WRITER, prompt="hello")
        keys.append(turns[0].request)
    assert len(set(keys)) == 1


# -- budget and deadline -------------------------------------------------------------------------


async def test_a_call_beyond_the_budget_is_refused_recorded_and_not_made() -> None:
    stage = Stage({"generator": ["one", "two"]}, limits=Limits(calls=2))
    ask = stage.conversation()
    for _ in range(2):
        await ask(WRITER, prompt="hello")
    with raises_naming(BudgetSpent, "2 calls"):
        await ask(WRITER, prompt="hello")
    assert len(stage.asked) == 2
    last = stage.turns[-1]
    assert (last.index, last.occurrence, last.error) == (2, 2, "budget_spent")
    assert (last.texts, last.attempts) == ((), 0)


@pytest.mark.parametrize(
    ("tokens", "allowed"),
    [
        pytest.param(10_000, 1024, id="room enough: the reply's own limit"),
        pytest.param(1_000, 876, id="1000 - 124 are left"),
        pytest.param(140, 16, id="room for the shortest reply"),
        pytest.param(139, None, id="one token less"),
    ],
)
async def test_a_reply_may_be_no_longer_than_what_the_prompt_leaves(
    tokens: int, allowed: int | None
) -> None:
    """300 bytes are reckoned as 100 tokens, a call as 24 more."""
    stage = Stage({"generator": ["fine"]}, limits=Limits(tokens=tokens))
    ask = stage.conversation()
    if allowed is None:
        with pytest.raises(BudgetSpent):
            await ask(WRITER, prompt="x" * 300)
        assert stage.turns[0].error == "budget_spent"
    else:
        await ask(WRITER, prompt="x" * 300)
        assert stage.asked[0][1].max_tokens == allowed


async def test_what_the_endpoint_does_not_count_stays_reserved_and_is_shown_as_unknown() -> None:
    silent = ModelReply(samples=(Sample("fine"),), usage=None)
    stage = Stage({"generator": [silent, "fine"]}, limits=Limits(tokens=1_000, max_tokens=800))
    ask = stage.conversation()
    await ask(WRITER, prompt="x" * 300)
    assert ask.budget.spent() == (1, None, None)
    with raises_naming(BudgetSpent, 924, 1000, "tokens"):  # 124 + 800
        await ask(WRITER, prompt="x" * 300)


async def test_after_the_deadline_a_call_is_refused_recorded_and_not_made() -> None:
    stage = Stage({"generator": []}, limits=Limits(seconds=0))
    with raises_naming(DeadlinePassed, "0 s"):
        await stage.conversation()(WRITER, prompt="hello")
    assert stage.asked == []
    assert [(turn.error, turn.texts) for turn in stage.turns] == [("deadline_passed", ())]


async def test_a_call_that_hangs_beyond_the_deadline_is_on_the_tape_as_late() -> None:
    hanging = ScriptedModel(echo, seconds=60)
    stage = Stage({}, players={"generator": hanging}, limits=Limits(seconds=0.05))
    event = await stage.end_of(DefaultPrompt(), Item(id="0", prompt="hello"))
    assert isinstance(event, Failed)
    assert (event.reason, event.calls) == ("deadline_passed", 1)
    assert [turn.error for turn in stage.turns] == ["deadline_passed"]
    assert stage.turns[0].seconds >= 0.05


async def test_a_call_cut_off_by_the_end_of_the_run_is_not_on_the_tape() -> None:
    turns: list[Turn] = []
    ask = Conversation(Cast(ScriptedModel(echo, seconds=60)), turns.append)
    task = asyncio.create_task(ask(WRITER, prompt="hello"))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert turns == []


# -- asking again --------------------------------------------------------------------------------


async def test_an_unreadable_reply_is_quoted_back_in_part_with_what_is_wrong_with_it() -> None:
    stage = Stage({"bias_evaluator": ["y" * 5_000, harm(0)]})
    await stage.conversation()(TEXT_JUDGE, prompt="p", draft="d")
    first, again = (request.messages for _, request in stage.asked)
    assert again[: len(first)] == first
    quoted, note = again[len(first) :]
    assert (quoted.role, quoted.content) == ("assistant", "y" * 2_000)
    assert note.role == "user"
    assert "not_json" in note.content


async def test_an_unreadable_reply_is_asked_for_again_once_and_no_more() -> None:
    stage = Stage({"bias_evaluator": ["no", "no", harm(0)]})
    with pytest.raises(UnreadableReply) as refused:
        await stage.conversation()(TEXT_JUDGE, prompt="p", draft="d")
    assert refused.value.kind == "not_json"
    assert "bias_evaluator replied twice" in refused.value.detail
    assert len(stage.asked) == 2


async def test_a_reply_cut_off_at_the_token_limit_is_called_that() -> None:
    cut = ModelReply(samples=(Sample('{"reason": "it', "length"),), usage=None)
    stage = Stage({"bias_evaluator": [cut, cut]})
    with pytest.raises(UnreadableReply) as refused:
        await stage.conversation()(TEXT_JUDGE, prompt="p", draft="d")
    assert refused.value.kind == "cut_off"


# -- casting -------------------------------------------------------------------------------------


async def test_a_role_is_played_by_its_own_model_and_any_other_by_the_default() -> None:
    default, judge = ScriptedModel(lambda _: "fine"), ScriptedModel(lambda _: harm(0), name="judge")
    turns: list[Turn] = []
    ask = Conversation(Cast(default, {"bias_evaluator": judge}), turns.append)
    await ask(WRITER, prompt="hello")
    await ask(TEXT_JUDGE, prompt="p", draft="d")
    assert [(turn.role, turn.model) for turn in turns] == [
        ("generator", "scripted"),
        ("bias_evaluator", "judge"),
    ]
    assert (default.requests, judge.requests) == (1, 1)


def test_a_model_with_two_roles_is_wrapped_and_closed_once() -> None:
    one, two = ScriptedModel(echo, name="one"), ScriptedModel(echo, name="two")
    cast = Cast(one, {"a": two, "b": one, "c": two})
    assert cast.models() == (one, two)
    wrapped = cast.through(lambda model: ScriptedModel(echo, name=f"tape of {model.name}"))
    assert [model.name for model in wrapped.models()] == ["tape of one", "tape of two"]
    assert wrapped.model_for("a") is wrapped.model_for("c")
    assert wrapped.model_for("b") is wrapped.model_for("anyone")


def test_a_cast_describes_who_plays_each_role_that_is_asked_and_no_other() -> None:
    two = ScriptedModel(echo, name="two")
    cast = Cast(ScriptedModel(echo, name="one"), {"a": two, "never_asked": two})
    agents = [Agent(role, WRITER.prompt, FreeText) for role in "ab"]
    assert cast.describe(agents) == {
        "default": {"kind": "scripted", "model": "one"},
        "a": {"kind": "scripted", "model": "two"},
        "b": {"kind": "scripted", "model": "one"},
    }
