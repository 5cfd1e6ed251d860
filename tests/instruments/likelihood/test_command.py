"""`evenhand measure likelihood` and `evenhand compare` as a user runs them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.experiments.measuring import draw_sets
from evenhand.instruments._contract import DataFolder
from evenhand.instruments.subtler_biases.instrument import rows as rows_of_the_file
from evenhand.runs.store import RunReader
from evenhand.training.debates.building import templates
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names

__all__ = ["endpoint", "evenhand"]  # the fixtures


@pytest.fixture
def data(sets: DataFolder, data_folder: Path) -> str:
    return str(data_folder)


def _measured(run: Run, data: str, weights: Path, out: str, *more: str) -> dict[str, Any]:
    ran = run(
        "measure", "likelihood", "--weights", str(weights), "--out", out, "--json", *more,
        EVENHAND_DATA=data, OMP_NUM_THREADS="1",
    )  # fmt: skip
    assert ran.returncode in (0, 2), ran.stderr  # 2: the tiny model reads only 64 bytes
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def test_local_weights_are_measured_and_compared(
    evenhand: Run, data: str, tiny: Path, tiny_with_start: Path, tmp_path: Path
) -> None:
    asked = ("--sets", "occupations,winobias", "--sample", "60")
    before = _measured(evenhand, data, tiny, "a", *asked)
    occupations, winobias = before["sets"]
    assert occupations["scores"]["coverage"]["coverage"] == 1.0
    assert winobias["scores"]["coverage"]["by_reason"].keys() <= {"too_long"}
    first = winobias["scores"]["estimates"][0]
    assert first["name"] == "stereotype_score"
    assert first["clusters"] > 10
    run = RunReader(tmp_path / "a/winobias")
    assert run.record.cast["default"]["start"] == "<s>"
    assert "other_start" not in winobias["further"]  # this tokenizer has one special token
    assert (tmp_path / "a/winobias/report.parquet").is_file()
    _measured(evenhand, data, tiny_with_start, "b", *asked)
    compared = evenhand("compare", "a", "b", "--json")
    assert compared.returncode == 0, compared.stderr
    found = json.loads(compared.stdout)
    assert [one["benchmark"] for one in found["sets"]] == ["winobias", "occupations"]
    one_set = evenhand("compare", "a/winobias", "b/winobias")
    assert "stereotype score" in one_set.stdout


def test_a_single_set_is_a_run_folder_as_any_other(
    evenhand: Run, data: str, tiny: Path, tmp_path: Path
) -> None:
    _measured(evenhand, data, tiny, "a", "--sets", "occupations")
    assert RunReader(tmp_path / "a").record.source["benchmark"] == "occupations"
    shown = evenhand("runs", "show", "a")
    assert (shown.returncode, "likelihood" in shown.stdout) == (0, True), shown.stderr
    several = evenhand(
        "measure", "likelihood", "--weights", str(tiny), "--out", "a", EVENHAND_DATA=data
    )
    assert (several.returncode, "new folder" in several.stderr) == (1, True)


def test_contexts_of_the_training_side_of_pairs_are_left_out(
    sets: DataFolder, tmp_path: Path
) -> None:
    rows = rows_of_the_file(sets)
    named = templates(rows)
    folder = tmp_path / "beauty"
    folder.mkdir()
    table = pa.table({"topic": [named[0]], "topic_rejected": [named[0]]})
    pq.write_table(table, folder / "train-00000.parquet")
    given = {"all": True, "unseen": tmp_path}
    drawn = draw_sets(["subtler_biases", "winogender"], sets, given)
    first, second = (source.fingerprint() for source in drawn.values())
    same = {
        row["context"].strip() for row, name in zip(rows, named, strict=True) if name == named[0]
    }
    assert len(same) > 1  # one template, several contexts
    left_out = [n for n, row in enumerate(rows) if row["context"].strip() in same]
    asked = {item.id for item in drawn["subtler_biases"].read(0, len(rows))}
    assert not asked & {f"subtler_biases/{n}" for n in left_out}
    assert (first["left_out"], first["items"]) == (len(left_out), len(rows) - len(left_out))
    assert second["left_out"] == 0


def test_what_is_wrong_is_said_before_anything_is_asked(
    evenhand: Run, data: str, tmp_path: Path
) -> None:
    ran = evenhand(
        "measure", "likelihood", "--weights", "nowhere", "--out", "x", EVENHAND_DATA=data
    )
    assert (ran.returncode, "from-gguf" in ran.stderr) == (1, True)
    ran = evenhand("measure", "likelihood", "--sets", "crows", "--out", "x", EVENHAND_DATA=data)
    assert_names(ran.stderr, "'crows'", "crows_pairs")
    # The loopback server answers chats; it echoes no prompt.
    ran = evenhand(
        "measure", "likelihood", "--sets", "occupations", "--out", "x", EVENHAND_DATA=data
    )
    assert (ran.returncode, "--weights" in ran.stderr) == (1, True), ran.stderr
    assert not (tmp_path / "x").exists()
