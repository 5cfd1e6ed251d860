"""Tables behind a URL, through fsspec."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from evenhand.core.errors import UserError
from evenhand.runs.runners.prompt_files import ParquetTable
from tests.errors import raises_naming

from .writing import opened, write


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Two shards and what is no shard, on disk and as memory://bucket/answers."""
    write(tmp_path / "a.parquet", {"prompt": ["one", "two", "three"]}, [2, 1])
    write(tmp_path / "b.parquet", {"prompt": ["four"]})
    (tmp_path / "_SUCCESS").touch()
    system = fsspec.filesystem("memory")
    for path in tmp_path.iterdir():
        system.pipe_file(f"/bucket/answers/{path.name}", path.read_bytes())
    yield tmp_path
    system.rm("/bucket", recursive=True)


@pytest.mark.parametrize("url", ["memory://bucket/answers", "memory://bucket/answers/"])
def test_a_folder_behind_a_url_reads_as_the_one_on_disk(url: str, folder: Path) -> None:
    here, there = opened(folder), ParquetTable(url, prompt_column="prompt")
    assert list(there.read(0, 4)) == list(here.read(0, 4))
    assert list(there.read(1, 3)) == list(here.read(1, 3))
    assert there.chunks() == here.chunks()
    assert there.fingerprint() == {**here.fingerprint(), "name": "answers"}


def test_a_file_behind_a_url_reads_as_the_one_on_disk(folder: Path) -> None:
    here = opened(folder / "a.parquet")
    there = ParquetTable("memory://bucket/answers/a.parquet", prompt_column="prompt")
    assert list(there.read(0, 3)) == list(here.read(0, 3))
    assert there.fingerprint() == here.fingerprint()


def test_a_folder_that_is_called_like_its_shard_is_still_a_folder(folder: Path) -> None:
    data = (folder / "a.parquet").read_bytes()
    fsspec.filesystem("memory").pipe_file("/bucket/a.parquet/a.parquet", data)
    table = ParquetTable("memory://bucket/a.parquet", prompt_column="prompt")
    assert [item.prompt for item in table.read(0, 3)] == ["one", "two", "three"]


def test_opening_a_table_reads_footers_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        folder / "c.parquet",
        {"prompt": ["p" * 90, "q" * 90] * 20_000},
        compression="none",
        use_dictionary=False,
    )
    system = fsspec.filesystem("memory")
    system.pipe_file("/bucket/answers/c.parquet", (folder / "c.parquet").read_bytes())
    read: list[int] = []
    cat_file = type(system).cat_file

    def counted(*args: Any, **named: Any) -> bytes:
        data: bytes = cat_file(*args, **named)
        read.append(len(data))
        return data

    monkeypatch.setattr(type(system), "cat_file", counted)
    assert len(ParquetTable("memory://bucket/answers", prompt_column="prompt")) == 40_004
    assert len(read) == 3
    assert sum(read) < 80_000


@pytest.mark.parametrize(
    ("url", "facts"),
    [
        ("memory://bucket/nothing", ("memory://bucket/nothing",)),
        ("nosuch://bucket/answers", ("nosuch",)),
        ("https://me:secret@host/a.parquet", ("no secret",)),
        ("https://host/a.parquet?key=secret", ("no secret",)),
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_showing_a_secret(
    url: str, facts: tuple[str, ...], folder: Path
) -> None:
    with raises_naming(UserError, *facts) as said:
        ParquetTable(url, prompt_column="prompt")
    assert "secret@" not in str(said.value)
    assert "=secret" not in str(said.value)


_WITHOUT_FSSPEC = """
import sys
sys.modules["fsspec"] = None  # as if it were not installed
from evenhand.core.errors import UserError
from evenhand.runs.runners.prompt_files import ParquetTable
table = ParquetTable(sys.argv[1], prompt_column="prompt")
print(len(list(table.read(0, len(table)))))
try:
    ParquetTable("s3://bucket/answers", prompt_column="prompt")
except UserError as error:
    print(error)
"""


def test_a_table_on_disk_needs_no_fsspec_and_one_behind_a_url_says_that_it_does(
    folder: Path,
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT_FSSPEC, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows, told = ran.stdout.splitlines()
    assert rows == "4"
    assert "needs fsspec" in told
