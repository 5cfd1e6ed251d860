"""Prompts that lie in a file, as items: JSON lines, or Parquet."""

from collections.abc import Mapping
from pathlib import Path

from evenhand.core.errors import UserError
from evenhand.runs.runners import JsonlFile, Source
from evenhand.runs.runners.parquet_table import ParquetTable

PROMPT = "prompt"  # the usual column
_UNREAD = (".csv", ".tsv", ".txt", ".xlsx")


def is_table(location: str) -> bool:
    """Parquet by its name, a folder, or anything behind a URL; else it is lines of JSON."""
    return "://" in location or location.endswith(".parquet") or Path(location).is_dir()


def source_of(location: str, columns: Mapping[str, str | None] | None = None) -> Source:
    """Make the source of the items in a file of prompts.

    Args:
        location: JSON lines, or Parquet: a file, a folder, a URL.
        columns: Of Parquet: which column is the prompt, the answer, the id and the context.

    Returns:
        The source.

    Raises:
        UserError: If the file is of another kind, or columns are named of a file without any.
    """
    columns = dict(columns or {})
    if "://" in location and location.endswith((".jsonl", ".json")):
        raise UserError(f"{location}: JSON lines are read from this machine; copy the file here")
    if is_table(location):
        return ParquetTable(
            location, prompt_column=columns.pop("prompt_column", PROMPT) or "", **columns
        )
    if location.endswith(_UNREAD):
        raise UserError(
            f"{location}: {Path(location).suffix} files are not read. Give JSON lines "
            f'({{"prompt": "…"}}) or Parquet; docs/tables.md shows how to convert'
        )
    if any(column not in (None, PROMPT) for column in columns.values()):
        raise UserError(
            f"{location} is not Parquet, so it has no columns; the fields of a JSON line are "
            "prompt, id, context, choices, answer, tags"
        )
    return JsonlFile(Path(location))
