"""A table of people, one a row: the columns that an audit names, read strictly as text."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
from pydantic import RootModel

from evenhand.errors import UserError
from evenhand.findings.ratios import MOST_GROUPS
from evenhand.runners.source import read_row

UNKNOWN = "unknown"  # what a category is called that nobody has stated; an empty cell is one too
_LONGEST = 100  # our choice: a category or a cluster is a name, not a text
_FORMS = "a table ends in .csv (commas, a first line of names) or in .jsonl (one object a line)"
YES = ("1", "1.0", "yes", "true", "selected")
NO = ("0", "0.0", "no", "false", "rejected")


class _Row(RootModel[dict[str, str | bool | int | float | None]]):
    """A line of JSON: names with plain values."""


def read_people(file: Path, groups: list[str], outcome: str, cluster: str | None) -> pl.DataFrame:
    """Read the named columns: a struct `group` with null for what is not known, `answer` as it
    stands in the table, and `cluster`, empty where no column was named."""
    wanted = list(dict.fromkeys([*groups, outcome, *([cluster] if cluster else [])]))
    table = _table(file, wanted)
    if len(table) < 2:
        raise UserError(f"{file}: two people or more are needed")
    known = [
        pl.when(pl.col(name).str.to_lowercase().is_in(["", UNKNOWN])).then(None)
        .otherwise(pl.col(name)).alias(name)
        for name in groups
    ]  # fmt: skip
    people = table.select(
        group=pl.struct(known),
        answer=outcome,
        cluster=pl.col(cluster) if cluster else pl.lit(""),
    )
    if cluster:
        _no_gaps(file, cluster, people["cluster"])
    _few_plain_groups(file, groups, people["group"])
    return people


def _table(file: Path, wanted: list[str]) -> pl.DataFrame:
    """The wanted columns as text without blanks around it; what is not there is empty."""
    if not file.is_file():
        raise UserError(f"{file} is not a file; {_FORMS}")
    ending = file.suffix.lower()
    if ending not in (".csv", ".jsonl"):
        raise UserError(f"{file}: {_FORMS}")
    try:
        table = _csv(file, wanted) if ending == ".csv" else _jsonl(file, wanted)
    except pl.exceptions.PolarsError as problem:
        first = str(problem).splitlines()[0][:200]
        raise UserError(f"{file} cannot be read as a table: {first}; {_FORMS}") from None
    return table.select(pl.col(wanted).fill_null("").str.strip_chars())


def _csv(file: Path, wanted: list[str]) -> pl.DataFrame:
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            names = next(csv.reader(lines, strict=True), [])
    except (UnicodeDecodeError, csv.Error) as problem:
        raise UserError(f"{file}: the first line cannot be read ({problem}); {_FORMS}") from None
    _all_there(file, names, wanted)
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise UserError(f"{file}: two columns are called {twice[0]!r}; give each a name of its own")
    return pl.read_csv(file, infer_schema=False, columns=wanted)


def _jsonl(file: Path, wanted: list[str]) -> pl.DataFrame:
    columns: dict[str, list[str]] = {name: [] for name in wanted}
    for number, line in _lines(file):
        where = f"{file} line {number}"
        row = read_row(_Row, line, where, "a line is an object of names and plain values").root
        _all_there(where, row, wanted)
        for name in wanted:
            columns[name].append(_text(row[name]))
    return pl.DataFrame(columns, schema=dict.fromkeys(wanted, pl.String))


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield number, line


def _text(value: str | bool | int | float | None) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _all_there(where: object, names: Iterable[str], wanted: list[str]) -> None:
    there = list(names)
    lacking = [name for name in wanted if name not in there]
    if lacking:
        known = ", ".join(map(repr, there[:20])) or "none"
        raise UserError(f"{where} has no column {lacking[0]!r}; it has: {known}")


def _no_gaps(file: Path, cluster: str, values: pl.Series) -> None:
    empty = int((values == "").sum())
    if empty:
        raise UserError(
            f"{file}: {empty:,} people have nothing in the column {cluster!r}: fill it in, or "
            "leave --cluster out"
        )
    _plain(file, cluster, values.unique())


def _few_plain_groups(file: Path, names: list[str], groups: pl.Series) -> None:
    found = groups.struct.unnest().unique()
    for name in names:
        _plain(file, name, found[name].drop_nulls().unique())
    known = len(found.drop_nulls())
    most = max(known, *(found[name].n_unique() for name in names))
    if most > MOST_GROUPS:
        raise UserError(
            f"{file}: {most:,} groups ({' × '.join(names)}); {MOST_GROUPS} are the most that can "
            "be told apart. Join some, or leave a column out of --groups"
        )
    if known < 2:
        raise UserError(
            f"{file}: two groups or more are needed in {' × '.join(names)}, and there are {known}; "
            "name other columns with --groups"
        )


def _plain(file: Path, name: str, values: pl.Series) -> None:
    """Refuse values that are no names: with signs that cannot be printed, or very long."""
    odd = values.filter(
        values.str.contains(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]") | (values.str.len_chars() > _LONGEST)
    )
    if len(odd):
        raise UserError(
            f"{file}: {str(odd[0])[:60]!r} in the column {name!r} is no name of a group: up to "
            f"{_LONGEST} printable characters are"
        )
