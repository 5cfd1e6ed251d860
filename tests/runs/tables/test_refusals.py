"""What is wrong with a table is said by name before the first call; what a fingerprint sees."""

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.core.errors import UserError
from evenhand.runs.runners.prompt_files import ParquetTable
from tests.errors import raises_naming

from .writing import opened, write


def test_a_missing_column_is_named_with_those_there_and_the_option_to_change(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.parquet", {"prompt": ["p"], "said": ["a"]})
    write(tmp_path / "b.parquet", {"prompt": ["p"], "reply": ["a"]})
    with raises_naming(UserError, "b.parquet", "column 'said'", "prompt, reply", "--answer-column"):
        opened(tmp_path, answer_column="said")


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    twice = pa.table([pa.array(["a"]), pa.array(["b"])], names=["prompt", "prompt"])
    pq.write_table(twice, tmp_path / "a.parquet")
    with raises_naming(UserError, "2 columns 'prompt'"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("use", "values", "facts"),
    [
        pytest.param("prompt", pa.array([5]), ("int64", "cast it"), id="numbers"),
        pytest.param("prompt", pa.array([b"x"]), ("binary",), id="bytes"),
        pytest.param("prompt", pa.array([["x"]]), ("list<",), id="lists"),
        pytest.param("prompt", pa.nulls(1), ("null",), id="no prompt at all"),
        pytest.param("answer", pa.array([1.5]), ("double",), id="fractions"),
        pytest.param("context", pa.array([{"a": "x"}]), ("struct<",), id="structs"),
        pytest.param(
            "id", pa.array([1.0]), ("double", "whole numbers"), id="an id with a fraction"
        ),
        pytest.param("answer", pa.array([1]).dictionary_encode(), ("int64",), id="coded numbers"),
    ],
)
def test_a_column_of_another_type_is_refused_with_what_to_do(
    use: str, values: Any, facts: tuple[str, ...], tmp_path: Path
) -> None:
    path = write(tmp_path / "a.parquet", {"prompt": ["p"], "odd": values})
    with raises_naming(UserError, "a.parquet", "column 'odd'", *facts) as said:
        opened(path, **{f"{use}_column": "odd"})
    assert f"--{use}-column" in str(said.value)


def test_what_is_no_table_is_refused_by_name(tmp_path: Path) -> None:
    with raises_naming(UserError, "nothing.parquet"):
        opened(tmp_path / "nothing.parquet")
    with raises_naming(UserError, tmp_path, "*.parquet"):
        opened(tmp_path)
    for name, data in (("empty", b""), ("short", b"PAR1"), ("other", b"x" * 5_000)):
        (tmp_path / name).write_bytes(data)
        with raises_naming(UserError, tmp_path / name):
            opened(tmp_path / name)
    whole = write(tmp_path / "whole.parquet", {"prompt": ["p"] * 100}).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-9])
    with raises_naming(UserError, "cut.parquet"):
        opened(tmp_path)


def test_a_footer_longer_than_the_first_look_is_read_whole(tmp_path: Path) -> None:
    columns = {"prompt": ["p"], **{f"column {n} {'x' * 200}": [n] for n in range(500)}}
    path = write(tmp_path / "wide.parquet", columns)
    assert [item.prompt for item in opened(path).read(0, 1)] == ["p"]


def test_a_shard_that_changes_under_a_run_stops_it_instead_of_moving_its_rows(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "a.parquet", {"prompt": ["one", "two"]})
    table = opened(path)
    write(path, {"prompt": ["new", "one", "two"]})
    with raises_naming(UserError, "a.parquet", "changed"):
        list(table.read(0, 2))
    path.unlink()
    with raises_naming(UserError, "a.parquet", "does not exist"):
        list(table.read(0, 2))


def test_a_damaged_page_with_a_checksum_is_refused_and_not_read_as_text(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet",
        {"prompt": ["least", "middle", "most"]},
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )
    data = path.read_bytes()
    path.write_bytes(data.replace(b"middle", b"riddle", 1))
    with raises_naming(UserError, "a.parquet", "CRC"):
        list(opened(path).read(0, 3))


def test_the_fingerprint_tells_what_a_table_is_and_not_where_it_lies(tmp_path: Path) -> None:
    here, there = tmp_path / "here" / "answers", tmp_path / "there" / "answers"
    here.mkdir(parents=True)
    write(here / "a.parquet", {"prompt": ["one", "two"], "said": ["x", "y"]})
    write(here / "b.parquet", {"prompt": ["three"], "said": ["z"]})
    shutil.copytree(here, there)
    os.utime(there / "a.parquet", (0, 0))
    found = opened(here, answer_column="said").fingerprint()
    assert found == opened(there, answer_column="said").fingerprint()
    assert {**found, "sha256": ""} == {
        "kind": "parquet",
        "name": "answers",
        "items": 3,
        "files": 2,
        "columns": {"prompt": "prompt", "answer": "said"},
        "sha256": "",
    }


@pytest.mark.parametrize("change", ["a value", "its order", "its name", "one more", "one less"])
def test_the_fingerprint_of_a_changed_table_is_another(change: str, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"prompt": ["one", "two"]})
    write(tmp_path / "b.parquet", {"prompt": ["six", "ten"]})
    before = opened(tmp_path).fingerprint()
    if change == "a value":  # of the same length: the least and the greatest value tell
        write(tmp_path / "a.parquet", {"prompt": ["one", "own"]})
    elif change == "its order":
        (tmp_path / "a.parquet").rename(tmp_path / "c.parquet")
        (tmp_path / "b.parquet").rename(tmp_path / "a.parquet")
        (tmp_path / "c.parquet").rename(tmp_path / "b.parquet")
    elif change == "its name":
        (tmp_path / "b.parquet").rename(tmp_path / "c.parquet")
    elif change == "one more":
        write(tmp_path / "c.parquet", {"prompt": ["one"]})
    else:
        (tmp_path / "b.parquet").unlink()
    after = opened(tmp_path).fingerprint()
    assert after["sha256"] != before["sha256"]


def test_the_same_table_with_another_column_for_the_answer_is_another_source(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "a.parquet", {"prompt": ["p"], "a": ["x"], "b": ["y"]})
    one, other = (opened(path, answer_column=name).fingerprint() for name in "ab")
    assert one != other
    assert one["sha256"] == other["sha256"]


def test_a_folder_is_called_the_same_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.parquet", {"prompt": ["p"]})
    monkeypatch.chdir(tmp_path)
    ways = [".", str(tmp_path), f"{tmp_path}/", f"../{tmp_path.name}/"]
    names = {ParquetTable(way, prompt_column="prompt").fingerprint()["name"] for way in ways}
    assert names == {tmp_path.name}
