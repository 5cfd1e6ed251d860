"""Rows become JSON lines, JSON lines become Parquet, and Parquet becomes rows.

A row is encoded once, as the JSON line that goes to the journal; Arrow's own reader turns a batch
of those lines into columns, outside the interpreter lock. So a crash and a normal commit share one
encoding, and the kernel never builds columns in Python.
"""

import io
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from evenhand.core import Message, Turn

_TEXT = pa.string()
_COUNT = pa.int64()

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
        ("messages", pa.list_(pa.struct([("role", _TEXT), ("content", _TEXT)]))),
        ("settings", _TEXT),
        ("started_us", _COUNT),
        ("seconds", pa.float64()),
        ("attempts", _COUNT),
        ("texts", pa.list_(_TEXT)),
        ("finish", pa.list_(_TEXT)),
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
    ]
)


def encode(row: Any) -> bytes:
    """Write a `Turn` or `Result` as one line of JSON."""
    # A copy, because lines are kept: orjson sets aside eight bytes for each character and gives
    # the unused ones back too late for the next line, so that a kept line would take 10 kB.
    return memoryview(orjson.dumps(row)).tobytes()


def to_parquet(lines: Sequence[bytes], schema: pa.Schema) -> tuple[bytes, pa.Table]:
    """Give the lines as a Parquet file, and as the table in it."""
    table = _to_table(lines, schema)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", compression_level=1)
    return sink.getvalue(), table


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
    row["messages"] = tuple(Message(m["role"], m["content"]) for m in row["messages"])
    row["texts"] = tuple(row["texts"])
    row["finish"] = tuple(row["finish"])
    row["thinking"] = tuple(row.get("thinking") or ())  # runs of before it was kept have none
    row["adapted"] = row.get("adapted") or ""
    row["batch"] = row.get("batch") or ""
    return Turn(**row)
