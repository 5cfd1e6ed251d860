"""Columns of a table on disk, .csv or .jsonl, read strictly as text."""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from pydantic import RootModel

from evenhand.core.errors import UserError
from evenhand.runs.runners.source import read_row

_FORMS = (
    "tables are .csv (a header line; separated by comma, semicolon or tab) or "
    ".jsonl (an object per line)"
)
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How a table is written: its encoding, and what stands between two cells."""

    encoding: str = "utf-8"
    separator: str = ","

    @property
    def says(self) -> str:
        """What a reader should know of it; empty for the usual form."""
        if self.encoding in ("utf-8", "utf-8-sig") and self.separator == ",":
            return ""
        return f"The table was read as {self.encoding} with {_SEPARATORS[self.separator]}."


def form_of(file: Path, required: list[str]) -> TableFormat:
    """Find out how a .csv file is written: by its first bytes, whether it is UTF-8, and which
    separator makes the wanted columns of its first line."""
    if file.suffix.lower() != ".csv" or not file.is_file():
        return TableFormat()
    return _decoded(file, required)[1]


def _decoded(file: Path, required: list[str]) -> tuple[str, TableFormat]:
    raw = file.read_bytes()
    encoding = next((name for mark, name in _MARKS.items() if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as problem:
        if encoding != "utf-8":
            raise UserError(f"{file} cannot be read as {encoding}: {problem}; {_FORMS}") from None
        encoding, text = _western(raw)
    if "\0" in text:
        raise UserError(f"{file} cannot be read as a table: it contains a null byte; {_FORMS}")
    first = text.partition("\n")[0].rstrip("\r")
    rank = {sign: (sum(name in _cells(first, sign) for name in required), first.count(sign))
            for sign in _SEPARATORS}  # fmt: skip
    return text, TableFormat(encoding, max(_SEPARATORS, key=lambda sign: rank[sign]))


def _western(raw: bytes) -> tuple[str, str]:
    """Text of Western European Windows; where a byte has no sign there, of ISO 8859-1."""
    try:
        return "cp1252", raw.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1", raw.decode("latin-1")


def _cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return []


class _JsonRow(RootModel[dict[str, str | bool | int | float | None]]):
    """A line of JSON: names with plain values."""


def text_columns(file: Path, required: list[str]) -> pl.DataFrame:
    """The wanted columns as text without blanks around it; what is not there is empty."""
    if not file.is_file():
        raise UserError(f"{file} is not a file; {_FORMS}")
    ending = file.suffix.lower()
    if ending not in (".csv", ".jsonl"):
        raise UserError(f"{file}: {_FORMS}")
    try:
        table = _csv(file, required) if ending == ".csv" else _jsonl(file, required)
    except pl.exceptions.PolarsError as problem:
        first = str(problem).splitlines()[0][:200]
        raise UserError(f"{file} cannot be read as a table: {first}; {_FORMS}") from None
    return table.select(pl.col(required).fill_null("").str.strip_chars())


def names_of(file: Path) -> list[str]:
    """Give the names of a table's columns: of its first line."""
    if file.suffix.lower() != ".csv":
        first = next(_lines(file), None) if file.is_file() else None
        return [] if first is None else list(read_row(_JsonRow, first[1], f"{file} line 1").root)
    return _names(file, *_decoded(file, []))


def _names(file: Path, text: str, form: TableFormat) -> list[str]:
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=form.separator, strict=True)
        return next(rows, [])
    except csv.Error as problem:
        raise UserError(f"{file}: the first line cannot be read ({problem}); {_FORMS}") from None


def _csv(file: Path, required: list[str]) -> pl.DataFrame:
    text, form = _decoded(file, required)
    names = _names(file, text, form)
    _all_there(file, names, required)
    twice = [name for name in required if names.count(name) > 1]
    if twice:
        raise UserError(f"{file}: two columns are named {twice[0]!r}. Rename either of them")
    return pl.read_csv(
        text.encode(), infer_schema=False, columns=required, separator=form.separator
    )


def _jsonl(file: Path, required: list[str]) -> pl.DataFrame:
    columns: dict[str, list[str]] = {name: [] for name in required}
    for number, line in _lines(file):
        where = f"{file} line {number}"
        row = read_row(_JsonRow, line, where, "each line is a JSON object with plain values").root
        _all_there(where, row, required)
        for name in required:
            columns[name].append(_text(row[name]))
    return pl.DataFrame(columns, schema=dict.fromkeys(required, pl.String))


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield number, line


def _text(value: str | bool | int | float | None) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _all_there(where: object, names: Iterable[str], required: list[str]) -> None:
    there = list(names)
    lacking = [name for name in required if name not in there]
    if lacking:
        available = ", ".join(map(repr, there[:20])) or "none"
        raise UserError(f"{where} has no column {lacking[0]!r}. Available: {available}")
