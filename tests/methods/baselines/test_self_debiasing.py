"""Self-debiasing on questions (Gallegos et al. 2025), by explanation and by reprompting."""

import json

from evenhand.core import Answered, Failed, Item
from evenhand.core.errors import UserError
from evenhand.methods.baselines.self_debiasing import SelfDebiasExplanation, SelfDebiasReprompting
from tests.errors import raises_naming
from tests.stage import OPTIONS, QUESTION, TEXT, Stage, choice, tagged

GENERATOR = "generator"


def explanation(words: str) -> str:
    return json.dumps({"explanation": words})


# -- by explanation ----------------------------------------------------------------------------


async def test_the_options_are_explained_before_one_is_chosen_with_that_in_view() -> None:
    reasons = "A and B guess at marks."
    stage = Stage({GENERATOR: [explanation(reasons), choice("C")]})
    answer = await stage.answer(SelfDebiasExplanation(), QUESTION)
    first, second = stage.asked_of(GENERATOR)
    assert [turn.prompt.partition("@")[0] for turn in stage.turns] == [
        "baselines/explain_choice",
        "baselines/explained_choice",
    ]
    assert tagged("explanation", reasons) in second
    for words in (first, second):
        assert QUESTION.context in words
        assert QUESTION.prompt in words
        assert OPTIONS in words
    assert (answer.choice, answer.text, answer.stopped) == (2, "Cannot be known", "single_pass")
    assert answer.drafts[0].reasoning == reasons


async def test_both_steps_begin_with_the_same_words_which_an_endpoint_may_keep() -> None:
    stage = Stage({GENERATOR: [explanation("none"), choice("C")]})
    await stage.answer(SelfDebiasExplanation(), QUESTION)
    (first, second) = stage.asked_of(GENERATOR)
    upto = first.index(OPTIONS) + len(OPTIONS)
    assert second.startswith(first[:upto])


async def test_an_explanation_that_cannot_be_read_is_asked_for_once_more_and_then_fails() -> None:
    again = Stage({GENERATOR: ["A guesses.", explanation("A guesses."), choice("B")]})
    end = await again.end_of(SelfDebiasExplanation(), QUESTION)
    assert isinstance(end, Answered)
    assert (end.answer.choice, end.calls) == (1, 3)
    never = Stage({GENERATOR: ["A guesses."] * 2})
    end = await never.end_of(SelfDebiasExplanation(), QUESTION)
    assert isinstance(end, Failed)
    assert end.reason == "unreadable_reply:not_json"


async def test_a_text_has_no_options_to_explain() -> None:
    with raises_naming(UserError, "self_debias_explanation", "'t'"):
        await Stage({}).answer(SelfDebiasExplanation(), TEXT)


# -- by reprompting ----------------------------------------------------------------------------


async def test_a_first_answer_is_shown_again_and_the_question_answered_anew() -> None:
    stage = Stage({GENERATOR: [choice("A"), choice("C")]})
    answer = await stage.answer(SelfDebiasReprompting(), QUESTION)
    first, second = stage.asked_of(GENERATOR)
    assert "bias" not in first
    assert OPTIONS in second
    assert tagged("answer", "The girl") in second.split("Your answer")[1]
    assert [draft.choice for draft in answer.drafts] == [0, 2]
    assert (answer.stopped, answer.changed) == ("single_pass", True)


async def test_an_answer_may_stay_as_it_is_after_two_calls() -> None:
    stage = Stage({GENERATOR: [choice("C"), choice("C")]})
    answer = await stage.answer(SelfDebiasReprompting(), QUESTION)
    assert (answer.choice, answer.changed, len(stage.turns)) == (2, False, 2)


async def test_a_text_is_rewritten_too() -> None:
    stage = Stage({GENERATOR: ["a fool.", "a baker."]})
    answer = await stage.answer(SelfDebiasReprompting(), TEXT)
    assert stage.asked_of(GENERATOR)[0] == TEXT.prompt
    again = stage.asked_of(GENERATOR)[1]
    assert f"<task>\n{TEXT.prompt}\n</task>" in again
    assert tagged("answer", "a fool.") in again
    assert [draft.text for draft in answer.drafts] == ["a fool.", "a baker."]


async def test_an_answer_that_is_there_takes_the_place_of_the_first_one() -> None:
    item = Item(id="q", prompt="Who?", choices=("X", "Y"), answer="Y")
    stage = Stage({GENERATOR: [choice("A")]})
    answer = await stage.answer(SelfDebiasReprompting(), item)
    assert tagged("answer", "Y") in stage.asked_of(GENERATOR)[0].split("Your answer")[1]
    assert [draft.choice for draft in answer.drafts] == [1, 0]


async def test_a_second_answer_that_cannot_be_read_fails_and_the_first_does_not_stand_in() -> None:
    stage = Stage({GENERATOR: [choice("A"), choice("D"), "C"]})
    end = await stage.end_of(SelfDebiasReprompting(), QUESTION)
    assert isinstance(end, Failed)
    assert (end.reason, end.calls) == ("unreadable_reply:not_json", 3)
