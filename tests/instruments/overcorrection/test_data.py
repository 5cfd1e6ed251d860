"""The benign texts: each names its group, once, and a sample covers all families."""

from pathlib import Path

import polars as pl
import pytest

from evenhand.core.errors import UserError
from evenhand.instruments.overcorrection.data import (
    BenignData,
    BenignSource,
    OverCorrectionSampling,
    sample,
)
from evenhand.statistics.metrics.refusal import moralises, names, refuses
from tests.errors import raises_naming


@pytest.fixture(scope="module")
def texts(data_folder: Path) -> pl.DataFrame:
    if not (data_folder / "hatecheck").is_dir():
        pytest.skip(f"no HateCheck at {data_folder}; name its folder in EVENHAND_DATA")
    return BenignData(local=data_folder, cache=data_folder).texts()


def test_every_text_of_the_three_sets_is_there(texts: pl.DataFrame) -> None:
    assert dict(texts["set"].value_counts().iter_rows()) == {
        "hatecheck": 45 * 7,  # templates of two functions, seven groups
        "jigsaw": 50 + 800 + 800 + 36_000,  # "I am …", "Being … is fun", "You are a fun …", names
        "paragraphs": 12 * 187,
    }
    assert texts["id"].n_unique() == len(texts)
    assert not texts.null_count().sum_horizontal()[0]


def test_a_text_names_its_group_and_nothing_else_in_it_does(texts: pl.DataFrame) -> None:
    """Else a text that has lost its group would pass for one that kept it."""
    for text, identity in texts.unique(["template", "identity"])["text", "identity"].iter_rows():
        assert names(text, identity), text
        at = text.casefold().find(identity.casefold())
        if at >= 0:  # "women" of the group "woman" is found by its variant
            assert not names(text[:at] + text[at + len(identity) :], identity), text


def test_no_text_refuses_or_lectures(texts: pl.DataFrame) -> None:
    assert not [text for text in texts["text"].to_list() if refuses(text) or moralises(text)]


def test_a_sample_has_a_third_of_each_set_and_all_families_evenly(texts: pl.DataFrame) -> None:
    drawn = sample(texts, OverCorrectionSampling(items=500, seed=1))
    sets = dict(drawn["set"].value_counts().iter_rows())
    assert sets == {"hatecheck": 167, "jigsaw": 167, "paragraphs": 166}
    for (name,), rows in drawn.group_by("set"):
        counts = rows["family"].value_counts()["count"]
        assert counts.max() - counts.min() <= 1, name  # type: ignore[operator]
    assert drawn.equals(sample(texts, OverCorrectionSampling(items=500, seed=1)))
    assert not drawn.equals(sample(texts, OverCorrectionSampling(items=500, seed=2)))


def test_a_sample_other_than_the_first_has_other_texts_where_there_are_any(
    texts: pl.DataFrame,
) -> None:
    first = sample(texts, OverCorrectionSampling(items=60))
    other = sample(texts, OverCorrectionSampling(items=60, seed=1, exclude_sample=0))
    assert not set(first["id"]) & set(other["id"])
    assert set(first["id"]) & set(sample(texts, OverCorrectionSampling(items=60, seed=1))["id"])


def test_more_texts_than_there_are_is_refused(texts: pl.DataFrame) -> None:
    with raises_naming(UserError, "hatecheck", 315, 334):
        sample(texts, OverCorrectionSampling(items=1000))


def test_an_item_is_a_task_whose_right_answer_is_the_text(texts: pl.DataFrame) -> None:
    source = BenignSource(sample(texts, OverCorrectionSampling(items=9)), {})
    items = list(source.read(0, 9))
    assert len(items) == len(source) == 9
    for item in items:
        assert item.answer == item.tags["text"]
        assert f"Text:\n{item.answer}\n\nCorrected text:" in item.prompt
        assert item.prompt.endswith("Corrected text:")  # where a raw completion goes on
