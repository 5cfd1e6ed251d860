"""Rows become JSON lines, JSON lines become Parquet, and Parquet becomes rows.

A row is encoded once, as the JSON line that goes to the journal; Arrow's own reader turns a batch
of those lines into columns, outside the interpreter lock. So a crash and a normal commit share one
encoding, and the kernel never builds columns in Python. A part of a run is two Parquet files and
the entry that the ledger gets for them.
"""

import hashlib
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet as pq

from evenhand.core import Turn, message_of
from evenhand.core.errors import CorruptRun, StoreError
from evenhand.runs.store import ledger
from evenhand.runs.store.folder import Folder

_TEXT = pa.string()
_COUNT = pa.int64()
_MESSAGE = pa.struct([("role", _TEXT), ("content", _TEXT)])
_TOOL_CALL = pa.struct(
    [("id", _TEXT), ("function", pa.struct([("name", _TEXT), ("arguments", _TEXT)])),
     ("type", _TEXT)]
)  # fmt: skip
_TOOL_MESSAGE = pa.struct(
    [*_MESSAGE, ("tool_calls", pa.list_(_TOOL_CALL)), ("tool_call_id", _TEXT)]
)

TURNS = pa.schema(
    [
        ("position", _COUNT),
        ("item_id", _TEXT),
        ("index", _COUNT),
        ("role", _TEXT),
        ("prompt", _TEXT),
        ("prompt_sha256", _TEXT),
        ("request", _TEXT),
        ("occurrence", _COUNT),
        ("model", _TEXT),
        ("messages", pa.list_(_TOOL_MESSAGE)),
        ("settings", _TEXT),
        ("started_us", _COUNT),
        ("seconds", pa.float64()),
        ("attempts", _COUNT),
        ("texts", pa.list_(_TEXT)),
        ("finish", pa.list_(_TEXT)),
        ("tool_calls", _TEXT),
        ("logprobs", _TEXT),
        ("prompt_tokens", _COUNT),
        ("completion_tokens", _COUNT),
        ("thinking", pa.list_(_TEXT)),
        ("thinking_tokens", _COUNT),
        ("served_by", _TEXT),
        ("adapted", _TEXT),
        ("batch", _TEXT),
        ("error", _TEXT),
        ("error_message", _TEXT),
    ]
)
_NAMED_SCORES = pa.list_(pa.struct([("name", _TEXT), ("value", pa.float64())]))
_DRAFT = pa.struct(
    [("text", _TEXT), ("choice", _COUNT), ("reasoning", _TEXT), ("scores", _NAMED_SCORES)]
)
RESULTS = pa.schema(
    [
        ("position", _COUNT),
        ("item_id", _TEXT),
        ("status", _TEXT),
        ("reason", _TEXT),
        ("message", _TEXT),
        ("text", _TEXT),
        ("choice", _COUNT),
        ("stopped", _TEXT),
        ("changed", pa.bool_()),
        ("answer_before", _TEXT),
        ("scores_before", _NAMED_SCORES),
        ("scores_after", _NAMED_SCORES),
        ("drafts", pa.list_(_DRAFT)),
        ("calls", _COUNT),
        ("prompt_tokens", _COUNT),
        ("completion_tokens", _COUNT),
        ("prompt", _TEXT),
        ("tags", pa.list_(pa.struct([("name", _TEXT), ("value", _TEXT)]))),
        ("tags_taken_off", _COUNT),
        ("outcome", _TEXT),
        ("conversation", _TEXT),
        ("tool_calls", _TEXT),
    ]
)


_OF_CONVERSATIONS = ("conversation", "tool_calls")
_PLAIN_TURNS = TURNS.set(
    TURNS.get_field_index("messages"), pa.field("messages", pa.list_(_MESSAGE))
)
# Fields of messages: inside a text the quotation mark has a backslash before it.
_TOOLS = (b',"tool_calls":[', b',"tool_call_id":')


def encode(row: Any) -> bytes:
    """Write a `Turn` or `Result` as one line of JSON."""
    # A copy, because lines are kept: orjson sets aside eight bytes for each character and gives
    # the unused ones back too late for the next line, so that a kept line would take 10 kB.
    return memoryview(orjson.dumps(row)).tobytes()


def to_parquet(lines: Sequence[bytes], schema: pa.Schema) -> tuple[bytes, pa.Table]:
    """Give the lines as a Parquet file, and as the table in it. What only conversations have is
    left out where no line is of one."""
    if schema is TURNS and not any(name in line for line in lines for name in _TOOLS):
        schema = _PLAIN_TURNS
    table = _to_table(lines, schema)
    unused = [name for name in _OF_CONVERSATIONS if _is_empty(table, name)]
    table = table.drop_columns(unused) if unused else table
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", compression_level=1)
    return sink.getvalue(), table


def _is_empty(table: pa.Table, name: str) -> bool:
    return name in table.column_names and table.column(name).null_count == len(table)


def _to_table(lines: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    if not lines:
        return schema.empty_table()
    data = b"\n".join(lines)
    table = pyarrow.json.read_json(
        pa.py_buffer(data),
        # One block: a row must not straddle two, whatever its length.
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="error"
        ),
    )
    return table.select(schema.names)


def turns_of(data: bytes) -> Iterator[Turn]:
    """Yield the turns of a part file, batch by batch."""
    for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches(batch_size=1024):
        for row in batch.to_pylist():
            yield turn_of(row)


def turn_of(row: dict[str, Any]) -> Turn:
    row["messages"] = tuple(map(message_of, row["messages"]))
    row["texts"] = tuple(row["texts"])
    row["finish"] = tuple(row["finish"])
    row["thinking"] = tuple(row.get("thinking") or ())  # older runs have none
    row["adapted"] = row.get("adapted") or ""
    row["batch"] = row.get("batch") or ""
    return Turn(**row)


_SUMMED = ("changed", "calls", "prompt_tokens", "completion_tokens", "tags_taken_off")
PART_ITEMS = 4096
PART_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class Pending:
    """The finished items of the part to come, as journal lines."""

    results: list[bytes] = field(default_factory=list)
    turns: list[bytes] = field(default_factory=list)
    size: int = 0  # bytes

    @property
    def full(self) -> bool:
        return len(self.results) >= PART_ITEMS or self.size >= PART_BYTES

    def add(self, result: bytes, turns: list[bytes]) -> None:
        self.results.append(result)
        self.turns.extend(turns)
        self.size += len(result) + sum(map(len, turns))


def write_part(folder: Folder, name: str, pending: Pending) -> ledger.CommittedPart:
    """Write the turns and results of a part. They count once the ledger names them.

    Args:
        folder: Run folder.
        name: Name of the part, unique in the run.
        pending: Rows that are not committed yet.

    Returns:
        The entry for the ledger.

    Raises:
        StoreError: A file could not be written. No turns of this part are left behind.
    """
    turns_file, turns = _write(folder, f"turns/{name}.parquet", pending.turns, TURNS)
    try:
        results_file, results = _write(folder, f"results/{name}.parquet", pending.results, RESULTS)
    except StoreError:  # a full disk should not be fuller after each attempt
        folder.remove(turns_file.name)
        raise
    return _part(results_file, turns_file, results, turns)


def _write(
    folder: Folder, name: str, lines: list[bytes], schema: pa.Schema
) -> tuple[ledger.PartFile, pa.Table]:
    data, table = to_parquet(lines, schema)
    try:
        folder.create(name, data)
    except FileExistsError:  # no two writers have the same name for a part
        raise CorruptRun(f"{folder.root}/{name} is there before its time: move it away") from None
    sha256 = hashlib.sha256(data).hexdigest()
    return ledger.PartFile(name=name, sha256=sha256, bytes=len(data), rows=len(table)), table


def _part(
    results_file: ledger.PartFile, turns_file: ledger.PartFile, results: pa.Table, turns: pa.Table
) -> ledger.CommittedPart:
    positions = results.column("position").to_pylist()
    if len(set(positions)) != len(positions):
        raise CorruptRun(f"{results_file.name} would hold an item twice")
    reasons, outcomes = (_counted(results.column(name)) for name in ("reason", "outcome"))
    return ledger.CommittedPart(
        results=results_file,
        turns=turns_file,
        positions=ledger.ranges(positions),
        answered=len(positions) - sum(reasons.values()),
        failed=reasons,
        tokens_unknown=results.column("prompt_tokens").null_count,
        outcomes=outcomes,
        adapted=_adapted(turns),
        thinking_tokens=pc.sum(turns.column("thinking_tokens")).as_py() or 0,
        **{name: pc.sum(results.column(name)).as_py() or 0 for name in _SUMMED},
    )


def _adapted(turns: pa.Table) -> dict[str, dict[str, int]]:
    """Count the calls in which a model did not get what was asked of it, by model and by what."""
    counts: dict[str, Counter[str]] = {}
    adapted = turns.column("adapted").to_pylist()
    if any(adapted):
        for model, words in zip(turns.column("model").to_pylist(), adapted, strict=True):
            counts.setdefault(model, Counter()).update(words.split())
    return {model: dict(sorted(counts[model].items())) for model in sorted(counts) if counts[model]}


def _counted(column: pa.ChunkedArray) -> dict[str, int]:
    """Count how often each value is there, in order; "" and null are none."""
    counts = {entry["values"]: entry["counts"] for entry in column.value_counts().to_pylist()}
    return {value: counts[value] for value in sorted(filter(None, counts))}
