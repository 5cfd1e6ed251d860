"""The looks at a screen lie beside its file: each run that it was used in is one, and counts
against the level of the next."""

import hashlib
from pathlib import Path

import orjson

from evenhand.errors import UserError
from evenhand.findings.screen_file import ScreenFile
from evenhand.findings.screened import Counted, Look, Screened, counted, look_at
from evenhand.findings.sealed import Part
from evenhand.runners.source import read_row
from evenhand.store import RunReader
from evenhand.store.folder import held

_PUT_BACK = "put {} back, or calibrate anew with evenhand screen calibrate"


def looks_beside(path: Path) -> Path:
    """Give the name of the file with the looks at a screen."""
    return path.with_suffix(".looks.jsonl")


def alarm_at(path: Path, file: ScreenFile) -> Look | None:
    """Give the first look that found a drift, if any did."""
    return next((one for one in _looks(path, file) if one.drifted), None)


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
    made = counted(run)
    mark = hashlib.sha256(run.record.to_bytes()).hexdigest()
    about = {"run": mark, "place": str(run.path), "created": run.record.created}
    if made.coverage(run.planned).below_floor:
        known = _looks(path, file)
    else:
        known = keep_look(path, file, made, **about)
    look = next((one for one in known if one.run == mark), None)
    return Screened(
        run=str(run.path),
        file=str(path),
        judge=str(run.record.cast["judge"]["model"]),
        texts=run.planned,
        counted=made,
        promises=tuple(file.promises),
        look=look,
        alarm=next((one for one in known if one.drifted), None),
    )


def keep_look(path: Path, file: ScreenFile, made: Counted, **about: str) -> list[Look]:
    """Look at a run that has no look yet; give all looks. Of two runs that end at once each is a
    look of its own, so one waits for the other."""
    _looks(path, file)  # says what is wrong with them, before they are held
    with held(looks_beside(path)):
        known = _looks(path, file)
        if about["run"] not in {one.run for one in known}:
            known.append(look_at(file, made, len(known) + 1, **about))
            _append(path, orjson.dumps(known[-1].model_dump()) + b"\n")
    return known


def _looks(path: Path, file: ScreenFile) -> list[Look]:
    """Read the looks at this screen; those at another one that had its name do not count."""
    place = looks_beside(path)
    try:
        lines = place.read_bytes().splitlines()
    except FileNotFoundError:
        raise UserError(
            f"the looks at {path} are gone, and an alarm may have been among them: "
            f"{_PUT_BACK.format(place)}"
        ) from None
    except OSError as error:
        raise UserError(f"{place} cannot be read: {error}") from None
    begun, found = False, []
    for number, line in enumerate(lines, 1):
        if line.startswith(b'{"begun"'):
            begun |= read_row(Begun, line, f"{place} line {number}").begun == file.sha256
        elif line:
            found.append(read_row(Look, line, f"{place} line {number}"))
    if not begun:
        raise UserError(f"{place} does not begin with this screen: {_PUT_BACK.format(place)}")
    return [one for one in found if one.screen == file.sha256]


def _append(path: Path, line: bytes) -> None:
    place = looks_beside(path)
    try:
        with place.open("ab") as lines:
            lines.write(line)
    except OSError as error:
        raise UserError(
            f"{place} cannot be written: {error}. The looks at a screen are counted there; move "
            "both files to where you may write"
        ) from None
