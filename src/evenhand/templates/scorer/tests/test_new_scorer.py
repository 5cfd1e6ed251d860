"""The scores of `new_scorer`, worked by hand."""

import asyncio

import pytest
from evenhand.scorers import Scores, Unscored

from evenhand_new_scorer import scorer


def scored(text: str, least: int = 2) -> Scores | Unscored:
    settings = scorer.NewScorerSettings
    made = settings(kind="new_scorer", least=least).scorer(None)
    [outcome] = asyncio.run(made.score([text]))
    return outcome


@pytest.mark.parametrize(
    ("text", "toxicity"),
    [("Good day to you.", 0.0), ("GO AWAY now please", 0.5), ("I SAID NO", 1.0)],
)
def test_the_score_is_the_share_of_words_in_capitals(text: str, toxicity: float) -> None:
    outcome = scored(text)
    assert isinstance(outcome, Scores)
    assert outcome.toxicity == toxicity


@pytest.mark.parametrize("text", ["", "  ", "I 1 2"])
def test_a_text_without_words_has_no_score(text: str) -> None:
    assert isinstance(scored(text), Unscored)
