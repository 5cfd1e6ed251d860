"""A folder for each rater: a table, a page that saves one, and the rubric. None of them says which
run, method or model a text is from, and no text in them is ever run as a formula or as a script."""

import base64
import csv
import hashlib
import io
import os
import random
import re
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

import jinja2

from evenhand.core.errors import UserError
from evenhand.core.package_data import read_text
from evenhand.runs.store import RunReader
from evenhand.training.debates.dataset import cleared, require_new
from evenhand.training.rating import rubric
from evenhand.training.rating.texts import DrawnTexts, KeyRun, RatingText, SheetKey

TEXT, ID, SHEET = "text", "id", "sheet"
MOST_RATERS = 100  # our choice: more people than anybody asks
# Signs with which a spreadsheet takes a cell for a formula, wide forms included: OWASP, CSV
# injection. A ' before them makes it text.
_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # they can hide words or move a cursor


def deal(
    texts: Sequence[RatingText], raters: int, overlap: int, seed: int
) -> dict[str, tuple[str, ...]]:
    """Who rates what, in which order: each text goes to `overlap` raters, those who have the fewest
    so far, and each rater sees an order of their own."""
    if not 1 <= overlap <= raters:
        raise UserError(f"--overlap {overlap}: each text has 1 to {raters} of {raters} raters")
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
    """Write the sheets and, elsewhere, the key: all of it or nothing."""
    require_new(folder)
    if os.path.lexists(key):  # a link is not written through
        raise UserError(f"{key} is there already; name another file with --key")
    if folder.resolve() in key.resolve().parents:
        raise UserError(
            f"{key} lies where the sheets are: raters must not get the key; name it with --key"
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
    part = cleared(folder)
    for rater, files in rater_files(sheet_key).items():
        (part / rater).mkdir(parents=True)
        for name, data in files.items():
            (part / rater / name).write_bytes(data)
    key.parent.mkdir(parents=True, exist_ok=True)
    key.write_bytes(sheet_key.to_bytes())
    if folder.is_dir():
        folder.rmdir()
    os.replace(part, folder)
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
    script, style = _file("sheet.js"), _file("sheet.css")
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
    return strict.from_string(_file("sheet.html"))


def _file(name: str) -> str:
    return read_text(__package__, name)


def _digest(words: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()}"
