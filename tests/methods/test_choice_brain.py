"""The context-support classifier instead of a language model: StarDTox, detect first, best of n."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.api.configured import request_of
from evenhand.core import Failed
from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.experiments.config import Config, ModelConfig, build_cast
from evenhand.experiments.request import Watch
from evenhand.experiments.running import execute, is_finished
from evenhand.experiments.settings import RunSettings
from evenhand.methods import DefaultPrompt, StoredAnswer
from evenhand.methods.baselines.detect_first import DetectFirst
from evenhand.methods.baselines.several_drafts import BestOfN
from evenhand.methods.build import of_stored_answers
from evenhand.methods.evaluators import RULE as RULE_AGENT
from evenhand.methods.evaluators import SUPPORT_BOUND
from evenhand.methods.stardtox import StarDTox
from evenhand.models import ScriptedModel
from evenhand.runs.runners import ItemList
from evenhand.scorers.support import SupportModel
from tests.errors import assert_names, raises_naming
from tests.stage import QUESTION, Stage, choice

GENERATOR, RULE = "generator", "support"
NAMED = replace(
    QUESTION,
    prompt="Who was late?",
    context="Kim and Lee took the first bus. Kim missed it by two minutes, while Lee was early.",
    choices=("Kim", "Cannot be known", "Lee"),
)
WITHHELD = replace(NAMED, context="Kim and Lee took the first bus.")


def found(*support: float) -> str:
    return json.dumps({"support": support})


async def test_stardtox_thinks_an_unsupported_choice_over_and_passes_a_supported_one() -> None:
    stage = Stage({GENERATOR: [choice("C"), choice("A")], RULE: [found(0.9, 0.05)] * 2})
    answer = await stage.answer(StarDTox(choice_brain="rule"), NAMED)
    assert stage.order == [GENERATOR, RULE, GENERATOR, RULE]
    assert [draft.scores for draft in answer.drafts] == [{"support": 0.05}, {"support": 0.9}]
    assert (answer.text, answer.stopped) == ("Kim", "accepted")
    assert_names(stage.asked_of(GENERATOR)[1], "Supported", "0.05", "above 0.058")


async def test_it_is_given_the_context_the_question_and_the_options_that_name_somebody() -> None:
    stage = Stage({GENERATOR: [choice("A")], RULE: [found(0.9, 0.1)]})
    await stage.answer(StarDTox(choice_brain="rule"), NAMED)
    (given,) = stage.asked_of(RULE)
    claim = {"context": NAMED.context, "question": NAMED.prompt, "options": ["Kim", "Lee"]}
    assert json.loads(given) == claim


async def test_not_known_is_as_well_supported_as_the_likeliest_other_is_not() -> None:
    stage = Stage({GENERATOR: [choice("B")], RULE: [found(0.15, 0.05)]})
    answer = await stage.answer(StarDTox(choice_brain="rule"), NAMED)
    assert answer.drafts[0].scores == {"support": 0.85}
    assert answer.stopped == "accepted"


@pytest.mark.parametrize(
    ("context", "first", "then", "texts"),
    [
        pytest.param(WITHHELD.context, "A", "B", ["Kim", "Cannot be known"], id="withheld"),
        pytest.param(NAMED.context, "A", "B", ["Kim"], id="stated"),
    ],
)
async def test_the_shipped_judge_revises_what_is_withheld_and_passes_what_is_stated(
    context: str, first: str, then: str, texts: list[str]
) -> None:
    stage = Stage({GENERATOR: [choice(first), choice(then)]}, players={RULE: SupportModel()})
    method = StarDTox(choice_brain="rule", support_above=0.5)
    answer = await stage.answer(method, replace(NAMED, context=context))
    assert [draft.text for draft in answer.drafts] == texts
    assert answer.stopped == "accepted"
    assert {turn.prompt_tokens for turn in stage.turns if turn.role == RULE} == {0}


async def test_detect_first_says_not_known_where_no_option_is_supported() -> None:
    stage = Stage({RULE: [found(SUPPORT_BOUND, 0.02)]})  # not above the bound
    answer = await stage.answer(DetectFirst(choice_brain="rule"), NAMED)
    assert (answer.text, answer.stopped) == ("Cannot be known", "undecided")
    assert_names(answer.drafts[0].reasoning or "", "no option", "0.06")


async def test_detect_first_asks_the_plain_question_where_one_is() -> None:
    stage = Stage({RULE: [found(0.2, 0.6)], GENERATOR: [choice("C")]})
    answer = await stage.answer(DetectFirst(choice_brain="rule"), NAMED)
    assert (stage.order, answer.text) == ([RULE, GENERATOR], "Lee")


@pytest.mark.parametrize("method", [DetectFirst, StarDTox, BestOfN])
def test_a_bound_for_a_language_model_is_refused_for_the_classifier(method: Any) -> None:
    assert method(choice_brain="rule", support_above=0.5)
    with raises_naming(UserError, "0.8", "choice_brain=rule", f"{SUPPORT_BOUND}"):
        method(choice_brain="rule", support_above=0.8)


def test_each_judge_of_a_choice_has_its_own_bound() -> None:
    def bound(**settings: Any) -> float:
        (limit,) = (b for b in StarDTox(**settings).bounds() if b.score == "support")
        return limit.limit

    assert bound() == 0.8
    assert bound(choice_brain="rule") == SUPPORT_BOUND == 0.058
    assert bound(choice_brain="rule", support_above=0.3) == 0.3
    assert bound(support_above=0.95) == 0.95


@pytest.mark.parametrize(
    ("support", "texts"),
    [((0.01, 0.05), ["Kim", "Cannot be known"]), ((0.01, 0.07), ["Kim"])],
)
async def test_a_stored_answer_is_kept_where_the_context_decides_and_nobody_is_asked_for_another(
    support: tuple[float, float], texts: list[str]
) -> None:
    stage = Stage({RULE: [found(*support)]})
    method = of_stored_answers(DetectFirst(choice_brain="rule"))
    answer = await stage.answer(method, replace(NAMED, answer="kim."))
    assert [draft.text for draft in answer.drafts] == texts
    assert stage.order == [RULE]
    assert [agent.role for agent in method.agents()] == [RULE]


async def test_a_stored_answer_that_is_none_of_the_options_stays_missing() -> None:
    method = of_stored_answers(DetectFirst(choice_brain="rule"))
    end = await Stage({RULE: [found(0.0, 0.0)]}).end_of(method, replace(NAMED, answer="Sam"))
    assert isinstance(end, Failed)
    assert end.reason == "unreadable_reply:no_option"


async def test_a_run_without_a_language_model_needs_no_price_of_one_and_stays_finished(
    tmp_path: Path,
) -> None:
    method = of_stored_answers(DetectFirst(choice_brain="rule"))
    config = Config(models={"default": ModelConfig(model="of-no-use", params={"top_k": 3})})
    settings = RunSettings(out=str(tmp_path / "run"), prices=Prices({}), max_cost=1.0)
    asked = request_of(config, ItemList([replace(NAMED, answer="Kim")]), method, settings)
    assert not is_finished(asked)
    ended = await execute(asked, Watch())
    assert (ended.capped_by, is_finished(asked)) == (None, True)


def test_a_method_that_answers_by_itself_is_refused_for_stored_answers() -> None:
    assert of_stored_answers(DefaultPrompt()) == StoredAnswer()
    with raises_naming(UserError, "best_of_n", "stored answers", "detect_first"):
        of_stored_answers(BestOfN())


async def test_best_of_n_takes_the_best_supported_answer() -> None:
    letters = [choice("C"), choice("B"), choice("A")]
    stage = Stage({GENERATOR: letters, RULE: [found(0.7, 0.1)] * 3})
    answer = await stage.answer(BestOfN(n=3, choice_brain="rule"), NAMED)
    assert answer.text == "Kim"
    assert answer.drafts[-1].scores == {"support": 0.7}


@pytest.mark.parametrize("numbers", [(), (0.9,), (0.9, 0.1, 0.2)])
async def test_a_number_too_few_or_too_many_fails_the_item(numbers: Sequence[float]) -> None:
    stage = Stage({GENERATOR: [choice("A")], RULE: [found(*numbers)] * 3})
    result = await stage.end_of(StarDTox(choice_brain="rule"), NAMED)
    assert isinstance(result, Failed)
    assert "2 options" in result.message


def test_a_cast_that_gives_the_role_to_nobody_gives_it_to_the_judge_that_ships() -> None:
    default = ScriptedModel(lambda _: "never asked", name="m")
    cast = build_cast(Config(), {"default": default}, StarDTox(choice_brain="rule").agents())
    assert cast.describe([RULE_AGENT])["support"] == SupportModel().describe()
    assert "support" not in build_cast(Config(), {"default": default}, StarDTox().agents()).roles
