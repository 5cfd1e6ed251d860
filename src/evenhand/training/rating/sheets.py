"""A folder for each rater: a table, a page that saves one, and the rubric; and the sheets that come
back. None of them says which run, method or model a text is from, and no text in them is ever run
as a formula or as a script.

What comes back is read strictly: what cannot be right is refused by line and nothing is written; a
mark that was left empty is missing, and never 0.
"""

import base64
import csv
import hashlib
import io
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import jinja2
import orjson
import polars as pl

from evenhand.core.errors import UserError
from evenhand.core.package_data import read_text
from evenhand.runs.store import RunReader
from evenhand.training.debates.dataset import made, require_new
from evenhand.training.rating import rubric
from evenhand.training.rating.texts import DrawnTexts, KeyRun, RatingText, SheetKey, read_key

TEXT, ID, SHEET = "text", "id", "sheet"
MOST_RATERS = 100  # our choice: more people than anybody asks
# Signs with which a spreadsheet takes a cell for a formula, wide forms included: OWASP, CSV
# injection. A ' before them makes it text.
_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # they can hide words or move a cursor


def deal(
    texts: Sequence[RatingText], raters: int, overlap: int, seed: int
) -> dict[str, tuple[str, ...]]:
    """Assign texts to raters, each to those who have the fewest so far, in random order.

    Args:
        texts: The texts.
        raters: The number of raters.
        overlap: How many raters see each text.
        seed: The seed of the assignment and the orders.

    Returns:
        The ids of the texts for each rater, in the order of the sheet.

    Raises:
        UserError: If the overlap is not from 1 to the number of raters.
    """
    if not 1 <= overlap <= raters:
        raise UserError(
            f"--overlap is {overlap}, and {raters} raters can rate a text 1 to {raters} times. "
            "Change --overlap."
        )
    chance = random.Random(f"{seed} sheets")
    hands: list[list[str]] = [[] for _ in range(raters)]
    for text in texts:
        turn = sorted(hands, key=lambda hand: (len(hand), chance.random()))
        for hand in turn[:overlap]:
            hand.append(text.id)
    for hand in hands:
        chance.shuffle(hand)
    return {f"rater-{number}": tuple(hand) for number, hand in enumerate(hands, 1)}


def export(
    runs: Sequence[RunReader],
    sample: DrawnTexts,
    folder: Path,
    key: Path,
    *,
    raters: int,
    overlap: int,
    seed: int,
) -> SheetKey:
    """Write rating sheets and, in another place, their key: all of it or nothing.

    Args:
        runs: The runs that the texts are from.
        sample: The texts.
        folder: The folder of sheets to make.
        key: The key file to write. It must not be in the folder: raters must not see it.
        raters: The number of raters.
        overlap: How many raters see each text.
        seed: The seed of the assignment and the orders.

    Returns:
        The key.

    Raises:
        UserError: If a file exists, or the key would be among the sheets.
    """
    require_new(folder)
    if os.path.lexists(key):  # a link is not written through
        raise UserError(f"{key} already exists. Choose another file with --key.")
    if folder.resolve() in key.resolve().parents:
        raise UserError(
            f"{key} is in the folder of the sheets, and raters must not get the key. Choose "
            "another file with --key."
        )
    sheet_key = SheetKey(
        evenhand=metadata.version("evenhand"),
        rubric=rubric.sha256(),
        seed=seed,
        overlap=overlap,
        shared=sample.shared,
        left_out=dict(sample.left_out),
        runs=tuple(
            KeyRun(run=str(run.path), method=run.record.method, cast=run.record.cast)
            for run in runs
        ),
        texts=sample.texts,
        sheets=deal(sample.texts, raters, overlap, seed),
    )
    with made(folder) as part:
        for rater, files in rater_files(sheet_key).items():
            (part / rater).mkdir()
            for name, data in files.items():
                (part / rater / name).write_bytes(data)
        key.parent.mkdir(parents=True, exist_ok=True)
        key.write_bytes(sheet_key.to_bytes())
    return sheet_key


def rater_files(key: SheetKey) -> dict[str, dict[str, bytes]]:
    """What each rater gets, by rater and name of the file."""
    by_id = {text.id: text for text in key.texts}
    return {
        rater: {
            f"{rater}.csv": _table(rater, [by_id[name] for name in ids]),
            f"{rater}.html": _page(rater, [by_id[name] for name in ids]),
            "rubric.txt": rubric.in_words().encode(),
        }
        for rater, ids in key.sheets.items()
    }


def columns() -> tuple[str, ...]:
    return (ID, SHEET, *(question.name for question in rubric.questions()))


def _table(rater: str, texts: Sequence[RatingText]) -> bytes:
    """A CSV that a spreadsheet opens. Words of others stand in its first column alone: a program
    that expects ; instead of , would end any later one at a ; within it, and begin a new cell."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow((TEXT, *columns()))
    empty = [""] * len(rubric.questions())
    for text in texts:
        both = f"ASKED\n{text.task}\n\nANSWERED\n{text.text}" if text.task.strip() else text.text
        writer.writerow([inert(cell) for cell in (both, text.id, rater, *empty)])
    return file.getvalue().encode(
        "utf-8-sig"
    )  # without its mark Excel takes it for another encoding


def inert(cell: str) -> str:
    """The cell as text to any spreadsheet."""
    clean = readable(cell)
    return f"'{clean}" if {clean[:1], clean.lstrip()[:1]} & _FORMULA else clean


def readable(text: str) -> str:
    """The text with one kind of line break and without control characters."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _page(rater: str, texts: Sequence[RatingText]) -> bytes:
    script, style = (read_text(__package__, f"sheet.{kind}") for kind in ("js", "css"))
    # Only these very words may run or style; nothing may be loaded, sent or framed.
    allowed = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    entries = [(text.id, readable(text.task).strip(), readable(text.text)) for text in texts]
    ids = " ".join(text.id for text in texts)
    html = _template().render(
        allowed=allowed,
        script=script,
        style=style,
        sheet=rater,
        sheet_hash=hashlib.sha256(f"{rater} {ids}".encode()).hexdigest()[:16],
        texts=entries,
        instructions=rubric.INSTRUCTIONS,
        questions=rubric.questions(),
        marks=range(rubric.LEAST, rubric.MOST + 1),
    )
    return html.encode()


@cache
def _template() -> jinja2.Template:
    strict = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return strict.from_string(read_text(__package__, "sheet.html"))


def _digest(words: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()}"


Line = tuple[int, dict[str, str]]  # the number of the line it ends at, and its cells by column


def read_table(file: Path, fits: Callable[[list[str]], bool], form: str) -> list[Line]:
    """Read a CSV file, with commas, semicolons or tabs.

    Args:
        file: The file.
        fits: Says whether a first line has the right columns.
        form: What the first line must be, in words for the error.

    Returns:
        The rows, each with its line number.

    Raises:
        UserError: If the file cannot be read, or its first line does not fit.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
        return _table_rows(text, fits, f"{file}", form)
    except OSError as error:
        raise UserError(f"Could not read {file} ({error.strerror}). Check the path.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            f"{file} is not a UTF-8 CSV file ({error}). Save it as “CSV UTF-8”."
        ) from None


def _table_rows(text: str, fits: Callable[[list[str]], bool], file: str, form: str) -> list[Line]:
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
            raise UserError(
                f"{file} line {reader.line_num} has more cells than the first line. Fix that line."
            )
        if any(map(str.strip, cells)):
            padded = [*cells, *[""] * len(head)]
            row = dict(zip(head, map(str.strip, padded), strict=False))
            lines.append((reader.line_num, row))
    return lines


TABLE, ACCOUNT, KEY = "ratings.parquet", "ratings.json", "key.json"
EMPTY, NO_ROW = "left empty", "row not in the sheet"
_MARK = re.compile(r"[0-9]{1,2}", re.ASCII)
_SHOWN = 20  # our choice: so many faults are listed; the rest is counted
SCHEMA = {"rater": pl.String, "id": pl.String, "question": pl.String, "mark": pl.Int64,
          "missing": pl.String, "file": pl.String, "line": pl.Int64}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A sheet that came back: one row per mark that was asked for."""

    file: str
    sha256: str
    rater: str
    rows: pl.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedSheets:
    """What was read, from which files, and what is missing in them by line."""

    evenhand: str
    rubric: str  # sha256
    key: str  # sha256 of the file
    sheets: tuple[dict[str, str], ...]  # file, sha256, rater
    not_returned: tuple[str, ...]  # raters
    marks: int  # that were asked for in the sheets that came back
    missing: tuple[str, ...]  # each a line in words

    @property
    def present(self) -> int:
        return self.marks - len(self.missing)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read(files: Sequence[Path], key_file: Path) -> tuple[SheetKey, pl.DataFrame, ReturnedSheets]:
    """Read sheets by their key. All faults of all sheets are listed at once."""
    key = read_key(key_file)
    if key.rubric != rubric.sha256():
        raise UserError(
            f"{key_file} is of another rubric than this evenhand {metadata.version('evenhand')} "
            f"has: read it with evenhand {key.evenhand}, which made it"
        )
    faults: list[str] = []
    sheets: list[Sheet] = []
    for file in files:
        sheets += _sheet(file, key, faults)
    faults += _twice(sheets)
    if faults:
        more = [f"… and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        listing = "\n  ".join([*faults[:_SHOWN], *more])
        raise UserError(
            f"nothing was imported:\n  {listing}\ncorrect these lines, then the same command again"
        )
    rows = pl.concat([sheet.rows for sheet in sheets])
    lost = rows.filter(pl.col("mark").is_null())
    account = ReturnedSheets(
        evenhand=metadata.version("evenhand"),
        rubric=key.rubric,
        key=hashlib.sha256(key_file.read_bytes()).hexdigest(),
        sheets=tuple({"file": s.file, "sha256": s.sha256, "rater": s.rater} for s in sheets),
        not_returned=tuple(r for r in key.sheets if r not in {s.rater for s in sheets}),
        marks=len(rows),
        missing=tuple(map(_in_words, lost.iter_rows(named=True))),
    )
    return key, rows, account


def _in_words(row: dict[str, Any]) -> str:
    where = f"{row['file']} line {row['line']}" if row["line"] else row["file"]
    return f"{where}: {row['id']}, {row['question']}: {row['missing']}"


def _twice(sheets: Sequence[Sheet]) -> Iterator[str]:
    files: dict[str, str] = {}
    for sheet in sheets:
        if sheet.rater in files:
            yield (
                f"{sheet.file}: {sheet.rater} is also in {files[sheet.rater]}; give one of the two"
            )
        files.setdefault(sheet.rater, sheet.file)


def _sheet(file: Path, key: SheetKey, faults: list[str]) -> Iterator[Sheet]:
    """The sheet in a file; none, and a line in `faults` for each, where it has any."""
    expected = columns()
    lines = read_table(
        file,
        lambda head: {*head} - {TEXT} == {*expected},
        f"the columns {', '.join(expected)}, as in the sheet that was exported",
    )
    raters = {cells[SHEET] for _, cells in lines}
    if len(raters) != 1 or not raters <= key.sheets.keys():
        available = ", ".join(key.sheets)
        faults.append(
            f"{file}: its column {SHEET} must name one of {available} in every row, and has "
            f"{', '.join(sorted(map(repr, raters))) or 'no row'}"
        )
        return
    (rater,) = raters
    before = len(faults)
    marks = _marks(file, lines, set(key.sheets[rater]), faults)
    if len(faults) == before:
        rows = list(_rows(str(file), rater, key.sheets[rater], marks))
        table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        yield Sheet(file=str(file), sha256=digest, rater=rater, rows=table)


Marks = dict[str, tuple[int, dict[str, int | None]]]  # id -> line, marks by question


def _marks(file: Path, lines: Sequence[Line], expected: set[str], faults: list[str]) -> Marks:
    marks: Marks = {}
    for line, cells in lines:
        name = cells[ID]
        if name not in expected:
            faults.append(f"{file} line {line}: unknown text {name!r}")
        elif name in marks:
            faults.append(
                f"{file} line {line}: {name} stands there twice, first in {marks[name][0]}"
            )
        else:
            answers = {question.name: cells[question.name] for question in rubric.questions()}
            wrong = {n: mark for n, mark in answers.items() if mark and not _is_mark(mark)}
            faults += [
                f"{file} line {line}: {name}, {n}: {mark!r} is not a whole number from "
                f"{rubric.LEAST} to {rubric.MOST}"
                for n, mark in wrong.items()
            ]
            read = {
                n: int(mark) if mark and n not in wrong else None for n, mark in answers.items()
            }
            marks[name] = (line, read)
    return marks


def _is_mark(cell: str) -> bool:
    return bool(_MARK.fullmatch(cell)) and rubric.LEAST <= int(cell) <= rubric.MOST


def _rows(file: str, rater: str, ids: Sequence[str], marks: Marks) -> Iterator[tuple[Any, ...]]:
    """A row for each mark that was asked for, in the order of the sheet."""
    for name in ids:
        line, answers = marks.get(name, (None, {}))
        for question in rubric.questions():
            mark = answers.get(question.name)
            why = None if mark is not None else EMPTY if line else NO_ROW
            yield rater, name, question.name, mark, why, file, line


def write(folder: Path, key: SheetKey, rows: pl.DataFrame, account: ReturnedSheets) -> None:
    """Write a folder of ratings.

    Args:
        folder: The folder to make.
        key: Says which text is which.
        rows: The ratings.
        account: Which files were read, and what is missing.
    """
    table = io.BytesIO()
    rows.write_parquet(table)
    content = {**account.to_dict(), "sha256": hashlib.sha256(table.getvalue()).hexdigest()}
    with made(folder) as part:
        (part / TABLE).write_bytes(table.getvalue())
        (part / ACCOUNT).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
        (part / KEY).write_bytes(key.to_bytes())


def load(folder: Path) -> tuple[SheetKey, pl.DataFrame, tuple[str, ...]]:
    """The key, the marks and the raters who did not return a sheet, of a folder of ratings."""
    try:
        table = (folder / TABLE).read_bytes()
        account = orjson.loads((folder / ACCOUNT).read_bytes())
        not_returned = tuple(account["not_returned"])
        if account["sha256"] != hashlib.sha256(table).hexdigest():
            raise UserError(
                f"{folder / TABLE} changed after it was written. Import the sheets again."
            )
        rows = pl.read_parquet(io.BytesIO(table))
    except (OSError, pl.exceptions.PolarsError, orjson.JSONDecodeError, KeyError, TypeError):
        raise UserError(
            f"{folder} has no ratings; `evenhand annotate import SHEET.csv … --key KEY --out "
            f"{folder}` makes one"
        ) from None
    return read_key(folder / KEY), rows, not_returned
