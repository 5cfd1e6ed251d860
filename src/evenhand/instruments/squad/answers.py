"""Answers that were given elsewhere, to be scored: the official form, one JSON object of ids."""

import gzip
import zlib
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.errors import UserError


def with_answers(records: pl.DataFrame, file: Path) -> pl.DataFrame:
    """The questions that have a stored answer, with it as column `answer`; "" says: no answer."""
    stored = _read(file)
    if not isinstance(stored, dict) or not all(isinstance(text, str) for text in stored.values()):
        raise UserError(
            f'{file}: give one object, {{"question id": "answer", …}}, "" for no answer'
        )
    answers = pl.DataFrame(
        {"id": list(stored), "answer": list(stored.values())},
        schema={"id": pl.String, "answer": pl.String},
    )
    joined = records.join(answers, on="id", maintain_order="left")
    if joined.is_empty():
        raise UserError(
            f"not one of the {len(answers)} answers in {file} belongs to SQuAD v2's dev"
        )
    if len(joined) != len(answers):
        raise UserError(
            f"{len(answers) - len(joined)} of the {len(answers)} answers in {file} belong to no "
            "question of SQuAD v2's development set"
        )
    return joined


def _read(file: Path) -> Any:
    if not file.is_file():
        raise UserError(f"{file} is not a file")
    try:
        data = file.read_bytes()
        return orjson.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    except orjson.JSONDecodeError as error:
        raise UserError(f"{file} is not JSON: {error}") from None
