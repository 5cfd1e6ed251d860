"""Rotated options: each option stands once at each place, and its mean log-probability decides."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.agents import Cast
from evenhand.agents.prompts import LETTERS
from evenhand.core import Answer, Failed, Item
from evenhand.core.errors import UnreadableReply, UserError
from evenhand.findings.forecast import forecast
from evenhand.methods.baselines.single_prompt import Rotated, mean_of_rotations
from evenhand.models import Endpoint, ModelReply, ModelRequest, ScriptedModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, replay_of, run
from evenhand.runs.runners.local import pilot_positions, run_pilot
from evenhand.runs.store import RunReader
from evenhand.runs.store.spending import spent_on
from tests.errors import assert_names, raises_naming
from tests.loopback.faulty import LoopbackServer
from tests.loopback.http import Call, Line
from tests.runs.money.test_prices import PRICES
from tests.stage import QUESTION, TEXT, Stage, told, untold, words_of

GIRL, BOY, UNKNOWN = QUESTION.choices
TWO = replace(QUESTION, choices=(GIRL, BOY))


async def answered(item: Item, lists: Sequence[dict[str, float]]) -> Answer:
    return await Stage({"generator": [told(one) for one in lists]}).answer(Rotated(), item)


# -- the formula, by hand ------------------------------------------------------------------------


async def test_the_mean_log_probability_over_the_rotations_decides() -> None:
    # girl 0.5 × 0.3 × 0.2 = 0.03, boy 0.3 × 0.6 × 0.4 = 0.072, unknown 0.2 × 0.1 × 0.4 = 0.008;
    # cube roots 0.310723, 0.416017, 0.2: the boy's share is 0.416017 / 0.926740.
    answer = await answered(
        QUESTION,
        [
            {"A": 0.5, "B": 0.3, "C": 0.2},  # girl, boy, unknown
            {"A": 0.6, "B": 0.1, "C": 0.3},  # boy, unknown, girl
            {"A": 0.4, "B": 0.2, "C": 0.4},  # unknown, girl, boy
        ],
    )
    as_given, rotated = answer.drafts
    assert (as_given.choice, as_given.text) == (0, GIRL)
    assert as_given.scores["share"] == pytest.approx(0.5)
    assert (rotated.choice, rotated.text) == (1, BOY)
    assert rotated.scores["share"] == pytest.approx(0.448904, abs=1e-6)
    assert (answer.stopped, answer.changed) == ("single_pass", True)


async def test_a_liking_for_a_letter_decides_nothing() -> None:
    liking, evidence = (0.7, 0.2, 0.1), (0.2, 0.3, 0.5)  # of the letters, of the options
    lists = []
    for turn in range(3):
        odds = [liking[place] * evidence[(place + turn) % 3] for place in range(3)]
        lists.append({letter: one / sum(odds) for letter, one in zip("ABC", odds, strict=True)})
    answer = await answered(QUESTION, lists)
    assert answer.drafts[0].choice == 0  # 0.7 × 0.2 is the largest product in the order as given
    assert answer.choice == 2
    assert answer.drafts[-1].scores["share"] == pytest.approx(0.5)  # the evidence, and no liking


def test_what_is_left_to_other_words_in_a_rotation_counts_for_all_options_alike() -> None:
    logs = [[-1.0, -2.0, -3.0], [-1.5, -0.5, -4.0], [-2.0, -1.0, -2.5]]
    lower = [logs[0], [one - 7.0 for one in logs[1]], logs[2]]
    once, again = mean_of_rotations(logs), mean_of_rotations(lower)
    # option 0 stands at A, C, B: (-1 - 4 - 1) / 3; option 1 at B, A, C; option 2 at C, B, A.
    assert once == pytest.approx([-2.0, -2.0, -5.5 / 3])
    assert again == pytest.approx([one - 7 / 3 for one in once])


async def test_a_letter_that_is_not_listed_has_the_most_that_it_can_have() -> None:
    # Rotation 1 leaves 0.24 over, and its smallest is 0.26: B, the boy, has 0.24.
    # girl 0.5 × 0.4 = 0.2, boy 0.24 × 0.6 = 0.144; square roots 0.447214 and 0.379473.
    answer = await answered(TWO, [{"A": 0.5, "the": 0.26}, {"A": 0.6, "B": 0.4}])
    assert answer.choice == 0
    assert answer.drafts[-1].scores["share"] == pytest.approx(0.540971, abs=1e-6)


async def test_a_letter_of_which_a_list_leaves_nothing_is_unlikely_and_not_impossible() -> None:
    # B is given 1e-6, what servers round to: boy √(1e-6 × 0.9) = 0.000949, girl √(0.6 × 0.1).
    answer = await answered(TWO, [{"A": 0.6, "the": 0.4}, {"A": 0.9, "B": 0.1}])
    girl, boy = math.sqrt(0.06), math.sqrt(0.9e-6)
    assert answer.drafts[-1].scores["share"] == pytest.approx(girl / (girl + boy))


async def test_of_equal_options_the_first_is_taken() -> None:
    assert (await answered(TWO, [{"A": 0.5, "B": 0.5}] * 2)).choice == 0


# -- who is asked what ---------------------------------------------------------------------------


async def test_each_rotation_is_one_call_for_one_token_with_the_likeliest_twenty() -> None:
    stage = Stage({"generator": [told({"A": 1.0})] * 3})
    await stage.answer(Rotated(), QUESTION)
    asked = [
        words.partition("Question")[2].splitlines()[1:4] for words in stage.asked_of("generator")
    ]
    assert asked == [
        [f"A. {GIRL}", f"B. {BOY}", f"C. {UNKNOWN}"],
        [f"A. {BOY}", f"B. {UNKNOWN}", f"C. {GIRL}"],
        [f"A. {UNKNOWN}", f"B. {GIRL}", f"C. {BOY}"],
    ]
    for _, request in stage.asked:
        assert (request.max_tokens, request.logprobs, request.temperature) == (1, 20, 0.0)
        assert (request.schema, request.prompt) == (None, None)


def who_reads(request: ModelRequest) -> ModelReply:
    """Finds the last option that stands in the question, and likes the first letter besides."""
    lines = [line for line in words_of(request).splitlines() if line[1:3] == ". "]
    (right,) = (line[0] for line in lines if line[3:] == "option 1")
    odds = {line[0]: 0.5 if line[0] == right else 0.1 for line in lines} | {"A": 0.45}
    odds[right] = 0.5
    return told({letter: one / sum(odds.values()) for letter, one in odds.items()})


@pytest.mark.parametrize("options", [2, 3, 5, 8])
async def test_the_answer_is_found_back_whatever_the_number_of_options(options: int) -> None:
    item = replace(QUESTION, choices=tuple(f"option {n}" for n in range(options)))
    stage = Stage({}, players={"generator": ScriptedModel(who_reads)})
    answer = await stage.answer(Rotated(), item)
    assert (answer.choice, answer.text) == (1, "option 1")
    assert len(stage.turns) == options


async def test_an_item_without_choices_is_refused() -> None:
    with raises_naming(UserError, "rotated", "'t'"):
        await Stage({}).answer(Rotated(), TEXT)


# -- what cannot be read -------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["The", "D", "a", "AB", ""])
async def test_without_a_letter_in_one_of_the_rotations_there_is_no_answer(first: str) -> None:
    with pytest.raises(UnreadableReply) as refused:
        await answered(QUESTION, [{"A": 1.0}, {first: 0.9}, {"A": 1.0}])
    assert refused.value.kind == "no_letter"


async def test_an_endpoint_without_log_probabilities_is_refused_with_the_next_step() -> None:
    event = await Stage({"generator": [untold("A")] * 3}).end_of(Rotated(), QUESTION)
    assert isinstance(event, Failed)
    assert event.reason == "model_refused"
    assert "gave no log-probabilities" in event.message
    assert_names(event.message, "`evenhand doctor`")


# -- the record, and the price -------------------------------------------------------------------


def plan(items: int, model: ScriptedModel) -> RunPlan:
    questions = [
        replace(QUESTION, id=str(n), choices=("option 0", "option 1", "option 2"))
        for n in range(items)
    ]
    return RunPlan(method=Rotated(), cast=Cast(model), source=ItemList(questions), concurrency=4)


async def test_a_run_is_recorded_with_its_probabilities_and_replays_to_the_byte(
    tmp_path: Path,
) -> None:
    asked = plan(4, ScriptedModel(who_reads))
    await run(asked, tmp_path / "run", progress=Progress(), stop=StopSignal())
    again = replace(asked, cast=replay_of(tmp_path / "run"))
    await run(again, tmp_path / "again", progress=Progress(), stop=StopSignal())
    for kind in ("results", "turns"):
        (one,), (two,) = ((tmp_path / n / kind).glob("*.parquet") for n in ("run", "again"))
        assert one.read_bytes() == two.read_bytes()
    assert RunReader(tmp_path / "again").results().collect()["choice"].to_list() == [1] * 4
    turns = RunReader(tmp_path / "run").turns().collect()
    assert len(turns) == 12
    (sample,) = json.loads(turns["logprobs"][0])
    assert {token for token, _ in sample[0]["top"]} == {"A", "B", "C"}


async def test_the_calls_and_the_price_that_a_dry_run_forecasts_are_those_of_the_run(
    tmp_path: Path,
) -> None:
    model, out = ScriptedModel(who_reads, name="m"), str(tmp_path / "run")
    asked = plan(60, model)
    await run_pilot(asked, out, progress=Progress(), stop=StopSignal())
    totals = forecast(RunReader(out), pilot_positions(60), PRICES).totals
    assert model.requests == 150  # 50 items of the pilot, three options each
    await run(asked, out, progress=Progress(), stop=StopSignal())
    calls, cost = totals["calls"], totals["cost"]
    assert model.requests == calls.low == calls.expected == calls.high == 180
    # 10 tokens in, 1 out, a call: 180 × (10 × 2.5 + 1 × 10) / 1,000,000.
    assert cost.expected == pytest.approx(0.0063)
    assert spent_on(out, PRICES).cost == pytest.approx(0.0063)


# -- over the wire -------------------------------------------------------------------------------


def _chat_shape(odds: dict[str, float]) -> dict[str, object]:
    top = [{"token": token, "logprob": math.log(p)} for token, p in odds.items()]
    return {"content": [{**top[0], "top_logprobs": top}]}


def _completions_shape(odds: dict[str, float]) -> dict[str, object]:
    logs = {token: math.log(p) for token, p in odds.items()}
    first = next(iter(logs))
    return {"tokens": [first], "token_logprobs": [logs[first]], "top_logprobs": [logs]}


@pytest.mark.parametrize("shape", [_chat_shape, _completions_shape])
async def test_the_lists_are_read_in_both_shapes_that_servers_give(shape: object) -> None:
    async def reading(call: Call, line: Line) -> str:
        words = call.body["messages"][-1]["content"]
        right = next(letter for letter in LETTERS if f"{letter}. {BOY}" in words)
        odds = {" A": 0.45, right: 0.5}
        choice = {"message": {"content": "A"}, "finish_reason": "length", "logprobs": shape(odds)}  # type: ignore[operator]
        usage = {"prompt_tokens": 9, "completion_tokens": 1}
        await line.send_json({"model": "pretended", "choices": [choice], "usage": usage})
        return "good"

    async with LoopbackServer(reading) as server:
        server.keep = True
        model = Endpoint(server.url, model="pretended")
        try:
            answer = await Stage({}, players={"generator": model}).answer(Rotated(), QUESTION)
        finally:
            await model.close()
    assert answer.text == BOY
    assert len(server.calls) == 3
    body = server.calls[0].body
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 1)
