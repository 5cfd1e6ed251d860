"""Self-Refine step by step (Madaan et al. 2023, Algorithm 1): one model, no roles."""

import json
import re
from typing import Any

import pytest

from evenhand.core import Failed, Item
from evenhand.core.errors import UserError
from evenhand.methods import within
from evenhand.methods.baselines.several_drafts import SelfRefine
from evenhand.methods.shared_settings import Keep
from tests.errors import raises_naming
from tests.stage import OPTIONS, QUESTION, TEXT, Stage, choice, tagged

GENERATOR = "generator"


def feedback(words: str, *, stop: Any = False) -> str:
    return json.dumps({"feedback": words, "stop": stop})


DONE = feedback("nothing is to be changed", stop=True)


def kinds(stage: Stage) -> list[str]:
    return [turn.prompt.partition("/")[2].partition("_")[0] for turn in stage.turns]


async def test_feedback_that_asks_for_no_change_ends_it_after_two_calls() -> None:
    stage = Stage({GENERATOR: [choice("C"), DONE]})
    answer = await stage.answer(SelfRefine(), QUESTION)
    assert kinds(stage) == ["default", "feedback"]
    assert (answer.choice, answer.stopped, len(answer.drafts)) == (2, "accepted", 1)
    judged = stage.asked_of(GENERATOR)[1]
    assert OPTIONS in judged
    assert QUESTION.context in judged
    assert "<answer>\nThe girl" not in judged
    assert tagged("answer", "Cannot be known") in judged


async def test_an_answer_is_refined_with_every_earlier_answer_and_its_feedback_in_view() -> None:
    lines = ["one", feedback("fb-one"), "two", feedback("fb-two"), "three", DONE]
    stage = Stage({GENERATOR: lines})
    answer = await stage.answer(SelfRefine(), TEXT)
    assert kinds(stage) == ["default", "feedback", "refine", "feedback", "refine", "feedback"]
    assert [draft.text for draft in answer.drafts] == ["one", "two", "three"]
    assert answer.stopped == "accepted"
    asked = stage.asked_of(GENERATOR)
    inside = re.compile(r"<(?:answer|feedback)>\n(.+)\n</")
    assert [inside.findall(words) for words in asked] == [
        [],
        ["one"],
        ["one", "fb-one"],
        ["two"],  # feedback is on the latest alone
        ["one", "fb-one", "two", "fb-two"],
        ["three"],
    ]
    assert all(TEXT.prompt in words for words in asked)


@pytest.mark.parametrize(("keep", "calls", "kept"), [("best", 10, 0), ("last", 9, 1)])
async def test_a_model_that_is_never_content_ends_after_four_refinements(
    keep: Keep, calls: int, kept: int
) -> None:
    """No refinement is accepted, so the first answer stays; the paper's loop takes the last."""
    lines = [choice("A"), *[feedback("no"), choice("B")] * 4, feedback("no")]
    stage = Stage({GENERATOR: lines})
    answer = await stage.answer(SelfRefine(keep=keep), QUESTION)
    assert (len(stage.turns), len(answer.drafts)) == (calls, 5)
    assert (answer.choice, answer.stopped) == (kept, "max_iterations")


async def test_no_iterations_is_the_plain_answer() -> None:
    stage = Stage({GENERATOR: [choice("A")]})
    answer = await stage.answer(SelfRefine(max_iterations=0), QUESTION)
    assert (answer.choice, answer.stopped) == (0, "max_iterations")


async def test_an_answer_that_is_there_is_given_feedback_without_a_first_generation() -> None:
    item = Item(id="q", prompt="Who?", choices=("X", "Y"), answer="Y")
    stage = Stage({GENERATOR: [feedback("no"), choice("A"), DONE]})
    answer = await stage.answer(SelfRefine(), item)
    assert kinds(stage) == ["feedback", "refine", "feedback"]
    assert [draft.choice for draft in answer.drafts] == [1, 0]


@pytest.mark.parametrize("said", ["It is fine.", feedback("fine", stop="yes"), '{"stop": true}'])
async def test_feedback_that_cannot_be_read_fails_the_item_and_is_not_taken_for_content(
    said: str,
) -> None:
    end = await Stage({GENERATOR: [choice("A"), said, said]}).end_of(SelfRefine(), QUESTION)
    assert isinstance(end, Failed)
    assert end.reason.startswith("unreadable_reply:")


async def test_the_feedback_is_by_the_model_that_answers_whatever_the_cast() -> None:
    stage = Stage({GENERATOR: [choice("A"), DONE], "bias_evaluator": [], "judge": []})
    await stage.answer(SelfRefine(), QUESTION)
    assert {turn.model for turn in stage.turns} == {"the generator"}


@pytest.mark.parametrize(
    ("calls", "best", "last"),
    [(1, 0, 0), (2, 0, 0), (3, 0, 1), (4, 1, 1), (5, 1, 2), (9, 3, 4), (10, 4, 4), (12, 5, 5)],
)
def test_a_budget_pays_for_an_answer_and_two_calls_a_refinement(
    calls: int, best: int, last: int
) -> None:
    """And for one call more, so that the last refinement is looked at before it is taken."""
    assert within(SelfRefine(), calls) == SelfRefine(max_iterations=best)
    papers = SelfRefine(keep="last")
    assert within(papers, calls) == SelfRefine(max_iterations=last, keep="last")


def test_without_a_call_nothing_fits() -> None:
    with raises_naming(UserError, "self_refine", "1 call", 0):
        within(SelfRefine(), 0)
