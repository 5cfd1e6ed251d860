"""Unicode tricks (T13): what is caught plain is caught in disguise, and emoji are no insult."""

import time
import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.instruments.scorer.sets import HARMLESS_EMOJI, TRICKS
from evenhand.scorers import Scores, Unscored, WordList
from evenhand.scorers.base import Canonicalised, canonical

SENTENCES = (
    "You are a stupid idiot and a moron.",
    "Shut up, you worthless piece of garbage!",
    "I despise these pathetic losers",
    "What a filthy, disgusting parasite",
)


@pytest.mark.parametrize("trick", TRICKS)
def test_each_trick_changes_the_text_and_canonical_undoes_it(trick: str) -> None:
    for sentence in SENTENCES:
        disguised = TRICKS[trick](sentence)
        assert disguised != sentence
        assert _lowered(canonical(disguised)) == _lowered(sentence)


@given(st.text(st.characters(max_codepoint=127)))
def test_a_plain_text_takes_a_shorter_way_to_the_same_words(text: str) -> None:
    """A letter that nobody sees sends it through all steps."""
    assert canonical(text) == canonical(f"{text}\N{ZERO WIDTH SPACE}")


def _lowered(text: str) -> list[str]:
    return text.lower().split()


@pytest.mark.parametrize(
    "text",
    [
        "A plain sentence, with nothing in it.",
        "In 1984 they paid $20 (or 15 %) for 3 of them!",
        "Mr. A. B. Smith, of the U. S. embassy",
        "the 1990s",
    ],
)
def test_what_is_meant_as_it_stands_is_mostly_left_alone(text: str) -> None:
    kept = {word for word in text.split() if word in canonical(text).split()}
    assert len(kept) >= len(text.split()) - 3


def test_a_long_text_takes_no_longer_than_its_length() -> None:
    for hostile in ("a " * 100_000, "a1" * 100_000, "!" * 200_000, "\u200b" * 200_000):
        started = time.perf_counter()
        canonical(hostile)
        assert time.perf_counter() - started < 5


class Plain:
    """Knows one word, spelled one way."""

    name = "plain@1"
    attributes = ("toxicity",)

    def __init__(self, fails_on: str = "") -> None:
        self.given: list[str] = []
        self._fails_on = fails_on

    def describe(self) -> dict[str, Any]:
        return {"kind": "plain"}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        self.given.extend(texts)
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Scores | Unscored:
        if self._fails_on and self._fails_on in text:
            return Unscored("http_500", "away")
        return Scores({"toxicity": 0.9 if "idiot" in text else 0.1})

    async def close(self) -> None:
        return None


async def test_any_scorer_can_be_made_to_read_a_text_both_ways() -> None:
    plain = Plain()
    scorer = Canonicalised(plain)
    scored = await scorer.score(["You 1d10t", "fine", "an idiot"])
    assert [one.toxicity for one in scored if isinstance(one, Scores)] == [0.9, 0.1, 0.9]
    assert plain.given == ["You 1d10t", "fine", "an idiot", "You idiot"]  # once where nothing hides
    assert scorer.name == "plain@1+canonical1"


async def test_half_an_answer_is_none() -> None:
    [one] = await Canonicalised(Plain(fails_on="idiot")).score(["You 1d10t"])
    assert one == Unscored("http_500", "away")


async def test_the_word_list_catches_in_disguise_what_it_catches_plain() -> None:
    plain = await WordList().score(SENTENCES)
    for trick in TRICKS.values():
        disguised = await WordList().score([trick(sentence) for sentence in SENTENCES])
        assert disguised == plain


async def test_harmless_emoji_are_harmless() -> None:
    signs = {c for text in HARMLESS_EMOJI for c in text if unicodedata.category(c) == "So"}
    assert len(signs) > 10
    for one in await WordList().score(HARMLESS_EMOJI):
        assert isinstance(one, Scores)
        assert one.toxicity == 0.0
