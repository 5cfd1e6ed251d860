"""Answers that were given elsewhere, to be scored: JSON lines with category, example_id, answer."""

from pathlib import Path
from typing import Any

import polars as pl

from evenhand.agents import strict_json
from evenhand.errors import UnreadableReply, UserError
from evenhand.instruments.bbq.data import card


def with_answers(records: pl.DataFrame, file: Path) -> pl.DataFrame:
    """The records that have a stored answer, with it as column `answer`.

    An answer is the text of an option, or its number (0, 1, 2) in the data's own order.
    """
    if not file.is_file():
        raise UserError(f"{file} is not a file")
    rows = [
        _row(line, f"{file} line {number}")
        for number, line in enumerate(file.read_bytes().splitlines(), start=1)
        if line.strip()
    ]
    schema = {"category": pl.String, "example_id": pl.Int64, "text": pl.String, "place": pl.Int64}
    answers = pl.DataFrame(rows, schema=schema, orient="row")
    if answers.select("category", "example_id").is_duplicated().any():
        raise UserError(f"{file} answers a question twice")
    joined = records.join(answers, on=["category", "example_id"], maintain_order="left")
    if len(joined) != len(answers):
        raise UserError(
            f"{len(answers) - len(joined)} of the {len(answers)} answers in {file} belong to no "
            "BBQ record: check category (as in the file names of BBQ) and example_id"
        )
    chosen = pl.col("options").list.get(pl.col("place"), null_on_oob=True)
    return joined.with_columns(answer=pl.coalesce("text", chosen)).drop("text", "place")


def covered(answered: pl.DataFrame) -> dict[str, int]:
    """Count what stored answers cover. Who picks the answers picks the result, so that is said."""
    whole = answered.group_by(pl.col("row") // 4).len()
    return {
        "records": len(answered),
        "of": card()["data"]["items"],
        "incomplete_blocks": int((whole["len"] < 4).sum()),
    }


def _row(line: bytes, where: str) -> tuple[Any, ...]:
    try:
        given = strict_json.parse(line.decode("utf-8"))
        category, example, answer = given["category"], given["example_id"], given["answer"]
    except UnicodeDecodeError:
        raise UserError(f"{where}: not UTF-8 text") from None
    except UnreadableReply as problem:
        raise UserError(f"{where}: {problem}") from None
    except (KeyError, TypeError):
        raise UserError(f"{where}: needs category, example_id and answer") from None
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer <= 2:
        return category, example, None, answer
    if isinstance(answer, str) and answer:
        return category, example, answer, None
    raise UserError(f"{where}: answer must be an option's text or 0, 1, 2")
