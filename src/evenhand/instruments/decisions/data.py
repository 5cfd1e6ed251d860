"""A table of people, one a row: the columns that an audit names, read strictly as text."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.findings.ratios import MOST_GROUPS
from evenhand.instruments.text_columns import text_columns
from evenhand.runs.runners.source import even_chunks

UNKNOWN = "unknown"  # what a category is called that nobody has stated; an empty cell is one too
_LONGEST = 100  # our choice: a category or a cluster is a name, not a text
YES = ("1", "1.0", "yes", "true", "selected")
NO = ("0", "0.0", "no", "false", "rejected")
_LISTED = 12  # our choice: so many values of a column are named


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The words that mean selected and rejected, without case; any other is a missing outcome."""

    selected: tuple[str, ...] = YES
    rejected: tuple[str, ...] = NO

    def read(self) -> pl.Expr:
        """Read `answer`: "1" for selected, "0" for rejected, nothing where it says neither."""
        words = dict.fromkeys(self.selected, "1") | dict.fromkeys(self.rejected, "0")
        cell = pl.col("answer").str.strip_chars().str.to_lowercase()
        return cell.replace_strict(words, default="", return_dtype=pl.String)


def outcomes_in(
    file: Path, column: str, answers: pl.Series, selected: Sequence[str], rejected: Sequence[str]
) -> Outcomes:
    """Settle which words of a column mean selected and rejected, or refuse with those it has.

    Args:
        file: The table, for the message.
        column: The column of the decision.
        answers: Its cells.
        selected: The words that the user says mean selected; none for the usual ones.
        rejected: Those that mean rejected.
    """
    chosen, other = ([word.strip().lower() for word in words] for words in (selected, rejected))
    outcomes = Outcomes(tuple(chosen) or YES, tuple(other) or NO)
    both = set(outcomes.selected) & set(outcomes.rejected)
    cells = answers.str.strip_chars()
    there = set(cells.str.to_lowercase().unique())
    unknown = [word for word in (*chosen, *other) if word not in there]
    why = ""
    if both:
        why = f"{sorted(both)[0]!r} cannot mean both selected and rejected. "
    elif unknown:
        why = f"No cell is {unknown[0]!r}. "
    elif there & set(outcomes.selected) and there & set(outcomes.rejected):
        return outcomes
    counts = cells.value_counts(sort=True, name="n").rows()
    counts.sort(key=lambda row: (-row[1], row[0]))
    listing = ", ".join(f"{value or '(empty)'} {n:,}" for value, n in counts[:_LISTED])
    more = f" and {len(counts) - _LISTED:,} other values" if len(counts) > _LISTED else ""
    raise UserError(
        f"{file}: {why}{column} has: {listing}{more}. Define their meaning with "
        "--selected VALUE and --rejected VALUE, which may be repeated. Other values "
        "count as missing"
    )


def read_people(file: Path, groups: list[str], outcome: str, cluster: str | None) -> pl.DataFrame:
    """Read the named columns of a table of people.

    Args:
        file: A `.csv` or `.jsonl` file with one row per person.
        groups: Columns of the protected attributes.
        outcome: Column of the decision or score.
        cluster: Column of the unit that people are clustered in. None: no clusters.

    Returns:
        One row per person: a struct `group` with null for unknown attributes, `answer` as text, and
        `cluster`, empty if no column was named.

    Raises:
        UserError: The table has too few people, a gap in the clusters, or unusable groups.
    """
    columns = list(dict.fromkeys([*groups, outcome, *([cluster] if cluster else [])]))
    table = text_columns(file, columns)
    if len(table) < 2:
        raise UserError(f"{file} contains fewer than two people. At least two are required")
    categories = [
        pl.when(pl.col(name).str.to_lowercase().is_in(["", UNKNOWN])).then(None)
        .otherwise(pl.col(name)).alias(name)
        for name in groups
    ]  # fmt: skip
    people = table.select(
        group=pl.struct(categories),
        answer=outcome,
        cluster=pl.col(cluster) if cluster else pl.lit(""),
    )
    if cluster:
        _no_gaps(file, cluster, people["cluster"])
    _few_plain_groups(file, groups, people["group"])
    return people


def _no_gaps(file: Path, cluster: str, values: pl.Series) -> None:
    empty = int((values == "").sum())
    if empty:
        raise UserError(
            f"{file}: {empty:,} people have no value in the column {cluster!r}. Fill it in, "
            "or omit --cluster"
        )
    _plain(file, cluster, values.unique())


def _few_plain_groups(file: Path, names: list[str], groups: pl.Series) -> None:
    combinations = groups.struct.unnest().unique()
    for name in names:
        _plain(file, name, combinations[name].drop_nulls().unique())
    total = len(combinations.drop_nulls())
    most = max(total, *(combinations[name].n_unique() for name in names))
    if most > MOST_GROUPS:
        raise UserError(
            f"{file}: {most:,} groups ({' × '.join(names)}), but at most {MOST_GROUPS} are "
            "supported. Merge some, or remove a column from --groups"
        )
    if total < 2:
        raise UserError(
            f"{file}: at least two groups are required in {' × '.join(names)}, but there "
            f"are {total}. Choose other columns with --groups"
        )


def _plain(file: Path, name: str, values: pl.Series) -> None:
    """Refuse values that cannot name a group: with unprintable characters, or very long."""
    odd = values.filter(
        values.str.contains(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]") | (values.str.len_chars() > _LONGEST)
    )
    if len(odd):
        raise UserError(
            f"{file}: {str(odd[0])[:60]!r} in the column {name!r} is not a valid group "
            f"name. Use up to {_LONGEST} printable characters"
        )


# -- the people as items --------------------------------------------------------------------------


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
                tags={"group": self._texts[values], "stratum": cluster, "decided": decided},
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
    """Classify each score as above the median ("1") or not ("0"); null where it is not a number, or
    is between the smallest and the largest possible median."""
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
        raise UserError(
            f"the column {column!r} contains no numbers. Choose a column of scores with --score"
        )
    missing = len(people) - len(scores)
    below, above = (len(people) - 1) // 2, len(people) // 2  # the middle two of everybody
    low = -LARGEST if below < missing else _mean(scores[below - missing], scores[above - missing])
    high = LARGEST if above >= len(scores) else _mean(scores[below], scores[above])
    return low, high


def _mean(first: float, other: float) -> float:
    return float(first / 2 + other / 2)  # the sum of two large numbers may be none


def _sha256(table: pl.DataFrame) -> str:
    return hashlib.sha256(table.write_csv(include_header=False, null_value="").encode()).hexdigest()
