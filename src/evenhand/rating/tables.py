"""A CSV as people's programs save it: with , or ; or tab, and with or without a byte order mark."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

from evenhand.errors import UserError

Line = tuple[int, dict[str, str]]  # the number of the line it ends at, and its cells by column


def read_table(file: Path, fits: Callable[[list[str]], bool], form: str) -> list[Line]:
    """The rows of a file whose first line fits; `form` says what that line must be."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
        return _rows(text, fits, f"{file}", form)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{file} is no CSV in UTF-8 ({error}): save it as “CSV UTF-8”") from None


def _rows(text: str, fits: Callable[[list[str]], bool], file: str, form: str) -> list[Line]:
    for separator in ",;\t":
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        head = [name.strip() for name in next(reader, [])]
        if len(set(head)) == len(head) and fits(head):
            break
    else:
        raise UserError(f"{file}: its first line must be {form}")
    lines: list[Line] = []
    for cells in reader:
        if any(map(str.strip, cells[len(head) :])):
            raise UserError(f"{file} line {reader.line_num} has more cells than the first line")
        if any(map(str.strip, cells)):
            padded = [*cells, *[""] * len(head)]
            row = dict(zip(head, map(str.strip, padded), strict=False))
            lines.append((reader.line_num, row))
    return lines
