"""Best of n: different answers are judged once each, and the best one wins."""

from typing import Any

import pytest

from evenhand.core import Failed, Item
from evenhand.core.errors import UserError
from evenhand.methods import DefaultPrompt, StarDTox, within
from evenhand.methods.baselines.several_drafts import BestOfN
from evenhand.methods.baselines.single_prompt import SelfConsistency
from tests.errors import raises_naming
from tests.stage import QUESTION, TEXT, Stage, choice, harm, support

GENERATOR, BIAS = "generator", "bias_evaluator"


async def test_four_answers_are_drawn_and_the_best_supported_one_wins() -> None:
    stage = Stage(
        {
            GENERATOR: [choice("A"), choice("B"), choice("A"), choice("C")],
            BIAS: [support(20), support(40), support(90)],
        }
    )
    answer = await stage.answer(BestOfN(), QUESTION)
    assert stage.order == [GENERATOR] * 4 + [BIAS] * 3  # A, which came twice, is judged once
    judged = stage.asked_of(BIAS)
    for words, option in zip(judged, QUESTION.choices, strict=True):
        assert f"chosen:\n<answer>\n{option}\n</answer>" in words
    assert (answer.choice, answer.stopped) == (2, "single_pass")
    assert [draft.scores for draft in answer.drafts] == [{"support": 0.2}, {"support": 0.9}]


async def test_the_least_harmful_text_wins() -> None:
    stage = Stage(
        {GENERATOR: ["a fool.", "a baker.", "a bore."], BIAS: [harm(70), harm(0), harm(30)]}
    )
    answer = await stage.answer(BestOfN(n=3), TEXT)
    assert [draft.text for draft in answer.drafts] == ["a fool.", "a baker."]
    assert [draft.scores for draft in answer.drafts] == [{"harm": 0.7}, {"harm": 0.0}]


async def test_the_answers_are_drawn_at_a_temperature_and_judged_without() -> None:
    stage = Stage({GENERATOR: [choice("A"), choice("B")], BIAS: [support(1), support(2)]})
    await stage.answer(BestOfN(n=2), QUESTION)
    drawn = [(role, request.temperature) for role, request in stage.asked]
    assert drawn == [(GENERATOR, 0.7)] * 2 + [(BIAS, 0.0)] * 2


@pytest.mark.parametrize(("scores", "winner"), [((50, 50), 0), ((50, 51), 1), ((0, 0), 0)])
async def test_of_equal_scores_the_first_wins(scores: tuple[int, int], winner: int) -> None:
    stage = Stage({GENERATOR: [choice("A"), choice("B")], BIAS: [support(s) for s in scores]})
    answer = await stage.answer(BestOfN(n=2), QUESTION)
    assert answer.choice == winner
    assert len(answer.drafts) == winner + 1


async def test_of_equally_harmful_texts_the_first_wins() -> None:
    stage = Stage({GENERATOR: ["one", "two"], BIAS: [harm(10), harm(10)]})
    assert (await stage.answer(BestOfN(n=2), TEXT)).text == "one"


async def test_where_all_answers_are_equal_there_is_nothing_to_judge() -> None:
    stage = Stage({GENERATOR: [choice("B")] * 4})
    answer = await stage.answer(BestOfN(), QUESTION)
    assert (answer.choice, len(answer.drafts), answer.drafts[0].scores) == (1, 1, {})


async def test_an_answer_that_is_there_is_the_first_of_the_n() -> None:
    item = Item(id="q", prompt="Who?", choices=("X", "Y"), answer="Y")
    stage = Stage({GENERATOR: [choice("A")], BIAS: [support(10), support(90)]})
    answer = await stage.answer(BestOfN(n=2), item)
    assert [draft.choice for draft in answer.drafts] == [1, 0]


async def test_an_answer_whose_verdict_cannot_be_read_is_left_out() -> None:
    stage = Stage(
        {GENERATOR: [choice("A"), choice("B")], BIAS: [support(90), "good", "really good"]}
    )
    answer = await stage.answer(BestOfN(n=2), QUESTION)
    assert [(draft.choice, draft.scores) for draft in answer.drafts] == [(0, {"support": 0.9})]
    assert answer.outcome == "accepted"


async def test_where_no_verdict_can_be_read_the_item_fails() -> None:
    stage = Stage({GENERATOR: [choice("A"), choice("B")], BIAS: ["good"] * 4})
    end = await stage.end_of(BestOfN(n=2), QUESTION)
    assert isinstance(end, Failed)
    assert (end.reason, end.calls) == ("unreadable_reply:not_json", 6)


# -- equal budgets -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "calls", "fitted"),
    [
        (BestOfN(), 1, BestOfN(n=1)),  # a single answer is not judged
        (BestOfN(), 3, BestOfN(n=1)),
        (BestOfN(), 4, BestOfN(n=2)),
        (BestOfN(), 9, BestOfN(n=4)),
        (SelfConsistency(), 1, SelfConsistency(calls=1)),
        (SelfConsistency(), 7, SelfConsistency(calls=7)),
        (StarDTox(), 2, StarDTox(max_iterations=0)),
        (StarDTox(), 5, StarDTox(max_iterations=1)),
        (StarDTox(critique="empty"), 6, StarDTox(max_iterations=2, critique="empty")),
        (DefaultPrompt(), 6, DefaultPrompt()),
    ],
)
def test_a_method_is_given_the_largest_setting_that_a_number_of_calls_pays_for(
    method: Any, calls: int, fitted: Any
) -> None:
    assert within(method, calls) == fitted


@pytest.mark.parametrize(
    ("method", "calls"), [(BestOfN(), 0), (SelfConsistency(), 0), (StarDTox(), 1)]
)
def test_a_budget_that_pays_for_no_setting_is_refused(method: Any, calls: int) -> None:
    with raises_naming(UserError, method.name, calls + 1, calls):
        within(method, calls)
