"""`evenhand measure likelihood` and `evenhand compare` as a user runs them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.conftest import Run, endpoint, evenhand
from evenhand.cli.measure_likelihood import draw_sets
from evenhand.debates.items import templates
from evenhand.instruments.likelihood_sets import LikelihoodSets
from evenhand.instruments.option_sets import OptionSampling

__all__ = ["endpoint", "evenhand"]  # the fixtures


@pytest.fixture
def data(sets: LikelihoodSets, data_folder: Path) -> str:
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
    evenhand: Run, data: str, tiny: Path, tiny_with_start: Path
) -> None:
    asked = ("--sets", "occupations,winobias", "--sample", "60")
    before = _measured(evenhand, data, tiny, "a", *asked)
    occupations, winobias = before["sets"]
    assert occupations["coverage"]["coverage"] == 1.0
    assert winobias["coverage"]["by_reason"].keys() <= {"too_long"}
    assert winobias["estimates"][0]["name"] == "stereotype_score"
    assert winobias["estimates"][0]["clusters"] > 10
    assert before["model"]["start_precedes"] == "its first token alone"
    _measured(evenhand, data, tiny_with_start, "b", *asked)
    compared = evenhand("compare", "a", "b", "--json")
    assert compared.returncode == 0, compared.stderr
    found = json.loads(compared.stdout)
    assert [one["set"] for one in found["sets"]] == ["occupations", "winobias"]
    assert [one["set"] for one in found["primary"]] == ["winobias"]
    shown = evenhand("compare", "a", "b")
    assert "stereotype score" in shown.stdout


def test_contexts_of_the_training_side_of_pairs_are_left_out(
    sets: LikelihoodSets, tmp_path: Path
) -> None:
    rows = sets.subtler_rows()
    named = templates(rows)
    folder = tmp_path / "beauty"
    folder.mkdir()
    table = pa.table({"topic": [named[0]], "topic_rejected": [named[0]]})
    pq.write_table(table, folder / "train-00000.parquet")
    whole = OptionSampling(items=None)
    first, second = draw_sets(sets, "subtler_biases,winogender", whole, unseen=tmp_path)
    same = {
        row["context"].strip() for row, name in zip(rows, named, strict=True) if name == named[0]
    }
    assert len(same) > 1  # one template, several contexts
    assert not same & {one.topic for one in first.items}
    assert len(first.items) + first.left_out == len(rows)
    assert second.left_out == 0


def test_what_is_wrong_is_said_before_anything_is_asked(
    evenhand: Run, data: str, tmp_path: Path
) -> None:
    ran = evenhand(
        "measure", "likelihood", "--weights", "nowhere", "--out", "x", EVENHAND_DATA=data
    )
    assert (ran.returncode, "from-gguf" in ran.stderr) == (1, True)
    ran = evenhand("measure", "likelihood", "--sets", "crows", "--out", "x", EVENHAND_DATA=data)
    assert "there is no set 'crows'" in ran.stderr
    # The loopback server answers chats; it echoes no prompt.
    ran = evenhand(
        "measure", "likelihood", "--sets", "occupations", "--out", "x", EVENHAND_DATA=data
    )
    assert (ran.returncode, "--weights" in ran.stderr) == (1, True), ran.stderr
    assert not (tmp_path / "x").exists()
