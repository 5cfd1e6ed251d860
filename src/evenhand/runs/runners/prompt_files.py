"""Prompts that lie in a file are items: JSON lines, or a Parquet table, which is one file or a
folder of shards, on disk or behind an fsspec URL.

Tables may have 100 million rows in thousands of shards: up front only the footers are read, items
are decoded as a stream, and what is kept is plain data, so that a table can be sent to other
processes.
"""

import hashlib
import importlib
import os
import stat
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.agents import strict_json
from evenhand.agents.strict_json import MAX_CHARACTERS
from evenhand.core import Item
from evenhand.core.errors import UnreadableReply, UserError
from evenhand.runs.runners import JsonlFile, Source
from evenhand.runs.runners.source import item_of

Found = TypeVar("Found")
Shards = list[tuple[str, int]]  # the name and the size of each file, in order


class Files(Protocol):
    at_once: ClassVar[int]  # how many to ask for side by side

    def path(self, name: str) -> str:
        """A file's full name, as messages give it."""
        ...

    def read(self, name: str, start: int, stop: int) -> bytes: ...

    def open(self, name: str) -> Any:
        """A file that pyarrow can read from, to be closed by `with`."""
        ...


def find(location: str) -> tuple[Files, str, Shards]:
    """Find the files at a location, its own name without the way there, and those files that hold
    rows."""
    return _find_remote(location) if "://" in location else _find_local(location)


@dataclass(frozen=True, slots=True)
class LocalFiles:
    at_once: ClassVar[int] = 1
    folder: str

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def read(self, name: str, start: int, stop: int) -> bytes:
        with open(self.path(name), "rb") as file:
            file.seek(start)
            return file.read(stop - start)

    def open(self, name: str) -> Any:
        return pa.OSFile(self.path(name))


def _find_local(location: str) -> tuple[Files, str, Shards]:
    full_path = os.path.abspath(location)  # another process may stand in another folder
    parent, name = os.path.split(full_path)
    if not os.path.isdir(full_path):
        status = os.stat(full_path)
        if not stat.S_ISREG(status.st_mode):
            raise UserError(
                f"{full_path} is not a regular file: a pipe or a device cannot be read twice. "
                "Save it as a file."
            )
        return LocalFiles(parent), name, [(name, status.st_size)]
    shards = _with_rows(
        {name: os.lstat(f"{full_path}/{name}") for name in os.listdir(full_path)}, full_path
    )
    for shard, status in shards:
        # Its rows go to a model, so a folder from a stranger must not name a file of yours.
        if not stat.S_ISREG(status.st_mode):
            raise UserError(
                f"{full_path}/{shard} is a link or no file, and a folder of shards holds files "
                "only: copy what it leads to (cp -L), or name that file itself"
            )
    return LocalFiles(full_path), name, [(shard, status.st_size) for shard, status in shards]


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    at_once: ClassVar[int] = 32  # a request waits for the network, not for this machine
    folder: str

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def read(self, name: str, start: int, stop: int) -> bytes:
        system, path = _system(self.path(name))
        data: bytes = system.cat_file(path, start=start, end=stop)
        return data

    def open(self, name: str) -> Any:
        system, path = _system(self.path(name))
        # Columns are read in turn: what a cache read ahead in one, the next would throw away.
        return system.open(path, "rb", cache_type="none")


def _find_remote(location: str) -> tuple[Files, str, Shards]:
    parts = urlsplit(location)
    if parts.password is not None or parts.query:
        raise UserError(
            "a table's URL is shown and its end is stored, so it must hold no secret: leave out "
            "what is before @ and after ?, and give keys by the environment"
        )
    url = location.rstrip("/")
    parent, _, name = url.rpartition("/")
    system, path = _system(url)
    system.invalidate_cache()  # a listing from earlier in this process may be out of date
    info = system.info(path)
    if info["type"] != "directory":
        return RemoteFiles(parent), name, [(name, info["size"])]
    entries = [entry for entry in system.ls(path, detail=True) if entry["type"] == "file"]
    sizes = {entry["name"].rpartition("/")[2]: entry["size"] for entry in entries}
    return RemoteFiles(url), name, _with_rows(sizes, url)


def _system(url: str) -> tuple[Any, str]:
    """Give fsspec's file system for a URL, which fsspec keeps and we do not, and the path in it."""
    try:
        system, path = importlib.import_module("fsspec.core").url_to_fs(url)
    except ImportError as missing:
        raise UserError(
            f"{url} cannot be read: {missing}. A table that is not on disk needs fsspec and its "
            "package for that place, such as s3fs, gcsfs or adlfs"
        ) from None
    return system, path


def _with_rows(files: Mapping[str, Found], where: str) -> list[tuple[str, Found]]:
    """Keep those files of a folder that are shards: Spark and its like add files with a `_`."""
    shards = [
        (name, files[name])
        for name in sorted(files)
        if name.endswith(".parquet") and not name.startswith((".", "_"))
    ]
    if not shards:
        raise UserError(
            f"{where} has no *.parquet files. Subfolders are not searched: name the folder with "
            "the files."
        )
    return shards


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Add the file's name to any error, because each of fsspec's kinds raises its client's own
    errors."""
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"{where} does not exist. Check the path.") from None
    except Exception as error:
        raise UserError(f"{where} cannot be read: {error}") from error


_CHUNK_ROWS = 65_536  # row groups are joined up to this: many small ones would each cost a request
_BATCH_ROWS = 1_024  # decoded at a time: all that is in memory of a row group of a million rows
_BUFFER_BYTES = 4 << 20  # read at a time of each column: one request to an object store
_TAIL_BYTES = 64 << 10  # most footers are shorter, and so come with one request
_BATCH_BYTES = 128 << 20  # decoded at a time, as far as the file tells how long its rows are
_MOST_BYTES = 64 << 20  # of a column in a row group, where its rows are longer than any may be
_HEADER_BYTES = 32  # at the start of a page, which hold its size


@dataclass(frozen=True, slots=True)
class _Shard:
    name: str
    size: int
    footer_sha256: str
    row_groups: tuple[int, ...]  # the rows of each


class ParquetTable:
    """A table whose rows have a prompt and, where columns are named for them, an answer, a context
    and an id; or a conversation instead, as a list of messages or as JSON.

    A row without a prompt, or with a text that cannot be read or is too long, is an item with the
    prompt "", which fails alone and not the run; one without an answer is an item that the method
    drafts itself; one without an id gets its position.
    """

    def __init__(
        self,
        location: str,
        *,
        prompt_column: str | None = None,
        answer_column: str | None = None,
        id_column: str | None = None,
        context_column: str | None = None,
        messages_column: str | None = None,
    ) -> None:
        columns = {
            "prompt": prompt_column,
            "answer": answer_column,
            "context": context_column,
            "id": id_column,
            "messages": messages_column,
        }
        if messages_column is not None and (prompt_column or answer_column or context_column):
            raise UserError(
                "A conversation has its prompt, context and stored answer in its messages: leave "
                "out --prompt-column, --answer-column and --context-column"
            )
        self._columns = {use: column for use, column in columns.items() if column is not None}
        with naming(location):
            self._files, self._name, shards = find(location)
        with ThreadPoolExecutor(self._files.at_once) as pool:
            self._shards = list(pool.map(self._look_at, shards))
        rows = (sum(shard.row_groups) for shard in self._shards)
        self._starts = list(accumulate(rows, initial=0))  # where each shard starts, and the end

    def fingerprint(self) -> dict[str, Any]:
        # A footer holds the schema and, of every column chunk, its rows, place, size, least and
        # greatest value. So shards that were added, dropped, renamed, cut or rewritten show, for
        # some kilobytes per shard. A value replaced by one of the same stored length that is
        # neither least nor greatest does not show, nor does a damaged page: only reading every byte
        # of the table could prove that. Its path is left out: a moved table is the same table.
        digest = hashlib.sha256()
        for shard in self._shards:
            digest.update(f"{shard.name}\0{shard.size}\0{shard.footer_sha256}\n".encode())
        return {
            "kind": "parquet",
            "name": self._name,
            "items": len(self),
            "files": len(self._shards),
            "columns": self._columns,
            "sha256": digest.hexdigest(),
        }

    def __len__(self) -> int:
        return self._starts[-1]

    def chunks(self) -> list[tuple[int, int]]:
        """Give whole row groups, joined where they are small, and never of two files."""
        ranges: list[tuple[int, int]] = []
        for shard, first in zip(self._shards, self._starts, strict=False):
            start = stop = first
            for rows in shard.row_groups:
                if stop + rows - start > _CHUNK_ROWS:
                    ranges.append((start, stop))
                    start = stop
                stop += rows
            ranges.append((start, stop))
        return [(start, stop) for start, stop in ranges if start < stop]

    def read(self, start: int, stop: int) -> Iterator[Item]:
        stop = min(stop, len(self))
        while start < stop:
            number = bisect_right(self._starts, start) - 1
            end = min(stop, self._starts[number + 1])
            yield from self._read_shard(number, start, end)
            start = end

    def _read_shard(self, number: int, start: int, stop: int) -> Iterator[Item]:
        shard = self._shards[number]
        bounds = list(accumulate(shard.row_groups, initial=self._starts[number]))
        first = bisect_right(bounds, start) - 1
        touched = [at for at in range(first, len(shard.row_groups)) if bounds[at] < stop]
        position = bounds[first]
        with naming(self._files.path(shard.name)):
            for batch in self._batches(shard, touched):
                following = position + batch.num_rows
                if following > start:
                    skipped = max(0, start - position)
                    rows = batch.slice(skipped, stop - position - skipped)
                    yield from self._items(rows, position + skipped)
                position = following
                if position >= stop:
                    return

    def _batches(self, shard: _Shard, row_groups: list[int]) -> Iterator[pa.RecordBatch]:
        footer = _footer(self._files, shard.name, shard.size)
        if hashlib.sha256(footer).hexdigest() != shard.footer_sha256:
            raise UserError(
                f"{self._files.path(shard.name)} was changed while it was in use: put the old file "
                "back, or start again in another run folder"
            )
        with (
            self._files.open(shard.name) as file,
            pq.ParquetFile(
                file,
                metadata=pq.read_metadata(pa.BufferReader(footer)),
                # Without these two, the whole column of a row group is loaded before its first row.
                pre_buffer=False,
                buffer_size=_BUFFER_BYTES,
                page_checksum_verification=True,
            ) as table,
        ):
            columns = sorted(set(self._columns.values()))
            rows = self._batch_rows(shard, table.metadata, row_groups)
            # In one thread: pyarrow's own threads sometimes abort the process at its very end.
            yield from table.iter_batches(rows, row_groups, columns, use_threads=False)

    def _batch_rows(self, shard: _Shard, metadata: Any, row_groups: list[int]) -> int:
        """Say how many rows to decode at once. A value that many rows share is stored once and
        decoded for each of them, so the longest that it can be counts, not its share."""
        longest = 1
        for number in row_groups:
            for chunk in _chunks(metadata, number, self._columns):
                of_a_row = max(1, chunk.num_values // (shard.row_groups[number] or 1))
                average = chunk.total_uncompressed_size // (chunk.num_values or 1)
                longest = max(longest, average * of_a_row)
                if chunk.has_dictionary_page:
                    start = chunk.dictionary_page_offset
                    header = self._files.read(shard.name, start, start + _HEADER_BYTES)
                    longest = max(longest, _page_bytes(header) * of_a_row)
        rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES // longest))
        # A power of two: batches of 85 rows held 10 MB more than ones of 64 or 128 do.
        return 1 << (rows.bit_length() - 1)

    def _items(self, batch: pa.RecordBatch, first: int) -> Iterator[Item]:
        spoilt: set[int] = set()
        values = {use: _values(batch.column(name), spoilt) for use, name in self._columns.items()}
        missing = [None] * batch.num_rows
        if "messages" in values:
            names = values.get("id", missing)
            both = zip(values["messages"], names, strict=True)
            for position, (row, name) in enumerate(both, first):
                yield _conversation(row, position, _name(name, position))
            return
        rows = zip(
            values["prompt"],
            values.get("answer", missing),
            values.get("context", missing),
            values.get("id", missing),
            strict=True,
        )
        for number, (prompt, answer, context, name) in enumerate(rows):
            yield Item(
                id=_name(name, first + number),
                # A row whose answer cannot be read must fail, not go on as one that has none.
                prompt="" if number in spoilt else prompt or "",
                answer=answer or "",
                context=context or "",
            )

    def _look_at(self, file: tuple[str, int]) -> _Shard:
        name, size = file
        where = self._files.path(name)
        with naming(where):
            footer = _footer(self._files, name, size)
            # Not `read_metadata` and its `schema`: the two hold each other, and thousands of
            # shards would wait in memory for the garbage collector.
            table = pq.ParquetFile(pa.BufferReader(footer))
            schema, metadata = table.schema_arrow, table.metadata
        for use, column in self._columns.items():
            _check_column(schema, use, column, where)
        for number in range(metadata.num_row_groups):
            for chunk in _chunks(metadata, number, self._columns):
                _refuse_bomb(chunk, where)
        row_groups = tuple(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups))
        return _Shard(name, size, hashlib.sha256(footer).hexdigest(), row_groups)


def _footer(files: Files, name: str, size: int) -> bytes:
    """Read the end of a Parquet file: the metadata, their length in four bytes, and `PAR1`."""
    tail = files.read(name, max(0, size - _TAIL_BYTES), size)
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > len(tail):
        tail = files.read(name, max(0, size - length), size)
    return tail[-length:]


def _chunks(metadata: Any, row_group: int, columns: Mapping[str, str]) -> Iterator[Any]:
    """Yield what the footer says of the named columns of a row group."""
    group = metadata.row_group(row_group)
    chunks = (group.column(number) for number in range(group.num_columns))
    named = set(columns.values())
    return (
        chunk
        for chunk in chunks
        if chunk.path_in_schema in named or chunk.path_in_schema.partition(".")[0] in named
    )


def _refuse_bomb(chunk: Any, where: str) -> None:
    """Refuse a few kilobytes that unfold to gigabytes. Up to `_MOST_BYTES` a row that is too long
    fails alone, as any row does that cannot be read."""
    size = chunk.total_uncompressed_size
    if size > _MOST_BYTES and size > 4 * MAX_CHARACTERS * chunk.num_values:
        raise UserError(
            f"{where}: column {chunk.path_in_schema!r} unfolds to {size >> 20:,} MiB in "
            f"{chunk.num_values:,} rows, and a text may have {MAX_CHARACTERS:,} characters"
        )


def _page_bytes(header: bytes) -> int:
    """Read the size of a page, unpacked: the second number of its header in Thrift's compact form,
    seven bits a byte and doubled."""
    at, value = 1, 0
    for _ in range(2):
        value = shift = 0
        while header[at] & 0x80:
            value |= (header[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        value |= header[at] << shift
        at += 2  # past the number and the mark of the next
    return value >> 1


def _check_column(schema: pa.Schema, use: str, column: str, where: str) -> None:
    matches = schema.get_all_field_indices(column)
    if len(matches) != 1:
        there = f"{len(matches)} columns" if matches else "no column"
        raise UserError(
            f"{where} has {there} {column!r} to take the {use} from. Its columns are "
            f"{', '.join(schema.names)}: give one of them to --{use}-column"
        )
    kind = schema.field(column).type
    if not _suits(kind, use):
        expected = _EXPECTED.get(use, "text: cast it to string")
        raise UserError(
            f"{where}: column {column!r} is {kind}, and the {use} has to be {expected}, or give "
            f"another column to --{use}-column"
        )


_EXPECTED = {
    "id": "text or whole numbers: cast it to string",
    "messages": "a list of structs with role and content, or JSON of one",
}


def _suits(kind: pa.DataType, use: str) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return (
        any(matches(kind) for matches in text)
        or (use == "messages" and _is_list_of_messages(kind))
        or (use == "id" and pa.types.is_integer(kind))
        or (use != "prompt" and pa.types.is_null(kind))  # as written where no row has a value
    )


def _is_list_of_messages(kind: pa.DataType) -> bool:
    lists = (pa.types.is_list, pa.types.is_large_list)
    if not any(matches(kind) for matches in lists) or not pa.types.is_struct(kind.value_type):
        return False
    names = {kind.value_type.field(n).name for n in range(kind.value_type.num_fields)}
    return {"role", "content"} <= names


def _name(name: str | int | None, position: int) -> str:
    return str(position) if name is None or name == "" else str(name)


def _conversation(row: Any, position: int, name: str) -> Item:
    """The conversation of a row. One that cannot be read fails alone, like an empty prompt."""
    try:
        value = strict_json.parse(row) if isinstance(row, str) else _without_nulls(row)
        fields = value if isinstance(value, dict) else {"messages": value}
        item = item_of(fields, position, f"row {position}")
    except (UserError, UnreadableReply):
        return Item(id=name, prompt="")
    too_long = sum(len(message.text) for message in item.messages) > MAX_CHARACTERS
    return Item(id=name, prompt="") if too_long else replace(item, id=name)


def _without_nulls(value: Any) -> Any:
    """A table has every field in every message; those without a value were not written."""
    if isinstance(value, dict):
        return {name: _without_nulls(entry) for name, entry in value.items() if entry is not None}
    return [_without_nulls(entry) for entry in value] if isinstance(value, list) else value


def _values(column: pa.Array, spoilt: set[int]) -> list[Any]:
    """Give a column's values. A writer can put bytes that are no UTF-8 into a column of text, or a
    text that is too long; the numbers of such rows are added to `spoilt`."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values: list[Any] = [None] * len(column)
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:
        for number, value in enumerate(column):
            try:
                values[number] = value.as_py()
            except UnicodeDecodeError:
                spoilt.add(number)
    for number, value in enumerate(values):
        if isinstance(value, str) and len(value) > MAX_CHARACTERS:
            values[number] = None
            spoilt.add(number)
    return values


PROMPT = "prompt"  # the usual column
_UNREAD = (".csv", ".tsv", ".txt", ".xlsx")


def is_table(location: str) -> bool:
    """Parquet by its name, a folder, or anything behind a URL; else it is lines of JSON."""
    return "://" in location or location.endswith(".parquet") or Path(location).is_dir()


def source_of(location: str, columns: Mapping[str, str | None] | None = None) -> Source:
    """Make the source of the items in a file of JSON lines, or in Parquet: a file, a folder, a URL.
    Of Parquet `columns` says which are the prompt, the answer, the id and the context."""
    columns = dict(columns or {})
    if "://" in location and location.endswith((".jsonl", ".json")):
        raise UserError(
            f"{location}: JSON lines are read only from this machine. Copy the file here."
        )
    if is_table(location):
        if columns.get("messages_column") is None and columns.get("prompt_column") is None:
            columns["prompt_column"] = PROMPT
        return ParquetTable(location, **columns)
    if location.endswith(_UNREAD):
        raise UserError(
            f"{location}: {Path(location).suffix} files are not read. Give JSON lines "
            f'({{"prompt": "…"}}) or Parquet; docs/mitigate-files.md shows how to convert'
        )
    if any(column not in (None, PROMPT) for column in columns.values()):
        raise UserError(
            f"{location} is not Parquet, so it has no columns; the fields of a JSON line are "
            "prompt, id, context, choices, answer, tags, or messages, tools, id, choices, tags"
        )
    return JsonlFile(Path(location))
