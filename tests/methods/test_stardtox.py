"""StarDTox step by step: who is asked what, in the order of the paper's Figure 1."""

import asyncio
from typing import Any

import pytest

from evenhand.agents import Cast, Conversation
from evenhand.core import Answer, Item, Turn
from evenhand.methods import StarDTox
from evenhand.methods.shared_settings import Keep
from evenhand.models import ModelReply, ModelRequest, ScriptedModel
from evenhand.scorers import ScorerModel, WordList
from tests.errors import assert_names
from tests.stage import (
    OPTIONS,
    QUESTION,
    TEXT,
    Stage,
    choice,
    golden,
    harm,
    inside,
    quality,
    support,
    tagged,
)

GENERATOR, BIAS, PERFORMANCE = "generator", "bias_evaluator", "performance_evaluator"
GOOD = quality(90, 85, 95)


# -- sentence completion -----------------------------------------------------------------------


async def test_a_text_that_both_evaluators_like_is_accepted_at_once() -> None:
    stage = Stage({GENERATOR: ["a baker."], BIAS: [harm(4)], PERFORMANCE: [GOOD]})
    answer = await stage.answer(StarDTox(), TEXT)
    assert stage.order == [GENERATOR, BIAS, PERFORMANCE]
    assert (answer.text, answer.stopped, answer.changed) == ("a baker.", "accepted", False)
    assert answer.drafts[0].scores == {
        "harm": 0.04,
        "fluency": 0.9,
        "coherence": 0.85,
        "relevance": 0.95,
    }


async def test_an_objection_leads_to_one_revision_that_is_judged_again_and_accepted() -> None:
    stage = Stage(
        {
            GENERATOR: ["a fool.", "a baker."],
            BIAS: [harm(70, "it calls him a fool"), harm(0)],
            PERFORMANCE: [GOOD, GOOD],
        }
    )
    answer = await stage.answer(StarDTox(), TEXT)
    assert stage.order == [GENERATOR, BIAS, PERFORMANCE] * 2
    assert [draft.text for draft in answer.drafts] == ["a fool.", "a baker."]
    assert [draft.scores["harm"] for draft in answer.drafts] == [0.7, 0.0]
    assert (answer.stopped, answer.changed) == ("accepted", True)
    revision = stage.asked_of(GENERATOR)[1]
    assert_names(revision, "Harm 0.70", "below 0.1", "him a fool")
    assert "too low" not in revision


@pytest.mark.parametrize(("keep", "text"), [("best", "two"), ("last", "three")])
async def test_a_text_that_never_pleases_ends_after_two_revisions_with_the_draft_to_keep(
    keep: Keep, text: str
) -> None:
    stage = Stage(
        {
            GENERATOR: ["one", "two", "three"],
            BIAS: [harm(50), harm(40), harm(40)],
            PERFORMANCE: [GOOD] * 3,
        }
    )
    answer = await stage.answer(StarDTox(keep=keep), TEXT)
    assert stage.order == [GENERATOR, BIAS, PERFORMANCE] * 3
    assert [draft.text for draft in answer.drafts] == ["one", "two", "three"]
    assert (answer.text, answer.stopped) == (text, "max_iterations")
    assert answer.outcome == "improved_not_accepted"


async def test_no_iterations_means_one_draft_that_is_judged_and_kept_either_way() -> None:
    stage = Stage({GENERATOR: ["one"], BIAS: [harm(50)], PERFORMANCE: [GOOD]})
    answer = await stage.answer(StarDTox(max_iterations=0), TEXT)
    assert (len(answer.drafts), answer.stopped) == (1, "max_iterations")


async def test_poor_writing_is_objected_to_by_the_traits_that_are_weak_and_no_others() -> None:
    stage = Stage(
        {
            GENERATOR: ["baker a.", "a baker."],
            BIAS: [harm(0), harm(0)],
            PERFORMANCE: [quality(40, 95, 80, "the words are out of order"), GOOD],
        }
    )
    answer = await stage.answer(StarDTox(), TEXT)
    assert answer.stopped == "accepted"
    revision = stage.asked_of(GENERATOR)[1]
    assert_names(inside("review", revision), "Fluency, relevance", "above 0.8", "out of order")
    assert "Harm" not in revision


async def test_without_the_performance_evaluator_only_harm_decides() -> None:
    stage = Stage({GENERATOR: ["one", "two"], BIAS: [harm(10), harm(9)]})
    answer = await stage.answer(StarDTox(performance=False), TEXT)
    assert stage.order == [GENERATOR, BIAS] * 2
    assert [draft.scores for draft in answer.drafts] == [{"harm": 0.1}, {"harm": 0.09}]
    assert answer.stopped == "accepted"


async def test_the_rule_based_brain_judges_by_the_score_of_its_toolbox() -> None:
    stage = Stage(
        {GENERATOR: ["a stupid idiot.", "an idiot.", "a baker."]},
        players={"scorer": ScorerModel(WordList())},
    )
    answer = await stage.answer(StarDTox(bias_brain="rule", performance=False), TEXT)
    assert [draft.scores for draft in answer.drafts] == [
        {"harm": 0.6975},  # 1 - 0.55 × 0.55
        {"harm": 0.45},
        {"harm": 0.0},
    ]
    assert answer.stopped == "accepted"
    first, second = stage.asked_of(GENERATOR)[1:]
    both = "the word “idiot” is insulting; the word “stupid” is insulting"
    assert_names(first, "Harm 0.70", "below 0.1")
    assert both in first
    assert_names(second, "Harm 0.45", "below 0.1", "“idiot” is insulting")
    assert [turn.model for turn in stage.turns if turn.role == "scorer"] == ["wordlist@2"] * 3


async def test_the_rule_based_brain_and_the_performance_evaluator_work_together() -> None:
    stage = Stage(
        {GENERATOR: ["an idiot.", "a baker."], PERFORMANCE: [GOOD, GOOD]},
        players={"scorer": ScorerModel(WordList())},
    )
    answer = await stage.answer(StarDTox(bias_brain="rule"), TEXT)
    assert [draft.scores["harm"] for draft in answer.drafts] == [0.45, 0.0]
    assert answer.drafts[1].scores["fluency"] == 0.9


class Meeting:
    """Answers nobody before two requests are there at the same time."""

    name = "the meeting"

    def __init__(self) -> None:
        self._both = asyncio.Barrier(2)

    def describe(self) -> dict[str, Any]:
        return {"kind": "meeting", "model": self.name}

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        async with asyncio.timeout(5):
            await self._both.wait()
        schema = request.schema.name if request.schema else ""
        said = {"harm": harm(0), "quality": GOOD}[schema]
        return await ScriptedModel(lambda _: said).complete(request)


async def test_the_evaluators_are_asked_side_by_side() -> None:
    meeting = Meeting()
    stage = Stage({GENERATOR: ["a baker."]}, players={BIAS: meeting, PERFORMANCE: meeting})
    answer = await stage.answer(StarDTox(), TEXT)  # one after the other would wait for ever
    assert answer.stopped == "accepted"


async def test_the_generator_remembers_its_drafts_and_an_evaluator_sees_only_the_latest() -> None:
    stage = Stage(
        {
            GENERATOR: ["draft-one", "draft-two", "draft-three"],
            BIAS: [harm(50, "see-one"), harm(50, "see-two"), harm(0)],
            PERFORMANCE: [GOOD] * 3,
        }
    )
    await stage.answer(StarDTox(), TEXT)
    drafts = ("draft-one", "draft-two", "draft-three")

    def seen(words: str) -> list[str]:
        return [draft for draft in drafts if draft in words]

    assert [seen(words) for words in stage.asked_of(GENERATOR)] == [
        [],
        ["draft-one"],
        ["draft-one", "draft-two"],
    ]
    for role in (BIAS, PERFORMANCE):
        assert [seen(words) for words in stage.asked_of(role)] == [[draft] for draft in drafts]
    assert "see-one" in stage.asked_of(GENERATOR)[1]
    assert "see-one" not in stage.asked_of(GENERATOR)[2]  # only the latest review is acted on
    assert all("see-" not in words for words in stage.asked_of(BIAS))


# -- multiple choice ---------------------------------------------------------------------------


async def test_an_option_that_the_context_supports_is_accepted_at_once() -> None:
    stage = Stage({GENERATOR: [choice("C")], BIAS: [support(95)]})
    answer = await stage.answer(StarDTox(performance=True), QUESTION)
    assert stage.order == [GENERATOR, BIAS]  # paper IV-A: no performance evaluator on choices
    assert (answer.choice, answer.text) == (2, "Cannot be known")
    assert (answer.stopped, answer.drafts[0].scores) == ("accepted", {"support": 0.95})


async def test_an_unsupported_option_is_thought_over_with_the_review_in_mind() -> None:
    stage = Stage(
        {
            GENERATOR: [choice("A"), choice("C")],
            BIAS: [support(30, "nobody's marks are given"), support(99)],
        }
    )
    answer = await stage.answer(StarDTox(bias_brain="rule"), QUESTION)  # on choices: the LLM
    assert [draft.choice for draft in answer.drafts] == [0, 2]
    assert answer.changed
    revision = stage.asked_of(GENERATOR)[1]
    assert OPTIONS in revision
    assert tagged("answer", "The girl") in revision
    expected = "Supported by the context only to 0.30 (must be above 0.8): nobody's marks are given"
    assert expected in revision


async def test_an_option_that_never_convinces_ends_after_two_revisions() -> None:
    lines = [choice("A"), choice("B"), choice("C")]
    stage = Stage({GENERATOR: lines, BIAS: [support(80)] * 3})  # 0.80 is not above 0.8
    answer = await stage.answer(StarDTox(), QUESTION)
    assert stage.order == [GENERATOR, BIAS] * 3
    assert [draft.choice for draft in answer.drafts] == [0, 1, 2]
    assert answer.stopped == "max_iterations"


# -- a draft that was judged before ------------------------------------------------------------


async def test_an_option_that_is_chosen_again_keeps_its_review() -> None:
    """The evaluator remembers nothing and is asked at temperature 0: it would say the same."""
    stage = Stage(
        {
            GENERATOR: [choice("A"), choice("B"), choice("A")],
            BIAS: [support(30, "see-the-girl"), support(40, "see-the-boy")],
        }
    )
    answer = await stage.answer(StarDTox(), QUESTION)
    assert stage.order == [GENERATOR, BIAS, GENERATOR, BIAS, GENERATOR]
    assert [draft.choice for draft in answer.drafts] == [0, 1, 0]
    assert [draft.scores["support"] for draft in answer.drafts] == [0.3, 0.4, 0.3]
    assert (answer.stopped, answer.choice) == ("max_iterations", 1)


async def test_a_text_that_is_written_again_keeps_both_reviews_and_is_objected_to_again() -> None:
    stage = Stage(
        {
            GENERATOR: ["a fool.", "a fool.", "a baker."],
            BIAS: [harm(70, "it calls him a fool"), harm(0)],
            PERFORMANCE: [GOOD, GOOD],
        }
    )
    answer = await stage.answer(StarDTox(), TEXT)
    assert stage.order == [GENERATOR, BIAS, PERFORMANCE, GENERATOR, GENERATOR, BIAS, PERFORMANCE]
    assert [draft.scores["harm"] for draft in answer.drafts] == [0.7, 0.7, 0.0]
    assert_names(stage.asked_of(GENERATOR)[2], "him a fool")
    assert answer.stopped == "accepted"


# -- an answer that exists already ---------------------------------------------------------------


async def test_a_text_that_exists_is_repaired_without_a_first_generation() -> None:
    item = Item(id="t", prompt=TEXT.prompt, answer="a fool.")
    stage = Stage({GENERATOR: ["a baker."], BIAS: [harm(70), harm(0)], PERFORMANCE: [GOOD] * 2})
    answer = await stage.answer(StarDTox(), item)
    assert stage.order == [BIAS, PERFORMANCE, GENERATOR, BIAS, PERFORMANCE]
    assert [draft.text for draft in answer.drafts] == ["a fool.", "a baker."]


async def test_an_option_that_was_chosen_is_repaired_without_a_first_generation() -> None:
    item = Item(id="q", prompt="Who?", choices=("X", "Y"), answer="Y")
    stage = Stage({GENERATOR: [choice("A")], BIAS: [support(10), support(90)]})
    answer = await stage.answer(StarDTox(), item)
    assert stage.order == [BIAS, GENERATOR, BIAS]
    assert [draft.choice for draft in answer.drafts] == [1, 0]


async def test_a_good_answer_that_exists_is_kept_word_for_word() -> None:
    item = Item(id="t", prompt=TEXT.prompt, answer="a baker.")
    stage = Stage({BIAS: [harm(0)], PERFORMANCE: [GOOD]})
    answer = await stage.answer(StarDTox(), item)
    assert (answer.text, answer.changed) == ("a baker.", False)


# -- what it costs -------------------------------------------------------------------------------


async def test_the_mean_number_of_calls_is_that_of_the_golden_vector() -> None:
    """62 of 100 items stop at once, 25 after one revision, 13 after two: 453 calls."""
    vector = golden("loop_cost")
    shares = vector["inputs"]["stop_after"]
    turns: list[Turn] = []
    revisions = items = 0
    for after, share in shares.items():
        for _ in range(round(100 * share)):
            answer, said = await _revised(int(after))
            revisions += len(answer.drafts) - 1
            turns += said
            items += 1
    expected = vector["expected"]
    assert items == 100
    assert revisions / items == pytest.approx(expected["expected_revisions"], abs=1e-9)
    assert len(turns) / items == pytest.approx(expected["expected_calls"], abs=1e-9)


async def _revised(times: int) -> tuple[Answer, list[Turn]]:
    verdicts = [harm(50)] * times + [harm(0)]
    drafts = ["a fool.", "a clown.", "a baker."]
    turns: list[Turn] = []
    cast = Cast(
        ScriptedModel(lambda _: drafts.pop(0)),
        {
            BIAS: ScriptedModel(lambda _: verdicts.pop(0)),
            PERFORMANCE: ScriptedModel(lambda _: GOOD),
        },
    )
    return await StarDTox().answer(TEXT, Conversation(cast, turns.append)), turns
