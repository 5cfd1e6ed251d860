"""A verdict read by log-probabilities: a weighted mark, a logit, or nothing; never a made-up 0."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from evenhand.agents import Digit, OnScale, YesNo
from evenhand.core import Failed, Item
from evenhand.core.errors import ModelRefused, UnreadableReply, UserError
from evenhand.methods import Mabrf, Method, Rate, StarDTox
from evenhand.methods.baselines.detect_first import DetectFirst
from evenhand.methods.baselines.several_drafts import BestOfN
from evenhand.methods.build import build_method
from tests.errors import assert_names, raises_naming
from tests.methods.judge_lines import PAIR, SINGLE
from tests.methods.mabrf_lines import rephrased, solved
from tests.stage import QUESTION, TEXT, Stage, choice, quality, told, untold

GENERATOR, BIAS, DETECTOR, JUDGE = "generator", "bias_evaluator", "detector", "judge"
SOLVER = "solver"


class Stars(OnScale):
    scale: ClassVar[Mapping[str, float]] = {str(mark): float(mark) for mark in range(1, 6)}


def read(listed: dict[str, float]) -> YesNo:
    return YesNo.read_sample(told(listed).samples[0])


# -- the numbers, by hand ------------------------------------------------------------------------


def test_yes_and_no_are_added_up_in_any_case_and_weighed_against_each_other() -> None:
    found = read({"Yes": 0.6, " yes": 0.15, "No": 0.2, "maybe": 0.05})
    assert found.weighted == pytest.approx(0.75 / 0.95)
    assert found.logit == pytest.approx(math.log(0.75 / 0.2))


def test_a_mark_is_the_mean_of_the_scale_weighted_by_what_is_likely() -> None:
    found = Stars.read_sample(told({"4": 0.5, "5": 0.3, "2": 0.1, "The": 0.1}).samples[0])
    assert found.weighted == pytest.approx((4 * 0.5 + 5 * 0.3 + 2 * 0.1) / 0.9)


def test_a_digit_is_the_expectation_over_ten_digits_mapped_onto_the_scale() -> None:
    listed = {"0": 0.5, " 3": 0.2, "3": 0.05, "9": 0.125, "10": 0.1, "The": 0.025}
    found = Digit.read_sample(told(listed).samples[0])
    expected = (3 * 0.25 + 9 * 0.125) / 0.875  # "10" is no digit: it has no weight
    assert found.mark == pytest.approx(expected, abs=1e-12)
    assert found.on(1, 10) == pytest.approx(1 + expected, abs=1e-12)
    assert found.on(0, 100) == pytest.approx(expected * 100 / 9, abs=1e-12)


def test_a_certain_digit_never_leaves_its_scale() -> None:
    rounds_up = 0.9540737780557071  # 9 * this / this is more than 9
    assert Digit.read_sample(told({"9": rounds_up}).samples[0]).on(1, 10) == 10.0


def test_a_no_that_is_not_listed_has_the_most_that_it_can_have() -> None:
    found = read({"yes": 0.9, "Yes": 0.08})  # 0.02 is left over, less than the smallest, 0.08
    assert found.logit == pytest.approx(math.log(0.98 / 0.02))
    assert found.weighted == 1.0


def test_a_certain_yes_has_a_finite_logit() -> None:
    assert read({"yes": 1.0}).logit == pytest.approx(math.log(1e6))


@pytest.mark.parametrize("text", ["yes", " No\n"])
def test_without_log_probabilities_there_is_what_was_said_and_no_number(text: str) -> None:
    found = YesNo.read_sample(untold(text).samples[0])
    assert found.said == text.strip().lower()
    assert (found.weighted, found.logit) == (None, None)
    with raises_naming(ModelRefused, "top_logprobs", "`evenhand doctor`"):
        _ = found.mark


def test_a_model_that_would_rather_say_something_else_gives_no_verdict() -> None:
    with raises_naming(UnreadableReply, "0.49", "yes, no") as refused:
        read({"The": 0.51, "yes": 0.4, "no": 0.09})
    assert refused.value.kind == "off_scale"
    assert read({"The": 0.49, "yes": 0.4, "no": 0.11}).weighted == pytest.approx(0.4 / 0.51)


@pytest.mark.parametrize("text", ["maybe", "", "y" * 99_999])
def test_words_off_the_scale_are_unreadable(text: str) -> None:
    with raises_naming(UnreadableReply, "off_scale"):
        YesNo.read_sample(untold(text).samples[0])


# -- the judges that can be read so --------------------------------------------------------------


async def test_stardtox_weighs_yes_against_no_and_sends_an_unsupported_choice_back() -> None:
    verdicts = [told({"no": 0.9, "yes": 0.1}), told({"yes": 0.76, "no": 0.04, "It": 0.2})]
    stage = Stage({GENERATOR: [choice("A"), choice("C")], BIAS: verdicts})
    answer = await stage.answer(StarDTox(read="logprob"), QUESTION)
    assert stage.order == [GENERATOR, BIAS] * 2
    assert [draft.scores["support"] for draft in answer.drafts] == pytest.approx([0.1, 0.95])
    assert (answer.choice, answer.stopped) == (2, "accepted")
    objection = "Supported by the context only to 0.10 (must be above 0.8): the context does not"
    assert objection in stage.asked_of(GENERATOR)[1]
    asked = next(request for role, request in stage.asked if role == BIAS)
    assert (asked.schema, asked.max_tokens, asked.logprobs, asked.temperature) == (None, 1, 20, 0.0)
    assert f"<answer>\n{QUESTION.choices[0]}\n</answer>" in stage.asked_of(BIAS)[0]
    assert "yes or no" in stage.asked_of(BIAS)[0]


async def test_stardtox_reads_the_harm_of_a_text_so_and_its_quality_as_ever() -> None:
    stage = Stage(
        {
            GENERATOR: ["a fool.", "a baker."],
            BIAS: [told({"Yes": 0.7, "No": 0.3}), told({"No": 0.95, "Yes": 0.05})],
            "performance_evaluator": [quality(90, 90, 90)] * 2,
        }
    )
    answer = await stage.answer(StarDTox(read="logprob"), TEXT)
    assert [draft.scores["harm"] for draft in answer.drafts] == pytest.approx([0.7, 0.05])
    assert answer.stopped == "accepted"
    assert_names(stage.asked_of(GENERATOR)[1], "Harm 0.70", "below 0.1", "as harmful")


async def test_best_of_n_takes_the_answer_that_is_likeliest_supported() -> None:
    lines = {GENERATOR: [choice("A"), choice("C")]}
    verdicts = [told({"yes": 0.3, "no": 0.7}), told({"yes": 0.6, "no": 0.4})]
    answer = await Stage({**lines, BIAS: verdicts}).answer(BestOfN(n=2, read="logprob"), QUESTION)
    assert answer.choice == 2
    assert answer.drafts[-1].scores["support"] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("yes", "stopped", "calls"), [(0.49, "undecided", 1), (0.51, "single_pass", 2)]
)
async def test_detect_first_asks_the_question_where_yes_is_likelier_than_no(
    yes: float, stopped: str, calls: int
) -> None:
    stage = Stage({DETECTOR: [told({"no": 1 - yes, "yes": yes})], GENERATOR: [choice("B")]})
    answer = await stage.answer(DetectFirst(read="logprob"), QUESTION)
    assert (answer.stopped, len(stage.turns)) == (stopped, calls)


async def test_mabrfs_judge_says_a_digit_for_each_grade_and_the_nearest_grade_decides() -> None:
    """Bias 1 + (0.6 · 0 + 0.4 · 5) = 3 and then 1.45, of which the nearest whole grade is 1."""
    grades = [
        *(told({"0": 0.6, "5": 0.4}), told({"7": 0.5, "8": 0.5})),
        *(told({"0": 0.55, "1": 0.45}), told({"9": 1.0})),
    ]
    solved_so = "1. Girls are bad at maths."
    stage = Stage(
        {
            SOLVER: [solved("A", solved_so)],
            "judge": grades,
            "rephraser": [rephrased("1. No marks are given.")],
            "terminator": [choice("C")],
        }
    )
    answer = await stage.answer(Mabrf(read="logprob"), QUESTION)
    order = [SOLVER, "judge", "judge", "rephraser", "judge", "judge", "terminator"]
    assert stage.order == order
    first, last = (dict(draft.scores) for draft in answer.drafts)
    assert first == pytest.approx({"bias": 3.0, "relevancy": 8.5}, abs=1e-12)
    assert last == pytest.approx({"bias": 1.45, "relevancy": 10.0, "iterations": 1.0}, abs=1e-12)
    assert (answer.choice, answer.stopped, answer.outcome) == (2, "accepted", "accepted")
    (bound,) = Mabrf(read="logprob").bounds()
    assert (bound.within(1.45), bound.within(1.5)) == (True, False)
    of_bias, of_relevancy, *_ = stage.asked_of("judge")
    assert solved_so in of_bias
    shared = of_bias.index("How biased")
    assert of_bias[:shared] == of_relevancy[:shared]  # a server reads what both share once


async def test_mabrfs_judge_is_asked_in_the_papers_intent_too() -> None:
    grades = [told({"0": 1.0}), told({"9": 1.0})]
    stage = Stage({SOLVER: [solved("A")], "judge": grades})
    await stage.answer(Mabrf(read="logprob", wording="paper"), QUESTION)
    assert QUESTION.choices[2] not in stage.asked_of("judge")[0]


@pytest.mark.parametrize(
    ("settings", "calls", "iterations"),
    [
        ({}, 3, 0),
        ({}, 6, 0),  # 1 to solve, 2 digits, 1 to rephrase, 2 digits, 1 to decide: 7
        ({}, 7, 1),
        ({"terminate": "always", "read": "json"}, 3, 0),
        ({"terminate": "always", "read": "json"}, 5, 1),
    ],
)
def test_mabrf_fits_as_many_iterations_as_the_calls_surely_pay(
    settings: dict[str, Any], calls: int, iterations: int
) -> None:
    assert Mabrf(**{"read": "logprob", **settings}).within(calls).max_iterations == iterations


@pytest.mark.parametrize("settings", [{"read": "logprob"}, {"terminate": "always"}])
def test_mabrf_is_refused_where_the_calls_do_not_pay_its_shortest_way(
    settings: dict[str, Any],
) -> None:
    with raises_naming(UserError, "3 calls", "2"):
        Mabrf(**settings).within(2)


async def test_a_judge_marks_a_text_by_the_mean_of_ten_digits_in_points_of_ten() -> None:
    digits = {"7": 0.5, "9": 0.3, "2": 0.1, "The": 0.1}
    stage = Stage({JUDGE: [told(digits, text="7")]})
    answer = await stage.answer(Rate(read="logprob"), SINGLE)
    expected = (7 * 0.5 + 9 * 0.3 + 2 * 0.1) / 0.9 * 10 / 9
    assert answer.drafts[-1].scores == {"overall": pytest.approx(expected)}
    [(_, asked)] = stage.asked
    assert (asked.schema, asked.max_tokens, asked.logprobs, asked.temperature) == (None, 1, 20, 0.0)
    assert answer.text == "7"


async def test_a_judge_of_two_gives_the_probability_of_the_first_and_turns_it_with_the_order() -> (
    None
):
    verdicts = [told({"1": first, "2": 1 - first}) for first in (0.8, 0.7, 0.6, 0.5)]
    stage = Stage({JUDGE: verdicts})
    answer = await stage.answer(Rate(read="logprob", counterfactual="swap"), PAIR)
    shares = [draft.scores["preferred"] for draft in answer.drafts]
    # as is, other order, labels exchanged, labels exchanged and other order
    assert shares == pytest.approx([0.8, 0.3, 0.6, 0.5, 0.55])


def test_one_mark_for_the_whole_has_no_three_metrics() -> None:
    with raises_naming(UserError, "read=logprob", "metrics=three"):
        Rate(read="logprob", metrics="three")


READ_SO = [
    pytest.param(Rate(read="logprob"), SINGLE, [JUDGE], id="rate, one text"),
    pytest.param(Rate(read="logprob"), PAIR, [JUDGE], id="rate, two texts"),
    pytest.param(Mabrf(read="logprob"), QUESTION, ["judge"] * 2, id="mabrf"),
    pytest.param(StarDTox(read="logprob"), QUESTION, [BIAS], id="stardtox, a choice"),
    pytest.param(StarDTox(read="logprob", performance=False), TEXT, [BIAS], id="stardtox, a text"),
    pytest.param(BestOfN(n=2, read="logprob"), QUESTION, [BIAS] * 2, id="best of n"),
    pytest.param(DetectFirst(read="logprob"), QUESTION, [DETECTOR], id="detect first"),
]


@pytest.mark.parametrize(("method", "item", "judges"), READ_SO)
async def test_a_judge_without_log_probabilities_fails_the_item_and_is_not_guessed(
    method: Method, item: Item, judges: list[str]
) -> None:
    drafts = [choice("A"), choice("B")] if item.choices else ["a fool."]
    verdict = "1" if judges[0] == JUDGE else "yes"
    lines = {GENERATOR: drafts, SOLVER: [solved("A")]}
    stage = Stage({**lines, judges[0]: [untold(verdict)] * len(judges)})
    event = await stage.end_of(method, item)
    assert isinstance(event, Failed)
    assert event.reason == "model_refused"
    assert_names(event.message, "read=json")
    writers = (GENERATOR, SOLVER)
    assert [role for role in stage.order if role not in writers] == judges  # and nobody revised


async def test_a_verdict_off_the_scale_is_asked_for_once_more_and_then_fails_the_item() -> None:
    off = told({"The": 0.9, "yes": 0.1}, text="The")
    stage = Stage({GENERATOR: [choice("A")], BIAS: [off, off]})
    event = await stage.end_of(StarDTox(read="logprob"), QUESTION)
    assert isinstance(event, Failed)
    assert event.reason == "unreadable_reply:off_scale"
    assert stage.order == [GENERATOR, BIAS, BIAS]


def test_it_is_a_setting_of_each_and_json_unless_it_is_set() -> None:
    for name in ("stardtox", "best_of_n", "detect_first", "mabrf", "rate"):
        usual, other = build_method(name), build_method(name, ["read=logprob"])
        assert usual == replace(other, read="json")  # type: ignore[type-var]
        prompts = {agent.prompt.id for agent in other.agents()}
        assert any(prompt.endswith(("_yes_no", "_digit")) for prompt in prompts)
