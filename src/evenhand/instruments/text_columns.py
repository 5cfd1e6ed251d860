"""Columns of a table on disk, .csv or .jsonl, read strictly as text."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
from pydantic import RootModel

from evenhand.errors import UserError
from evenhand.runners.source import read_row

_FORMS = "a table ends in .csv (commas, a first line of names) or in .jsonl (one object a line)"


class _Row(RootModel[dict[str, str | bool | int | float | None]]):
    """A line of JSON: names with plain values."""


def text_columns(file: Path, wanted: list[str]) -> pl.DataFrame:
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


def names_of(file: Path) -> list[str]:
    """Give the names of a table's columns: of its first line."""
    if file.suffix.lower() != ".csv":
        first = next(_lines(file), None) if file.is_file() else None
        return [] if first is None else list(read_row(_Row, first[1], f"{file} line 1").root)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return next(csv.reader(lines, strict=True), [])
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise UserError(f"{file}: the first line cannot be read ({problem}); {_FORMS}") from None


def _csv(file: Path, wanted: list[str]) -> pl.DataFrame:
    names = names_of(file)
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
