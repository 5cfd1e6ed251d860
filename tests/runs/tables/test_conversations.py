"""Conversations in a column of a table: lists of messages, or JSON."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.core.errors import UserError
from evenhand.runs.runners.prompt_files import ParquetTable
from evenhand.runs.runners.source import read_item
from tests.errors import raises_naming

CALL = {"id": "c1", "type": "function", "function": {"name": "seats", "arguments": "{}"}}
TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "You sell tickets."},
    {"role": "user", "content": "A seat?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "Seat 12", "tool_call_id": "c1"},
    {"role": "assistant", "content": "Seat 12."},
]
ASKED = [{"role": "user", "content": "Describe a nurse."}]


def _table(path: Path, column: pa.Array, **columns: Any) -> ParquetTable:
    table = pa.table({"talk": column, "key": ["a", "b", "c"][: len(column)]})
    pq.write_table(table, path / "talks.parquet")
    return ParquetTable(str(path / "talks.parquet"), **{"messages_column": "talk", **columns})


def test_a_list_of_messages_is_the_conversation_that_a_line_of_json_is(tmp_path: Path) -> None:
    table = _table(tmp_path, pa.array([TURNS, ASKED, None]), id_column="key")
    first, second, third = table.read(0, 3)
    line = json.dumps({"messages": TURNS, "id": "a"}).encode()
    assert first == read_item(line, 0, "line 1")
    assert (second.id, second.prompt, second.messages) == ("b", "Describe a nurse.", ())
    assert (third.id, third.prompt) == ("c", "")  # it fails alone


def test_json_in_a_column_may_declare_tools_and_a_bad_row_fails_alone(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "seats"}}]
    texts = [json.dumps({"messages": TURNS, "tools": tools}), json.dumps(ASKED), '[{"role": "x"}]']
    table = _table(tmp_path, pa.array(texts))
    first, second, third = table.read(0, 3)
    assert [tool.function for tool in first.tools] == [{"name": "seats"}]
    assert (first.id, first.answer) == ("0", "Seat 12.")
    assert (second.prompt, third.prompt) == ("Describe a nurse.", "")


def test_a_conversation_that_is_too_long_fails_alone(tmp_path: Path) -> None:
    long = [{"role": "user", "content": "a" * 150_000}]
    table = _table(tmp_path, pa.array([[*long, *long], long, ASKED]))
    assert [len(item.prompt) for item in table.read(0, 3)] == [0, 150_000, 17]


@pytest.mark.parametrize(
    ("column", "options", "facts"),
    [
        (pa.array([1]), {}, ["int64", "--messages-column", "role"]),
        (pa.array([[{"text": "a"}]]), {}, ["text", "role"]),
        (pa.array(["[]"]), {"answer_column": "key"}, ["--answer-column"]),
    ],
)
def test_another_column_is_refused_before_anything_is_asked(
    tmp_path: Path, column: pa.Array, options: dict[str, str], facts: list[str]
) -> None:
    with raises_naming(UserError, *facts):
        _table(tmp_path, column, **options)
