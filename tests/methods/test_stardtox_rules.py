"""StarDTox's coordinator: both bounds strict, and nothing unread ever counts as harmless."""

from collections.abc import Sequence
from typing import Any

import pytest

from evenhand.agents import Agent
from evenhand.core import Answered, Failed
from evenhand.methods import StarDTox
from evenhand.methods.evaluators import Scored
from evenhand.methods.stardtox import PERFORMANCE, SCORER, WRITER, Quality
from evenhand.scorers import ScorerModel, Scores, Unscored
from tests.errors import assert_names
from tests.stage import QUESTION, TEXT, Stage, choice, golden, harm, quality, support

GOOD = quality(90, 85, 95)
RULE = StarDTox(bias_brain="rule", performance=False)


async def test_the_stopping_rule_is_that_of_the_golden_vector() -> None:
    vector = golden("stardtox_stop")
    given = vector["inputs"]
    method = StarDTox(
        bias_brain="rule",
        max_iterations=0,
        harm_below=given["toxicity_below"],
        quality_above=given["fluency_above"],
    )
    stops = [await _stops(method, **row) for row in given["rows"]]
    assert stops == vector["expected"]["stop"]


async def _stops(method: StarDTox, toxicity: float, fluency: float) -> bool:
    async def ask(agent: Agent[Any], /, **variables: Any) -> Any:
        if agent is WRITER:
            return WRITER.reply(text="a baker.")
        if agent is SCORER:
            return Scored(toxicity=toxicity, attributes={}, because=[])
        assert agent is PERFORMANCE
        # The vector has hundredths of a percent, which a reply cannot say: built past the reader.
        traits: dict[str, Any] = {"fluency": fluency * 100, "coherence": 100, "relevance": 100}
        return Quality.model_construct(reason="", **traits)

    return (await method.answer(TEXT, ask)).stopped == "accepted"


@pytest.mark.parametrize(
    ("percent", "traits", "stopped"),
    [
        pytest.param(9, (81, 81, 81), "accepted", id="just inside both bounds"),
        pytest.param(10, (81, 81, 81), "max_iterations", id="0.10 is not below 0.1"),
        pytest.param(9, (80, 81, 81), "max_iterations", id="a fluency of 0.80 is not above 0.8"),
        pytest.param(9, (81, 80, 81), "max_iterations", id="nor is a coherence of 0.80"),
        pytest.param(9, (81, 81, 80), "max_iterations", id="nor is a relevance of 0.80"),
    ],
)
async def test_a_score_on_its_bound_does_not_pass(
    percent: int, traits: tuple[int, int, int], stopped: str
) -> None:
    stage = Stage(
        {
            "generator": ["a baker."],
            "bias_evaluator": [harm(percent)],
            "performance_evaluator": [quality(*traits)],
        }
    )
    assert (await stage.answer(StarDTox(max_iterations=0), TEXT)).stopped == stopped


@pytest.mark.parametrize(("percent", "stopped"), [(80, "max_iterations"), (81, "accepted")])
async def test_support_must_be_above_its_bound(percent: int, stopped: str) -> None:
    stage = Stage({"generator": [choice("A")], "bias_evaluator": [support(percent)]})
    assert (await stage.answer(StarDTox(max_iterations=0), QUESTION)).stopped == stopped


@pytest.mark.parametrize(
    "verdict",
    [
        pytest.param("It is fine.", id="in words"),
        pytest.param('{"reason": "fine", "harm": "0"}', id="a number in quotes"),
        pytest.param('{"reason": "fine", "harm": false}', id="false for 0"),
        pytest.param('{"reason": "fine", "harm": 0.0}', id="0.0 for 0"),
        pytest.param('{"harm": 0}', id="without a reason"),
        pytest.param('{"reason": "bad", "harm": 90, "harm": 0}', id="two verdicts at once"),
        pytest.param("", id="nothing at all"),
    ],
)
async def test_an_unreadable_verdict_fails_the_item_and_is_not_taken_for_unbiased(
    verdict: str,
) -> None:
    stage = Stage(
        {
            "generator": ["a baker."],
            "bias_evaluator": [verdict, verdict],
            "performance_evaluator": [GOOD],
        }
    )
    event = await stage.end_of(StarDTox(), TEXT)
    assert isinstance(event, Failed)
    assert event.reason.startswith("unreadable_reply:")
    assert event.calls == 4  # a draft, a verdict and its repetition, a rating
    assert [turn.texts for turn in stage.turns if turn.role == "bias_evaluator"] == [
        (verdict,),
        (verdict,),
    ]


async def test_one_more_question_rescues_an_unreadable_reply() -> None:
    stage = Stage(
        {
            "generator": ["a baker."],
            "bias_evaluator": ["harmless!", harm(3)],
            "performance_evaluator": [GOOD],
        }
    )
    event = await stage.end_of(StarDTox(), TEXT)
    assert isinstance(event, Answered)
    assert event.answer.drafts[0].scores["harm"] == 0.03
    again = stage.asked_of("bias_evaluator")[1]
    assert "harmless!" in again  # it is shown what it said
    assert "not_json" in again  # and what is wrong with it


async def test_an_answer_outside_the_options_is_unreadable() -> None:
    stage = Stage({"generator": [choice("D"), choice("d")]})
    event = await stage.end_of(StarDTox(), QUESTION)
    assert isinstance(event, Failed)
    assert event.reason == "unreadable_reply:wrong_shape"


class Scorer:
    """Scores by a rule given to it, and keeps what it was given to score."""

    name = "strange@1"
    attributes = ("toxicity",)

    def __init__(self, score: Scores | Unscored) -> None:
        self._score = score
        self.scored: list[str] = []

    def describe(self) -> dict[str, Any]:
        return {}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        self.scored.extend(texts)
        return [self._score for _ in texts]

    async def close(self) -> None:
        return None


async def test_a_scorer_that_fails_fails_the_item() -> None:
    """lm-evaluation-harness scores 0, the best there is, when its toxicity service fails."""
    scorer = Scorer(Unscored("http_500", "the service is away"))
    stage = Stage({"generator": ["a fool."]}, players={"scorer": ScorerModel(scorer)})
    event = await stage.end_of(RULE, TEXT)
    assert isinstance(event, Failed)
    assert event.reason == "scorer_failed"
    assert_names(event.message, "strange@1", "http_500", "service is away")
    assert [(turn.role, turn.error) for turn in stage.turns] == [
        ("generator", None),
        ("scorer", "scorer_failed"),
    ]


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(Scores({"toxicity": 1.3}), id="above one"),
        pytest.param(Scores({"toxicity": -0.1}), id="below nothing"),
        pytest.param(Scores({"toxicity": float("nan")}), id="not a number"),
        pytest.param(Scores({"toxicity": 0.9}, ("x" * 20_001,)), id="a reason too long to read"),
    ],
)
async def test_a_score_that_cannot_be_read_is_asked_for_again_about_the_same_text(
    score: Scores,
) -> None:
    """Not about our note that it could not be read, which would score 0."""
    scorer = Scorer(score)
    stage = Stage({"generator": ["a fool."]}, players={"scorer": ScorerModel(scorer)})
    event = await stage.end_of(RULE, TEXT)
    assert scorer.scored == ["a fool.", "a fool."]
    assert isinstance(event, Failed)
    assert event.reason == "unreadable_reply:wrong_shape"
