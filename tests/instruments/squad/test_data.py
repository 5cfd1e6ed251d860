"""The questions, and which of them are drawn."""

from pathlib import Path

import polars as pl
import pytest

from evenhand.agents import Cast
from evenhand.core.errors import UserError
from evenhand.findings.report import report
from evenhand.instruments._contract import DataFolder
from evenhand.instruments.squad.instrument import Squad, SquadOptions
from evenhand.instruments.squad.source import SquadData, SquadSampling, SquadSource, sample
from evenhand.methods import DefaultPrompt
from evenhand.models import ScriptedModel
from evenhand.runs.runners import Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader
from tests.errors import raises_naming


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
    drawn = sample(records, SquadSampling())
    assert (len(drawn), drawn["answerable"].sum()) == (300, 150)
    by_article = drawn["article"].value_counts()
    assert len(by_article) == 35
    # 150 of each kind over 35 articles: 4 or 5 of each.
    assert by_article["count"].min() >= 8  # type: ignore[operator]
    assert by_article["count"].max() <= 10  # type: ignore[operator]
    assert drawn["row"].is_sorted()


def test_a_seed_draws_the_same_sample_and_another_seed_another(records: pl.DataFrame) -> None:
    first, again = (sample(records, SquadSampling(seed=1)) for _ in range(2))
    assert first.equals(again)
    assert not first.equals(sample(records, SquadSampling(seed=2)))


def test_an_odd_number_has_one_more_with_an_answer_and_all_is_all(records: pl.DataFrame) -> None:
    drawn = sample(records, SquadSampling(questions=7))
    assert (len(drawn), drawn["answerable"].sum()) == (7, 4)
    assert len(sample(records, SquadSampling(questions=None))) == 11_873
    with raises_naming(UserError, 5928, 5937, "--questions"):
        sample(records, SquadSampling(questions=11_873))


def test_an_item_holds_the_passage_the_question_and_the_form_of_the_answer(
    records: pl.DataFrame,
) -> None:
    source = SquadSource(records[:3], SquadSampling(questions=3))
    items = {one.id: one for one in source.read(0, 3)}
    assert set(items) == set(records["id"][:3])
    item = items[records["id"][0]]
    question = "In what country is Normandy located?"
    assert question in item.prompt
    assert "<passage>\nThe Normans" in item.prompt
    assert "NO ANSWER" in item.prompt
    assert item.tags["golds"] == '["France","France","France","France"]'
    assert len(source) == source.fingerprint()["items"] == 3


def test_bytes_that_are_not_the_pinned_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "squad_v2").mkdir()
    (tmp_path / "squad_v2" / "dev-v2.0.json").write_text('{"data": []}')
    with raises_naming(UserError, "squad_v2/dev-v2.0.json", tmp_path, "EVENHAND_DATA"):
        SquadData(local=tmp_path, cache=tmp_path / "cache").records()


def test_the_papers_hundred_are_the_first_of_the_file(records: pl.DataFrame) -> None:
    drawn = sample(records, SquadSampling(first=100))
    assert drawn["row"].to_list() == list(range(100))
    assert SquadSampling(first=100).describe() == {"first": 100, "seed": 0}


def test_a_closed_book_is_the_same_question_without_its_passage(records: pl.DataFrame) -> None:
    opened, closed = (
        SquadSource(records[:3], SquadSampling(questions=3), closed_book=closed)
        for closed in (False, True)
    )
    for one, other in zip(opened.read(0, 3), closed.read(0, 3), strict=True):
        assert (one.id, one.tags) == (other.id, other.tags)
        passage = one.prompt.split("<passage>\n")[1].split("\n</passage>")[0]
        question = one.prompt.split("<question>")[1].split("</question>")[0]
        assert passage not in other.prompt
        assert question in other.prompt
        assert "NO ANSWER" in other.prompt
    ours, theirs = opened.fingerprint(), closed.fingerprint()
    # The same questions, so that the two arms are compared; other words, so that neither is
    # resumed as the other.
    assert (ours["sha256"], ours["sampling"]) == (theirs["sha256"], theirs["sampling"])
    assert list(theirs["prompt"]) == ["squad/recall@1"]
    assert ours["prompt"] != theirs["prompt"]


async def test_a_report_of_a_closed_book_says_so(records: pl.DataFrame, tmp_path: Path) -> None:
    for name in ("closed", "opened"):
        source = SquadSource(records[:3], SquadSampling(first=3), closed_book=name == "closed")
        plan = RunPlan(method=DefaultPrompt(), cast=Cast(ScriptedModel(lambda _: "France")),
                       source=source)  # fmt: skip
        await run(plan, tmp_path / name, progress=Progress(), stop=StopSignal())
    closed, opened = (
        report(Squad(), RunReader(tmp_path / name)).notes for name in ("closed", "opened")
    )
    assert closed[-1].startswith("Closed book:")
    assert len(closed) == len(opened) + 1


def test_options_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    squad, data = Squad(), DataFolder(local=None, cache=tmp_path)
    with raises_naming(UserError, "--first", "--questions", "--all"):
        squad.source(data, SquadOptions(first=100, all=True))
    with raises_naming(UserError, "--answers", "--closed-book"):
        of_file = {"closed_book": True, "answers": tmp_path / "answers.json"}
        squad.questions(data, squad.options_from(of_file))
