"""The items of a run as BBQ has them: context and options, which a run folder leaves to the
data."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.interop import ExternalItem
from evenhand.runs.store import RunReader


def as_asked(run: RunReader, records: pl.DataFrame) -> Mapping[str, ExternalItem]:
    """Find the record of each item. A run whose answers are not among the options of its records
    is over other data, and refused."""
    rows = run.results().select("item_id", "text", "choice", "tags").collect()
    item = pl.format("{}/{}", "category", "example_id")
    matched = records.with_columns(item=item).filter(
        pl.col("item").is_in(rows["item_id"].implode())
    )
    by_item = {row["item"]: row for row in matched.iter_rows(named=True)}
    questions = {}
    for row in rows.iter_rows(named=True):
        question = _asked(by_item.get(row["item_id"]), row)
        if question is None:
            raise UserError(
                f"{run.path} is not over BBQ as the card has it: the item {row['item_id']!r} is "
                "another one there. What the folder holds itself: "
                f"evenhand export {run.path} --to csv --out items.csv"
            )
        questions[row["item_id"]] = question
    return questions


def _asked(record: Mapping[str, Any] | None, row: Mapping[str, Any]) -> ExternalItem | None:
    if record is None:
        return None
    tags = {tag["name"]: tag["value"] for tag in row["tags"]}
    data_options = tuple(record["options"])
    try:
        options = tuple(data_options[int(index)] for index in tags["order"])
        masked = tags["masked"] == "1"  # its gold contradicts its text
        gold = None if masked else int(tags["gold"])
        if row["choice"] is not None and row["text"] != options[row["choice"]]:
            return None
    except (KeyError, ValueError, IndexError):
        return None
    about = {
        "example_id": record["example_id"],
        "question_index": record["question_index"],
        "question_polarity": record["polarity"],
        "context_condition": record["condition"],
        "category": record["category"],
        "label": record["label"],
    }
    return ExternalItem(
        about=about,
        context=record["context"],
        question=record["question"],
        own=data_options,
        options=options,
        gold=gold,
    )
