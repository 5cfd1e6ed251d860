"""The questions, and which of them are drawn."""

from pathlib import Path

import polars as pl
import pytest

from evenhand.errors import UserError
from evenhand.instruments.squad import Sampling, SquadData, SquadSource, sample


@pytest.fixture(scope="module")
def records(squad_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return SquadData(local=squad_folder, cache=tmp_path_factory.mktemp("cache")).records()


def test_the_data_has_its_questions_articles_and_halves(records: pl.DataFrame) -> None:
    assert len(records) == 11_873
    assert records["article"].n_unique() == 35
    assert records["answerable"].sum() == 5_928
    assert records["id"].n_unique() == 11_873
    assert records[:100]["article"].unique().to_list() == ["Normans"]  # why "the first N" is wrong


def test_the_default_sample_is_300_questions_over_all_articles_half_without_answer(
    records: pl.DataFrame,
) -> None:
    drawn = sample(records, Sampling())
    assert (len(drawn), drawn["answerable"].sum()) == (300, 150)
    by_article = drawn["article"].value_counts()
    assert len(by_article) == 35
    # 150 of each kind over 35 articles: 4 or 5 of each.
    assert by_article["count"].min() >= 8  # type: ignore[operator]
    assert by_article["count"].max() <= 10  # type: ignore[operator]
    assert drawn["row"].is_sorted()


def test_a_seed_draws_the_same_sample_and_another_seed_another(records: pl.DataFrame) -> None:
    first, again = (sample(records, Sampling(seed=1)) for _ in range(2))
    assert first.equals(again)
    assert not first.equals(sample(records, Sampling(seed=2)))


def test_an_odd_number_has_one_more_with_an_answer_and_all_is_all(records: pl.DataFrame) -> None:
    drawn = sample(records, Sampling(questions=7))
    assert (len(drawn), drawn["answerable"].sum()) == (7, 4)
    assert len(sample(records, Sampling(questions=None))) == 11_873
    with pytest.raises(UserError, match="lower --questions"):
        sample(records, Sampling(questions=11_873))


def test_an_item_holds_the_passage_the_question_and_the_form_of_the_answer(
    records: pl.DataFrame,
) -> None:
    source = SquadSource(records[:3], Sampling(questions=3))
    items = {one.id: one for one in source.read(0, 3)}
    assert set(items) == set(records["id"][:3])
    item = items[records["id"][0]]
    assert "In what country is Normandy located?" in item.prompt
    assert "<passage>\nThe Normans" in item.prompt
    assert "NO ANSWER" in item.prompt
    assert item.tags["golds"] == '["France","France","France","France"]'
    assert len(source) == source.fingerprint()["items"] == 3


def test_bytes_that_are_not_the_pinned_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "squad_v2").mkdir()
    (tmp_path / "squad_v2" / "dev-v2.0.json").write_text('{"data": []}')
    with pytest.raises(UserError, match="is not the file"):
        SquadData(local=tmp_path, cache=tmp_path / "cache").records()
