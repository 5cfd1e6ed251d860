"""The offline model under its name in the config: our attributes, and figures where data is."""

from pathlib import Path

import polars as pl
import pytest

from bench.sentences import HARMLESS, INSULTS
from evenhand.experiments import config as configuration
from evenhand.instruments.scorer.sets import HARMLESS_EMOJI, TRICKS, ToxicitySets, drawn
from evenhand.scorers import ATTRIBUTES, Scorer, Scores, Unscored
from evenhand.scorers.base import score_all


@pytest.fixture(scope="module")
def offline() -> Scorer:
    return configuration.scorer_by_name(configuration.Config(), "offline")


async def test_it_gives_our_attributes_and_names_the_high_ones(offline: Scorer) -> None:
    insult, kind = await offline.score(["You are a fucking idiot.", "Good morning to you."])
    assert isinstance(insult, Scores)
    assert isinstance(kind, Scores)
    assert set(insult.values) == set(offline.attributes) <= set(ATTRIBUTES)
    assert insult.toxicity > 0.7 > kind.toxicity
    assert any(line.startswith("toxicity 0.") for line in insult.because)
    assert kind.because == ()


async def test_a_text_without_words_is_missing(offline: Scorer) -> None:
    scored = await offline.score(["", "你好世界", "\ud800"])
    assert [one.reason for one in scored if isinstance(one, Unscored)] == [
        "empty_text",
        "no_words",
        "not_text",
    ]


def test_its_name_holds_its_weights(offline: Scorer) -> None:
    name, _, rest = offline.name.partition("+")
    assert name == "offline@1"
    assert len(rest.partition("+")[0]) == 12


async def test_tricks_hide_none_of_our_insults_from_it_and_emoji_are_harmless(
    offline: Scorer,
) -> None:
    """T13 where there is no data: recall of at least 98 % of plain, here of 50 sentences."""
    plain = await _caught(offline, list(INSULTS))
    assert plain >= 0.9 * len(INSULTS)
    for trick in TRICKS.values():
        assert await _caught(offline, [trick(text) for text in INSULTS]) >= 0.98 * plain
        assert await _caught(offline, [trick(text) for text in HARMLESS]) <= 1
    assert await _caught(offline, list(HARMLESS)) == 0
    assert await _caught(offline, list(HARMLESS_EMOJI)) == 0


async def test_tricks_hide_nothing_in_recorded_texts_from_it(
    offline: Scorer, data_folder: Path, tmp_path: Path
) -> None:
    """T13 on texts of others: recall of at least 98 % of plain."""
    if not (data_folder / "rtp-decodingtrust").is_dir():
        pytest.skip(f"no recorded scores at {data_folder}; name their folder in EVENHAND_DATA")
    table = ToxicitySets(local=data_folder, cache=tmp_path).table("rtp")
    short = pl.col("text").str.len_chars() <= 120
    toxic = drawn(table.filter((pl.col("recorded") >= 0.8) & short), 60)["text"].to_list()
    plain = await _caught(offline, toxic)
    assert plain >= 50
    for trick in TRICKS.values():
        assert await _caught(offline, [trick(text) for text in toxic]) >= 0.98 * plain


async def _caught(scorer: Scorer, texts: list[str]) -> int:
    done = await score_all(scorer, texts)
    return sum(value >= 0.5 for value in done.values("toxicity") if value is not None)
