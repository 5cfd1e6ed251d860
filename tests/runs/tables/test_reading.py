"""A table is read as it was written, however it was cut into shards and row groups."""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core import Item
from evenhand.runs.runners import prompt_files
from evenhand.runs.runners.prompt_files import ParquetTable

from .writing import opened, write

TEXT = st.none() | st.sampled_from(["", "a nurse", "é\n\0"]) | st.text(max_size=8)
ROW = st.tuples(TEXT, TEXT, TEXT)
SHARDS = st.lists(st.lists(st.lists(ROW, max_size=4), max_size=4), min_size=1, max_size=5)
Shards = list[list[list[tuple[str | None, str | None, str | None]]]]  # of row groups of rows


def laid_out(folder: Path, shards: Shards) -> tuple[ParquetTable, list[Item]]:
    """The table, and its items as they are meant to come back."""
    items: list[Item] = []
    for number, groups in enumerate(shards):
        rows = [row for group in groups for row in group]
        columns = [pa.array([row[n] for row in rows], pa.string()) for n in range(3)]
        named = dict(zip(("prompt", "answer", "name"), columns, strict=True))
        write(folder / f"{number:03}.parquet", named, [len(group) for group in groups])
        items += (
            Item(id=name or str(at), prompt=prompt or "", answer=answer or "")
            for at, (prompt, answer, name) in enumerate(rows, start=len(items))
        )
    return opened(folder, answer_column="answer", id_column="name"), items


@settings(max_examples=150)
@given(SHARDS, st.integers(0, 90), st.integers(0, 90), st.integers(1, 5), st.integers(1, 9))
def test_any_cut_into_shards_and_row_groups_gives_the_same_items_at_the_same_positions(
    shards: Shards, start: int, stop: int, batch: int, chunk: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(prompt_files, "_BATCH_ROWS", batch)
        patch.setattr(prompt_files, "_CHUNK_ROWS", chunk)
        table, items = laid_out(Path(folder), shards)
        assert len(table) == len(items)
        assert list(table.read(0, len(table))) == items
        assert list(table.read(start, stop)) == items[start:stop]
        chunks = table.chunks()
        assert all(first < end for first, end in chunks)  # an empty one would be work for nobody
        assert [item for one in chunks for item in table.read(*one)] == items
        assert [at for one in chunks for at in range(*one)] == list(range(len(items)))


def test_a_chunk_joins_small_row_groups_leaves_large_ones_whole_and_ends_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_files, "_CHUNK_ROWS", 10)
    write(tmp_path / "a.parquet", {"prompt": ["p"] * 41}, [4, 6, 1, 25, 5])
    write(tmp_path / "b.parquet", {"prompt": ["p"] * 3})
    assert opened(tmp_path).chunks() == [(0, 10), (10, 11), (11, 36), (36, 41), (41, 44)]


def test_shards_follow_each_other_by_name_and_other_files_are_not_read(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "_meta.parquet", ".hidden.parquet", "c.parquet.tmp"):
        write(tmp_path / name, {"prompt": [name]})
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "inner").mkdir()
    write(tmp_path / "inner" / "aa.parquet", {"prompt": ["inner"]})
    assert [item.prompt for item in opened(tmp_path).read(0, 9)] == ["a.parquet", "b.parquet"]


def test_a_single_file_may_have_any_name(tmp_path: Path) -> None:
    assert len(opened(write(tmp_path / "_answers.pq", {"prompt": ["p"]}))) == 1


def test_a_row_group_is_decoded_as_a_stream_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    batches = pq.ParquetFile.iter_batches

    def counted(*args: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        for batch in batches(*args, **named):
            decoded.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    write(tmp_path / "a.parquet", {"prompt": [str(n) for n in range(10_000)]}, [5_000, 5_000])
    reading = opened(tmp_path).read(5_000, 10_000)
    assert next(reading).prompt == "5000"
    assert sum(decoded) <= 1_024
    assert sum(1 for _ in reading) == 4_999
    assert sum(decoded) == 5_000
    decoded.clear()
    assert [item.prompt for item in opened(tmp_path).read(5_001, 5_003)] == ["5001", "5002"]
    assert sum(decoded) <= 1_024  # and not the rest of the row group


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.uint32(), pa.large_string()),
    ],
    ids=str,
)
def test_every_kind_of_text_column_is_read_and_null_is_told_from_text(
    kind: pa.DataType, tmp_path: Path
) -> None:
    column = pa.array(["b", None, "é", "", "b"]).cast(kind)
    path = write(tmp_path / "a.parquet", {"prompt": column, "said": column}, [3, 2])
    items = list(opened(path, answer_column="said", context_column="said").read(0, 5))
    assert [item.prompt for item in items] == ["b", "", "é", "", "b"]
    assert [(item.answer, item.context) for item in items] == [(item.prompt,) * 2 for item in items]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.string()], ids=str)
def test_an_id_is_text_or_a_number_may_come_twice_and_is_the_position_where_there_is_none(
    kind: pa.DataType, tmp_path: Path
) -> None:
    ids = pa.array([7, None, 7, 0]).cast(kind)
    path = write(tmp_path / "a.parquet", {"prompt": ["p"] * 4, "key": ids})
    assert [item.id for item in opened(path, id_column="key").read(0, 4)] == ["7", "1", "7", "0"]
    assert [item.id for item in opened(path).read(2, 4)] == ["2", "3"]


def test_a_shard_in_which_no_row_has_an_answer_may_hold_a_column_without_a_type(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.parquet", {"prompt": ["p"], "said": ["yes"]})
    write(tmp_path / "b.parquet", {"prompt": ["p"], "said": pa.nulls(1)})
    items = opened(tmp_path, answer_column="said").read(0, 2)
    assert [item.answer for item in items] == ["yes", ""]


def test_a_row_whose_prompt_or_answer_is_not_utf8_loses_its_prompt_so_that_it_fails_alone(
    tmp_path: Path,
) -> None:
    def as_text(values: list[bytes]) -> pa.Array:
        raw = pa.array(values, pa.binary())
        return pa.StringArray.from_buffers(len(raw), raw.buffers()[1], raw.buffers()[2])

    columns = {
        "prompt": as_text([b"one", b"\xff", b"three", b"four"]),
        "said": as_text([b"a", b"b", b"\xed\xa0\x80", b"d"]),
    }
    items = list(opened(write(tmp_path / "a.parquet", columns), answer_column="said").read(0, 4))
    assert [item.prompt for item in items] == ["one", "", "", "four"]
    assert [item.answer for item in items] == ["a", "b", "", "d"]


def test_a_table_sent_to_another_process_is_small_holds_no_open_file_and_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.parquet", {"prompt": [str(n) for n in range(3_000)]}, [1_000] * 3)
    monkeypatch.chdir(tmp_path)
    table = ParquetTable("a.parquet", prompt_column="prompt")
    list(table.read(0, 10))
    sent = pickle.dumps(table)
    assert len(sent) < 1_000
    monkeypatch.chdir("/")  # a worker stands somewhere else
    there: ParquetTable = pickle.loads(sent)
    assert list(there.read(990, 2_010)) == list(table.read(990, 2_010))
    assert there.fingerprint() == table.fingerprint()


def test_an_iterator_that_is_let_go_closes_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"prompt": ["p"] * 5_000})
    reading = opened(path).read(0, 5_000)
    next(reading)
    assert str(path) in _open_files()
    del reading
    assert str(path) not in _open_files()


def _open_files() -> list[str]:
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return [os.readlink(link) for link in links if os.path.exists(link)]


_MEMORY = """
import sys, psutil
from evenhand.runs.runners.prompt_files import ParquetTable
table, process = ParquetTable(sys.argv[1], prompt_column="prompt"), psutil.Process()
before = most = process.memory_info().rss
for number, _ in enumerate(table.read(0, len(table))):
    if number % 2_000 == 0:
        most = max(most, process.memory_info().rss)
print(number + 1, most - before)
"""


def test_a_row_group_of_300_000_rows_and_150_megabytes_is_read_in_a_quarter_of_that(
    tmp_path: Path,
) -> None:
    """In a process of its own, by resident memory: pyarrow's own counter misses Python buffers."""
    words = os.urandom(250).hex()
    prompts = [f"{number} {words}" for number in range(300_000)]
    path = write(tmp_path / "a.parquet", {"prompt": prompts}, compression="none")
    assert path.stat().st_size > 150e6
    ran = subprocess.run(
        [sys.executable, "-c", _MEMORY, str(path)], capture_output=True, text=True, check=True
    )
    rows, grown = map(int, ran.stdout.split())
    assert rows == 300_000
    assert grown < 40e6, f"{grown / 1e6:.0f} MB"
