"""StarDTox on texts: feedback that says what, where and of which kind; texts to be continued."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from evenhand.agents import Cast, Conversation
from evenhand.core import Failed, Item
from evenhand.methods import StarDTox, named
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.scorers import ScorerModel, Scores, Unscored
from tests.errors import assert_names
from tests.stage import TEXT, Stage, harm, inside, quality, words_of

GENERATOR, BIAS, PERFORMANCE = "generator", "bias_evaluator", "performance_evaluator"
GOOD = quality(90, 85, 95)
RULE = StarDTox(bias_brain="rule", performance=False)


class Listed:
    """A scorer whose every outcome is written down, by the text."""

    name = "listed@1"
    attributes = ("toxicity", "insult", "identity_attack")

    def __init__(self, outcomes: dict[str, Scores | Unscored]) -> None:
        self._outcomes = outcomes

    def describe(self) -> dict[str, Any]:
        return {}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return [self._outcomes[text] for text in texts]

    async def close(self) -> None:
        return None


def _stage(drafts: Sequence[str], outcomes: dict[str, Scores | Unscored]) -> Stage:
    return Stage({GENERATOR: drafts}, players={"scorer": ScorerModel(Listed(outcomes))})


# -- what the reviser is told --------------------------------------------------------------------


async def test_the_feedback_names_what_is_wrong_and_every_attribute_that_is_too_high() -> None:
    stage = _stage(
        ["a fool.", "a baker."],
        {
            "a fool.": Scores(
                {"toxicity": 0.72, "identity_attack": 0.1, "threat": 0.09, "insult": 0.91},
                ("“fool” is an insult",),
            ),
            "a baker.": Scores({"toxicity": 0.02, "insult": 0.01}),
        },
    )
    answer = await stage.answer(RULE, TEXT)
    told = stage.asked_of(GENERATOR)[1]
    kinds = "insult 0.91; identity attack 0.10"  # the threat of 0.09 is below 0.1
    review = inside("review", told)
    assert_names(review, "Harm 0.72", "below 0.1", "is an insult")
    assert kinds in review
    assert "threat" not in told
    assert answer.drafts[0].scores["threat"] == 0.09  # kept all the same
    assert answer.drafts[1].scores == {"harm": 0.02, "insult": 0.01}
    assert answer.stopped == "accepted"


async def test_toxicity_alone_decides() -> None:
    """Paper III-D has a bound for toxicity. An attribute has a scale of its own."""
    stage = _stage(["a fool."], {"a fool.": Scores({"toxicity": 0.09, "insult": 0.8})})
    answer = await stage.answer(RULE, TEXT)
    assert (answer.stopped, answer.drafts[0].scores) == ("accepted", {"harm": 0.09, "insult": 0.8})


async def test_a_scorer_without_words_still_gets_its_objection_across() -> None:
    stage = _stage(
        ["a fool.", "a baker."],
        {"a fool.": Scores({"toxicity": 0.5}), "a baker.": Scores({"toxicity": 0.0})},
    )
    await stage.answer(RULE, TEXT)
    assert_names(inside("review", stage.asked_of(GENERATOR)[1]), "Harm 0.50", "below 0.1", "toxic")


async def test_an_attribute_does_not_pass_for_a_weakness_of_the_writing() -> None:
    stage = Stage(
        {GENERATOR: ["a baker."], PERFORMANCE: [GOOD]},
        players={"scorer": ScorerModel(Listed({"a baker.": Scores({"toxicity": 0, "insult": 0})}))},
    )
    answer = await stage.answer(StarDTox(bias_brain="rule"), TEXT)
    assert answer.stopped == "accepted"
    assert list(answer.drafts[0].scores) == [
        "harm",
        "insult",
        "fluency",
        "coherence",
        "relevance",
    ]


async def test_a_revision_that_cannot_be_scored_does_not_replace_the_draft_before_it() -> None:
    stage = _stage(
        ["a fool.", "a baker."],
        {"a fool.": Scores({"toxicity": 0.5}), "a baker.": Unscored("timeout", "5 s")},
    )
    answer = await stage.answer(RULE, TEXT)
    assert (answer.text, answer.stopped, answer.outcome) == ("a fool.", "judge_failed", "unchanged")
    assert [draft.text for draft in answer.drafts] == ["a fool.", "a baker."]


async def test_as_in_the_paper_a_revision_that_cannot_be_scored_fails_the_item() -> None:
    stage = _stage(
        ["a fool.", "a baker."],
        {"a fool.": Scores({"toxicity": 0.5}), "a baker.": Unscored("timeout", "5 s")},
    )
    event = await stage.end_of(replace(RULE, keep="last"), TEXT)
    assert isinstance(event, Failed)
    assert event.reason == "scorer_failed"
    assert event.calls == 4


async def test_the_scorer_is_given_the_draft_and_nothing_else() -> None:
    """Of a continuation the prompt is not scored: it is toxic by choice."""
    stage = _stage(["a baker."], {"a baker.": Scores({"toxicity": 0.0})})
    await stage.answer(RULE, TEXT)  # any other text would be a KeyError
    assert [turn.role for turn in stage.turns] == [GENERATOR, "scorer"]


# -- prefixes that a server can keep -------------------------------------------------------------


async def test_each_revision_begins_with_all_that_the_one_before_had_but_its_review() -> None:
    stage = Stage(
        {GENERATOR: ["one", "two", "three"], BIAS: [harm(50), harm(60), harm(0)]},
    )
    await stage.answer(StarDTox(performance=False), TEXT)
    first, second = stage.asked_of(GENERATOR)[1:]
    shared = first[: first.index("The reviewers say")].rstrip()
    assert second.startswith(shared)


# -- a text to be continued is a task like any other ----------------------------------------------

OPENING = "So if you ask me, the new neighbour is"
CONTINUATION = Item(id="c", prompt=f"Write what comes next, and nothing else.\n\n{OPENING}")
TEXT_METHODS = (
    "default",
    "fairness",
    "self_debias_reprompting",
    "fair_thinking",
    "self_refine",
    "best_of_n",
    "stardtox",
)


@pytest.mark.parametrize("name", TEXT_METHODS)
async def test_every_text_method_continues_a_text_without_knowing_it(name: str) -> None:
    """The item words the task. The text stands last, so that raw completions go on from it too."""
    asked: list[str] = []

    def say(request: ModelRequest) -> str:
        asked.append(words_of(request))
        replies = {
            "harm": harm(0),
            "quality": GOOD,
            "view": '{"view": "be fair"}',
            "feedback": '{"feedback": "none", "stop": true}',
        }
        return replies[request.schema.name] if request.schema else "a baker."

    conversation = Conversation(Cast(ScriptedModel(say)), lambda _: None)
    answer = await named(name)().answer(CONTINUATION, conversation)
    assert answer.text == "a baker."
    assert all(OPENING in words for words in asked)
