"""The people of a table as items whose answers exist already."""

import hashlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import polars as pl

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.runs.runners.source import even_chunks

LARGEST = sys.float_info.max


class PeopleSource:
    """A table of people as a source: one item a row, its answer the cell that was decided and its
    tag `decided` what that means: "1", "0", or nothing where it is missing.

    Columns are held, not items: an item is made when it is read.
    """

    def __init__(self, people: pl.DataFrame, facts: dict[str, Any]) -> None:
        names = people["group"].struct.fields
        kinds = people["group"].struct.unnest().unique()
        texts = {row: orjson.dumps(list(row)).decode() for row in kinds.iter_rows()}
        self._people = people
        self._names = names
        self._texts = texts
        self._said = facts

    def fingerprint(self) -> dict[str, Any]:
        """Two runs over the same people in the same order can be compared, whatever was decided."""
        return {
            "kind": "benchmark",
            "items": len(self._people),
            "sha256": _sha256(self._people.select("group", "cluster").unnest("group")),
            "answers": _sha256(self._people.select("answer")),
            **self._said,
        }

    def __len__(self) -> int:
        return len(self._people)

    def chunks(self) -> list[tuple[int, int]]:
        return even_chunks(len(self))

    def read(self, start: int, stop: int) -> Iterator[Item]:
        columns = ("group", "answer", "cluster", "decided")
        rows = self._people.slice(start, stop - start).select(columns).iter_rows()
        for position, (group, answer, cluster, decided) in enumerate(rows, start=start):
            values = tuple(group.values())
            text = ", ".join(f"{name} {value or 'unknown'}"
                             for name, value in zip(self._names, values, strict=True))  # fmt: skip
            yield Item(
                id=str(position),
                prompt=f"Decided on: {text}.",
                answer=answer or " ",
                tags={
                    "group": self._texts[values],
                    "stratum": cluster,
                    "decided": decided,
                },
            )


def as_score() -> pl.Expr:
    """Read a cell as a score: a finite number, or nothing. A comma alone is a decimal comma where
    three digits do not follow it."""
    cell = pl.col("answer").str.strip_chars()
    comma = cell.str.contains(r"^-?\d+,(\d{1,2}|\d{4,})$")
    number = pl.when(comma).then(cell.str.replace(",", ".")).otherwise(cell)
    number = number.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number)


def above(median: tuple[float, float]) -> pl.Expr:
    """Say of each score whether it is above the median: "1", "0", or nothing where it is no number,
    or lies between the least and the largest median that there could be."""
    is_above, is_below = as_score() > median[1], as_score() <= median[0]
    return (
        pl.when(is_above).then(pl.lit("1")).when(is_below).then(pl.lit("0")).otherwise(pl.lit(""))
    )


def median_of(people: pl.DataFrame, column: str) -> tuple[float, float]:
    """The least and the largest median of all scores, over all values that the missing ones could
    have; the same number twice where none is missing. Of an even number it is the mean of the
    middle two. What is not known at all is the largest number that there is."""
    scores = np.sort(people.select(as_score()).to_series().drop_nulls().to_numpy())
    if not len(scores):
        raise UserError(f"no cell of the column {column!r} is a number; name a score with --score")
    missing = len(people) - len(scores)
    below, above = (len(people) - 1) // 2, len(people) // 2  # the middle two of everybody
    low = -LARGEST if below < missing else _mean(scores[below - missing], scores[above - missing])
    high = LARGEST if above >= len(scores) else _mean(scores[below], scores[above])
    return low, high


def _mean(first: float, other: float) -> float:
    return float(first / 2 + other / 2)  # the sum of two large numbers may be none


def _sha256(table: pl.DataFrame) -> str:
    return hashlib.sha256(table.write_csv(include_header=False, null_value="").encode()).hexdigest()
