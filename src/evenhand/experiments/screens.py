"""The looks at a screen lie beside its file: each run that it was used in is one, its scores are
pooled with those of all looks before, and it counts against the level of the next.

Each look names the checksum of the line before it, and the screen file that of the last one. So a
file of looks that was cut back, changed or put back from an earlier day is refused.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import orjson

from evenhand.errors import UserError
from evenhand.findings.checksummed import Part
from evenhand.findings.screen_file import LastLook, ScreenFile, read_screen
from evenhand.findings.screened import Counted, Look, Screened, counted, look_at
from evenhand.runners.source import read_row
from evenhand.store import RunReader
from evenhand.store.folder import held

_BEGUN = b'{"begun"'
_PUT_BACK = "put {} back, or calibrate anew with evenhand screen calibrate"


def looks_beside(path: Path) -> Path:
    """Give the name of the file with the looks at a screen."""
    return path.with_suffix(".looks.jsonl")


def alarm_at(path: Path, file: ScreenFile) -> Look | None:
    """Give the first look that found a drift, if any did."""
    return next((look for look in _looks(path, file) if look.drifted), None)


class Begun(Part):
    """The first line of the looks at a screen, so that a file that was lost is not replaced by an
    empty one without a word."""

    begun: str  # the checksum of the screen file


def begin_looks(path: Path, file: ScreenFile) -> None:
    """Begin the looks at a screen that was just made."""
    _append(path, orjson.dumps(Begun(begun=file.sha256).model_dump()) + b"\n")


def refuse_unkept(path: Path) -> None:
    """Refuse a place where a look could not be kept, before a run is paid for."""
    _append(path, b"")


def screened(path: Path, file: ScreenFile, run: RunReader) -> Screened:
    """Count a finished run, and look whether its scores have drifted. A run is looked at once: the
    second time the look is the one that was kept."""
    counts = counted(run)
    mark = hashlib.sha256(run.record.to_bytes()).hexdigest()
    about = {"run": mark, "place": str(run.path), "created": run.record.created}
    if counts.coverage(run.planned).below_floor:
        looks = _looks(path, file)
    else:
        looks = keep_look(path, file, counts, **about)
    look = next((look for look in looks if look.run == mark), None)
    return Screened(
        run=str(run.path),
        file=str(path),
        judge=str(run.record.cast["judge"]["model"]),
        texts=run.planned,
        counted=counts,
        promises=tuple(file.promises),
        look=look,
        alarm=next((look for look in looks if look.drifted), None),
    )


def keep_look(path: Path, file: ScreenFile, counts: Counted, **about: str) -> list[Look]:
    """Look at a run that has no look yet; give all looks. Of two runs that end at once each is a
    look of its own, so one waits for the other."""
    _looks(path, file)  # says what is wrong with them, before they are held
    with held(looks_beside(path)):
        looks = _looks(path, file)
        if about["run"] not in {look.run for look in looks}:
            after = _checksum(looks_beside(path).read_bytes().splitlines()[-1])
            looks.append(look_at(file, counts, looks, after=after, **about))
            line = orjson.dumps(looks[-1].model_dump())
            _append(path, line + b"\n")
            _count(path, file, LastLook(number=len(looks), line=_checksum(line)))
    return looks


def _count(path: Path, file: ScreenFile, last: LastLook) -> None:
    """Write the number of looks into the screen file, at once or not at all."""
    new_path = path.with_suffix(".json.new")
    try:
        new_path.write_bytes(file.model_copy(update={"last_look": last}).to_bytes())
        os.replace(new_path, path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error}. The looks at it are counted there; "
                        "move both files to where you may write") from None  # fmt: skip


def _looks(path: Path, file: ScreenFile) -> list[Look]:
    """Read the looks at this screen; those at another one that had its name do not count."""
    looks_path = looks_beside(path)
    last = read_screen(path).last_look  # before the looks: they may become more meanwhile
    try:
        lines = looks_path.read_bytes().splitlines()
    except FileNotFoundError:
        raise UserError(
            f"the looks at {path} are gone, and an alarm may have been among them: "
            f"{_PUT_BACK.format(looks_path)}"
        ) from None
    except OSError as error:
        raise UserError(f"{looks_path} cannot be read: {error}") from None
    begun = {read_row(Begun, line, f"{looks_path} line {number}").begun
             for number, line in enumerate(lines, 1) if line.startswith(_BEGUN)}  # fmt: skip
    if file.sha256 not in begun:
        raise UserError(
            f"{looks_path} does not begin with this screen: {_PUT_BACK.format(looks_path)}"
        )
    matching = [
        (look, line) for look, line in _chained(looks_path, lines) if look.screen == file.sha256
    ]
    if last.number and [_checksum(line) for _, line in matching[: last.number]][-1:] != [last.line]:
        raise UserError(
            f"{path} counts {last.number} looks, and {looks_path} holds {len(matching)} or others: "
            f"an alarm may have been among them: {_PUT_BACK.format(looks_path)}"
        )
    return [look for look, _ in matching]


def _chained(looks_path: Path, lines: list[bytes]) -> Iterator[tuple[Look, bytes]]:
    """Give every look with its line; one that does not follow the line before it is refused."""
    for number, line in enumerate(lines, 1):
        if not line or line.startswith(_BEGUN):
            continue
        look = read_row(Look, line, f"{looks_path} line {number}")
        if number < 2 or look.after != _checksum(lines[number - 2]):
            changed = f"{looks_path} was changed before line {number}"
            raise UserError(f"{changed}: {_PUT_BACK.format(looks_path)}")
        yield look, line


def _checksum(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _append(path: Path, line: bytes) -> None:
    looks_path = looks_beside(path)
    try:
        with looks_path.open("ab") as lines:
            lines.write(line)
    except OSError as error:
        raise UserError(
            f"{looks_path} cannot be written: {error}. The looks at a screen are counted there; "
            "move both files to where you may write"
        ) from None
