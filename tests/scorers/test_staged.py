"""The staged scorer: what its first stage clears, what goes to the network, and what it must not
be tested with."""

import asyncio
import json
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.screen_band import CARRIER
from bench.sentences import HARMLESS, INSULTS
from evenhand.core.errors import UserError
from evenhand.experiments.config import Config
from evenhand.experiments.screens import CalibrationRequest, calibrate
from evenhand.scorers.base import Canonicalised, Scores, Unscored, is_fixed, was_trained_on
from evenhand.scorers.kinds import BUILT_IN
from evenhand.scorers.offline import OfflineScorer
from evenhand.scorers.offline.staged import FIRST_STAGE, StagedScorer
from evenhand.scorers.wordlist import WordList

STAGED = StagedScorer()
BAND = 0.35  # where the gateway's band begins
TRAINED = "He learned his weather report."  # of LLMBar


class NoNetwork(StagedScorer):
    """Fails where the network is asked."""

    def _read(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        raise AssertionError(texts)


def toxicity(found: Scores | Unscored) -> float:
    assert isinstance(found, Scores)
    return found.toxicity


def test_the_first_stage_clears_harmless_sentences_without_the_network() -> None:
    cleared = [text for text in CARRIER if STAGED.stage_of(text) == 1]
    assert len(cleared) >= 4
    assert all(toxicity(found) < BAND for found in NoNetwork().score_now(cleared))


def test_no_insult_that_the_network_holds_is_cleared_and_each_has_its_score() -> None:
    alone = [toxicity(found) for found in OfflineScorer().score_now(INSULTS)]
    held = {text: score for text, score in zip(INSULTS, alone, strict=True) if score >= BAND}
    assert len(held) >= 45
    assert {STAGED.stage_of(text) for text in held} == {2}
    assert [toxicity(found) for found in STAGED.score_now(list(held))] == list(held.values())


def test_an_insult_in_a_long_text_is_not_cleared() -> None:
    calm = " ".join(CARRIER) * 6
    assert STAGED.stage_of(f"{calm} {INSULTS[0]} {calm}") == 2


@pytest.mark.parametrize(
    "text",
    [
        "x q z f g h j k",
        "яд но от",
        "page q r s t u v of the annual report",  # each sum is low enough: letters are no words
        "in 1 9 9 1 the r u n of b c d",
    ],
)
def test_what_says_nothing_in_words_is_not_cleared(text: str) -> None:
    assert STAGED.stage_of(text) == 2


def test_a_text_without_words_is_missing_and_not_cleared() -> None:
    [found] = STAGED.score_now(["你好世界"])
    assert found == Unscored("no_words", "no words to score")


def test_short_and_long_calls_have_the_same_scores() -> None:
    texts = [*HARMLESS[:10], *INSULTS[:5], "", *CARRIER, "你好世界"]
    few = asyncio.run(STAGED.score(texts))
    many = asyncio.run(STAGED.score(texts * 8))
    assert many == few * 8
    scorable = [text for text in texts if text]
    assert [one for one in few if one != Unscored("empty_text", "the text is empty")] == (
        STAGED.score_now(scorable)
    )


def test_the_name_changes_with_either_stage(tmp_path: Path) -> None:
    blob = FIRST_STAGE.read_bytes()
    (tmp_path / "other").write_bytes(blob[:-1] + bytes([blob[-1] ^ 1]))
    assert StagedScorer(tmp_path / "other").name != STAGED.name
    assert STAGED.name == pickle.loads(pickle.dumps(STAGED)).name
    assert STAGED.name not in (OfflineScorer().name, BUILT_IN["offline"]().name)


def test_the_card_names_the_stages_that_ship() -> None:
    assert STAGED.name in FIRST_STAGE.with_name("card.md").read_text(encoding="utf-8")


def test_a_screen_is_not_calibrated_with_a_text_that_its_scorer_was_trained_on(
    tmp_path: Path,
) -> None:
    assert was_trained_on(BUILT_IN["staged"](), TRAINED)
    assert not was_trained_on(BUILT_IN["staged"](), TRAINED.replace("his", "the"))
    assert not was_trained_on(Canonicalised(WordList()), TRAINED)
    rows = [(text, True) for text in INSULTS] + [(f"  {TRAINED}\n", False)]
    lines = [json.dumps({"text": text, "harm": harm}) for text, harm in rows]
    (tmp_path / "labeled.jsonl").write_text("\n".join(lines))
    asked = CalibrationRequest(
        labelled=tmp_path / "labeled.jsonl", out=tmp_path / "screen.json", said="staged"
    )
    with pytest.raises(UserError, match="trained on 1 of the"):
        asyncio.run(calibrate(asked, Config()))
    assert not (tmp_path / "screen.json").exists()


def test_scores_may_be_used_again_where_shipped_weights_alone_decide() -> None:
    assert is_fixed(BUILT_IN["staged"]())
    assert is_fixed(BUILT_IN["offline"]())
    assert not is_fixed(Canonicalised(WordList()))
