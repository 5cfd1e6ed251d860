"""A run's results as one file, in the order of the input."""

from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.core.items import answer_message
from evenhand.core.results import tool_calls_in
from evenhand.views.export.exported import ExportedRun


def write_jsonl(of: ExportedRun, folder: Path) -> list[str]:
    """Write one JSON object per item."""
    of.run.results().sink_ndjson(folder / "items.jsonl")
    return ["items.jsonl"]


def write_messages(of: ExportedRun, folder: Path) -> list[str]:
    """Write each answered item as the messages of its conversation, which ends in the answer."""
    rows = of.run.results().filter(pl.col("text").is_not_null())
    with (folder / "items.jsonl").open("wb") as file:
        columns = ("prompt", "conversation", "text", "tool_calls")
        for row in rows.select(columns).collect().iter_rows():
            file.write(orjson.dumps(answered(*row), option=orjson.OPT_APPEND_NEWLINE))
    return ["items.jsonl"]


def answered(
    prompt: str, conversation: str | None, text: str, tool_calls: str | None = None
) -> dict[str, Any]:
    """Give a conversation with its answer as the last message.

    Args:
        prompt: The prompt of the item.
        conversation: The conversation that a result stores; None of a single prompt.
        text: The answer.
        tool_calls: The tool calls of the answer that a result stores; None without any.

    Returns:
        The fields of a line of a fine-tuning file.
    """
    single = {"messages": [{"role": "user", "content": prompt}]}
    asked: dict[str, Any] = orjson.loads(conversation) if conversation else single
    answer = answer_message(text, tool_calls_in(tool_calls))
    asked["messages"].append(orjson.loads(orjson.dumps(answer)))
    for message in asked["messages"]:
        if message.get("tool_calls") and not message["content"]:
            message["content"] = None  # as OpenAI writes it
    return asked


def write_parquet(of: ExportedRun, folder: Path) -> list[str]:
    """Write one row per item."""
    of.run.results().sink_parquet(folder / "items.parquet")
    return ["items.parquet"]
