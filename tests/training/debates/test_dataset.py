"""The folder of pairs as others read it."""

import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml

from evenhand.core.errors import UserError
from evenhand.training.debates import dataset
from evenhand.training.debates.building import BuiltPairs, from_statements
from evenhand.training.debates.pairs import Pairing, Split
from tests.errors import raises_naming

from .planted import debate, everything, statement

HALF = Split(test_share=0.5)


def _built(**more: str) -> BuiltPairs:
    said = [
        statement(n, n % 10, topic=f"word{n // 10} thing{n // 10}", bias_type=kind, **more)
        for n, kind in ((n, "age" if n < 100 else "beauty") for n in range(200))
    ]
    return from_statements(said, Pairing(), HALF)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built = _built()
    dataset.write(tmp_path / "pairs", built.pairs, built.report, "mit", built.low)
    return tmp_path / "pairs"


def test_the_files_hold_the_pairs_type_by_type_and_side_by_side(folder: Path) -> None:
    built = _built()
    for side in ("train", "test"):
        for kind in ("age", "beauty"):
            rows = pl.read_parquet(folder / kind / f"{side}-00000.parquet")
            expected = [one for one in built.pairs[side] if one.bias_type == kind]
            assert rows.to_dicts() == [one.row() for one in expected]
            assert len(expected) > 0


def test_all_low_statements_of_a_trained_topic_are_there_in_a_pair_or_not(folder: Path) -> None:
    """Of ten statements of a topic, with scores 0 to 9, the first four are low."""
    pairs, rows = _built().pairs, pl.read_parquet(folder / "low-age.parquet")
    topics = {one.topic for one in pairs["train"] if one.bias_type == "age"}
    assert set(rows["topic"]) == topics
    assert sorted(rows["score_chosen"]) == sorted([0, 1, 2, 3] * len(topics))
    first = rows.row(0, named=True)
    (said,), (asked,) = first["chosen"], first["prompt"]
    number = 10 * int(first["topic"].split()[0].removeprefix("word")) + int(first["score_chosen"])
    assert said == {
        "role": "assistant",
        "content": f"word{number} speaks of thing{number} in manner{number}",
    }
    assert asked["content"].endswith(first["topic"])


def test_a_topic_without_a_pair_has_low_statements_to_learn_from(tmp_path: Path) -> None:
    """About dogs nobody said anything high; about horses nobody anything low."""
    built = from_statements(debate(), Pairing(), Split(test_share=0))
    assert {(row["topic"], row["score_chosen"]) for row in built.low} == {
        *(("cats", 2), ("cats", 3)),
        *(("dogs", 1), ("dogs", 0)),
    }
    assert built.report.to_dict()["statements"]["low_to_train"] == 4
    dataset.write(tmp_path / "pairs", built.pairs, built.report, "mit", built.low)
    assert dataset.trained_topics(tmp_path / "pairs") == {"cats", "dogs"}
    assert "4 low statements" in (tmp_path / "pairs/README.md").read_text("utf-8")


def test_datasets_loads_each_bias_type_and_all_of_them(folder: Path, tmp_path: Path) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"  # read when the library is loaded
    datasets = pytest.importorskip("datasets", reason="datasets is not installed (evenhand[train])")
    built = _built()
    for name in ("age", "beauty", "default"):
        loaded = datasets.load_dataset(str(folder), name, cache_dir=str(tmp_path / "cache"))
        for side in ("train", "test"):
            pairs = [one for one in built.pairs[side] if name in ("default", one.bias_type)]
            assert loaded[side].to_list() == [one.row() for one in pairs]


def test_the_card_names_the_configurations_and_the_licence(folder: Path) -> None:
    text = (folder / "README.md").read_text("utf-8")
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["license"] == "mit"
    assert [one["config_name"] for one in head["configs"]] == ["default", "age", "beauty"]
    for one in head["configs"]:
        for part in one["data_files"]:
            assert all((folder / path).is_file() for path in part["path"])
    assert "at most 3" in text
    assert "Paired by: same_topic" in text


def test_a_licence_that_nobody_named_is_said_to_be_unknown(tmp_path: Path) -> None:
    built = _built()
    dataset.write(tmp_path / "pairs", built.pairs, built.report, "unknown")
    text = (tmp_path / "pairs/README.md").read_text("utf-8")
    assert yaml.safe_load(text.split("---\n")[1])["license"] == "unknown"
    assert "Licence: not known." in text


def test_a_bias_type_without_held_out_topics_has_no_test_split(tmp_path: Path) -> None:
    said = [statement(0, 1), statement(1, 9)]
    built = from_statements(said, Pairing(), Split())
    dataset.write(tmp_path / "pairs", built.pairs, built.report, "mit")
    assert sorted(file.name for file in (tmp_path / "pairs/age").iterdir()) == [
        "train-00000.parquet"
    ]
    head = yaml.safe_load((tmp_path / "pairs/README.md").read_text().split("---\n")[1])
    assert [one["split"] for one in head["configs"][0]["data_files"]] == ["train"]


def test_the_topics_trained_on_are_read_back(folder: Path) -> None:
    built = _built()
    trained = dataset.trained_topics(folder)
    assert trained == {one.topic for one in built.pairs["train"]}
    assert not trained & {one.topic for one in built.pairs["test"]}
    with raises_naming(UserError, "pairs/age", "*/train-*.parquet"):
        dataset.trained_topics(folder / "age")


def test_under_any_the_topics_of_both_statements_count_as_trained_on(tmp_path: Path) -> None:
    said = [statement(0, 1, topic="cats"), statement(1, 9, topic="horses")]
    built = from_statements(said, Pairing(strategy="any"), Split(test_share=0))
    dataset.write(tmp_path / "pairs", built.pairs, built.report, "mit")
    assert dataset.trained_topics(tmp_path / "pairs") == {"cats", "horses"}


def test_an_old_data_set_is_never_mixed_with_a_new_one(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    built = _built()
    with raises_naming(UserError, folder, "--out"):
        dataset.write(folder, built.pairs, built.report, "mit")
    assert sorted(folder.rglob("*")) == before


def test_a_folder_is_there_when_all_of_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = _built()
    monkeypatch.setattr(dataset, "_BATCH", 7)
    broken = {**built.pairs, "test": [replace(built.pairs["test"][0], chosen="\ud800")]}
    with pytest.raises(UnicodeEncodeError):
        dataset.write(tmp_path / "pairs", broken, built.report, "mit")
    assert not (tmp_path / "pairs").exists()
    dataset.write(tmp_path / "pairs", built.pairs, built.report, "mit")  # the rest is no obstacle
    assert [path.name for path in tmp_path.iterdir()] == ["pairs"]
    parts = [pq.ParquetFile(path) for path in (tmp_path / "pairs").rglob("*.parquet")]
    assert sum(part.metadata.num_rows for part in parts) == len(everything(built))
    assert all(part.metadata.num_row_groups > 1 for part in parts)


@pytest.mark.parametrize(("given", "kept"), [("Physical appearance", "physical_appearance")])
def test_a_bias_type_is_named_as_its_folder(given: str, kept: str) -> None:
    said = [statement(0, 1, bias_type=given), statement(1, 9, bias_type=given)]
    (pair,) = everything(from_statements(said, Pairing(), Split()))
    assert pair.bias_type == kept


@pytest.mark.parametrize("name", ["default", "..", "/"])
def test_a_bias_type_that_is_no_folder_is_refused(name: str) -> None:
    with raises_naming(UserError, "bias type", repr(name)):
        from_statements([statement(0, 1, bias_type=name)], Pairing(), Split())
