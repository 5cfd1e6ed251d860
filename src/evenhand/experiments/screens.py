"""The looks at a screen lie beside its file: each run that it was used in is one, and counts
against the level of the next."""

import hashlib
from pathlib import Path

import orjson

from evenhand.errors import UserError
from evenhand.findings.screen_file import ScreenFile
from evenhand.findings.screened import Look, Screened, counted, look_at
from evenhand.runners.source import read_row
from evenhand.store import RunReader


def looks_beside(path: Path) -> Path:
    """Give the name of the file with the looks at a screen."""
    return path.with_suffix(".looks.jsonl")


def alarm_at(path: Path, file: ScreenFile) -> Look | None:
    """Give the first look that found a drift, if any did."""
    return next((one for one in _looks(path, file) if one.drifted), None)


def screened(path: Path, file: ScreenFile, run: RunReader) -> Screened:
    """Count a finished run, and look whether its scores have drifted. A run is looked at once: the
    second time the look is the one that was kept."""
    made = counted(run)
    known = _looks(path, file)
    mark = hashlib.sha256(run.record.to_bytes()).hexdigest()
    look = next((one for one in known if one.run == mark), None)
    if look is None:
        about = {"run": mark, "place": str(run.path), "created": run.record.created}
        look = look_at(file, made.scores, len(known) + 1, **about)
        known.append(look)
        _keep(path, look)
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


def _looks(path: Path, file: ScreenFile) -> list[Look]:
    """Read the looks at this screen; those at another one that had its name do not count."""
    place = looks_beside(path)
    if not place.exists():
        return []
    try:
        lines = place.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"{place} cannot be read: {error}") from None
    found = [read_row(Look, line, f"{place} line {n}") for n, line in enumerate(lines, 1) if line]
    return [one for one in found if one.screen == file.sha256]


def _keep(path: Path, look: Look) -> None:
    place = looks_beside(path)
    try:
        with place.open("ab") as lines:
            lines.write(orjson.dumps(look.model_dump()) + b"\n")
    except OSError as error:
        raise UserError(
            f"{place} cannot be written: {error}. The looks at a screen are counted there; copy "
            "the screen file to where you may write"
        ) from None
