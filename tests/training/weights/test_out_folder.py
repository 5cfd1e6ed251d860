"""What `evenhand train --out DIR` reads, writes and deletes: plain files of a folder of its own."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.core.errors import UserError
from evenhand.training import cards, record
from evenhand.training.data import rows
from evenhand.training.folders import claim, require_model, write
from tests.errors import assert_names, raises_naming

OWNED = ("model", "adapter", "trained", "checkpoints", ".model.part", "logs")
FILES = ("train.json", ".train.json.part", "job.json", ".job.json.part")
DEEPER = ("checkpoints/checkpoint-2", "checkpoints/.checkpoint-2.part", "model/a/b", "adapter/x")


def _train(model: Path, pairs: Path, out: Path) -> None:
    arguments = ["train", "sft", "--model", str(model), "--pairs", str(pairs), "--out", str(out)]
    CliRunner().invoke(app, arguments, catch_exceptions=False)


def _all(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("name", ["model", "adapter", "trained", "checkpoints"])
def test_a_folder_that_no_training_made_is_left_as_it_is(
    tiny: Path, toy_pairs: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "NOTES.txt").write_text("precious")
    before = _all(tmp_path)
    with raises_naming(UserError, name, "train.json", "--out"):
        _train(tiny, toy_pairs, tmp_path)
    assert _all(tmp_path) == before


@pytest.mark.parametrize("place", ["model", "base", "."])
def test_a_model_inside_the_folder_that_is_written_is_refused(
    tiny: Path, toy_pairs: Path, tmp_path: Path, place: str
) -> None:
    shutil.copytree(tiny, tmp_path / place, dirs_exist_ok=True)
    (tmp_path / "train.json").write_text("{}")
    before = _all(tmp_path)
    with raises_naming(UserError, tmp_path / place, "--out"):
        _train(tmp_path / place, toy_pairs, tmp_path)
    assert _all(tmp_path) == before


def _link(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def _dangling(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "new")


def _pipe(path: Path, outside: Path) -> None:
    os.mkfifo(path)  # opened, it would wait for ever


def _device(path: Path, outside: Path) -> None:
    path.symlink_to("/dev/zero")  # read, it would fill the memory


@pytest.mark.parametrize("plant", [_link, _dangling, _pipe, _device])
@pytest.mark.parametrize("name", [*OWNED, *FILES, *DEEPER])
def test_nothing_outside_the_folder_is_reached_through_it(
    tmp_path: Path, plant: Callable[[Path, Path], None], name: str
) -> None:
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    (outside / "taxes.pdf").write_text("precious")
    (out / name).parent.mkdir(parents=True)
    record.save(out, {"state": "running"})
    (out / name).unlink(missing_ok=True)
    plant(out / name, outside)
    before = _all(outside)
    with raises_naming(UserError, out / name, "link", "--out"):
        claim(out)
    assert _all(outside) == before


def test_a_record_is_written_beside_another_name_of_the_same_file(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    (tmp_path / "train.json").hardlink_to(outside)
    (tmp_path / ".train.json.part").hardlink_to(outside)
    write(tmp_path / "train.json", "ours")
    assert outside.read_text() == "precious"
    assert (tmp_path / "train.json").read_text() == "ours"


def test_cards_and_probes_are_written_over_links_and_not_through_them(
    toy_pairs: Path, tmp_path: Path
) -> None:
    model, outside = tmp_path / "model", tmp_path / "outside"
    model.mkdir()
    outside.write_text("{}")
    for name in ("README.md", "card.json", "results.json"):
        (model / name).symlink_to(outside)
        (model / f".{name}.part").symlink_to(outside)
    comparison = tmp_path / "bbq.json"
    comparison.write_text('{"guardrails": []}')
    told: dict[str, Any] = {"recipe": {}, "metrics": {}, "versions": {}}
    cards.write_model_card(model, stage="sft", base=model, pairs=toy_pairs, record=told)
    cards.renew(model, [comparison])
    assert outside.read_text() == "{}"
    assert_names((model / "README.md").read_text(), "sft", "less bias")
    assert not any(path.is_symlink() for path in model.iterdir())


def test_names_of_any_form_beside_ours_are_neither_refused_nor_touched(tmp_path: Path) -> None:
    for name in ("notes.txt", "model[1]", "*", "checkpoints.old", "ключ", " ", "-rf"):
        (tmp_path / name).write_text("precious")
    claim(tmp_path)
    assert len(_all(tmp_path)) == 7


@pytest.mark.parametrize("said", ["", "{", "[1]", "null", '"x"', "7"])
def test_a_record_of_another_form_is_refused_in_words(tmp_path: Path, said: str) -> None:
    (tmp_path / "train.json").write_text(said)
    with raises_naming(UserError, tmp_path / "train.json", "--out"):
        record.load(tmp_path)


def test_a_pipe_among_what_is_read_is_not_opened(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    model, pairs = tmp_path / "model", tmp_path / "pairs"
    shutil.copytree(tiny, model)
    shutil.copytree(toy_pairs, pairs)
    os.mkfifo(model / "tokenizer.model")
    os.mkfifo(pairs / "age" / "train-00001.parquet")
    with raises_naming(UserError, model / "tokenizer.model", "folder"):
        require_model(model)
    with raises_naming(UserError, pairs / "age" / "train-00001.parquet", "file"):
        rows(pairs)


def test_pairs_that_are_no_parquet_are_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "age").mkdir()
    (tmp_path / "age" / "train-00000.parquet").write_bytes(b"PAR1 or not")
    with raises_naming(UserError, "train-00000.parquet", "as Parquet"):
        rows(tmp_path)


def test_a_training_that_ended_before_its_first_checkpoint_can_begin_again(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    record.save(tmp_path, {"state": "running"})
    (tmp_path / "checkpoints").mkdir()
    claim(tmp_path, tiny, toy_pairs)
    assert json.loads((tmp_path / "train.json").read_text())["state"] == "running"
