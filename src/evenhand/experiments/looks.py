"""The looks of a watch lie in one folder: a mark for each, named by when it began, and its runs in
a folder of the same name."""

from collections.abc import Mapping
from datetime import UTC, datetime

import orjson

from evenhand.errors import UserError
from evenhand.experiments.gate_file import GateFile
from evenhand.findings.monitoring import Look
from evenhand.findings.report import not_run
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

MARKS = "looks"
_NAMED = "%Y-%m-%dT%H-%M-%S.%fZ"


def next_look(out: str, file: GateFile, now: datetime | None = None) -> str:
    """Give the folder of the look that is to be made: one that was broken off, else a new one."""
    there = _names(out)
    if there:
        runs = _runs(out, there[-1])
        if runs == dict(file.folders) and not _is_finished(f"{out}/{there[-1]}", runs):
            return f"{out}/{there[-1]}"
    name = (now or datetime.now(UTC)).strftime(_NAMED)
    open_folder(out).create(f"{MARKS}/{name}", orjson.dumps(dict(file.folders)))
    return f"{out}/{name}"


def looks_of(out: str, file: GateFile) -> tuple[list[Look], list[str]]:
    """Give every look that is finished, the oldest first, and say which ones are not."""
    found, notes = [], []
    for name in _names(out):
        place, folders = f"{out}/{name}", _runs(out, name)
        if not _is_finished(place, folders):
            notes.append(f"{place} is not finished and is left out")
            continue
        asked = [one.name for one in file.checks if one.name in folders]
        runs = {check: RunReader(f"{place}/{folders[check]}") for check in asked}
        found.append(Look(began=_began(name, out), place=place, runs=runs))
    return found, notes


def _names(out: str) -> list[str]:
    return [one.rpartition("/")[2] for one in open_folder(out).names(MARKS)]


def _began(name: str, out: str) -> str:
    try:
        return (
            datetime.strptime(name, _NAMED).replace(tzinfo=UTC).isoformat(timespec="milliseconds")
        )
    except ValueError:
        raise UserError(
            f"{out}/{MARKS}/{name} is no mark of a look: remove it, or give another --out"
        ) from None


def _runs(out: str, name: str) -> dict[str, str]:
    """Give the checks of a look and the folders of their runs, as its mark has them."""
    mark = f"{MARKS}/{name}"
    try:
        found = orjson.loads(open_folder(out).read(mark))
        if all(isinstance(one, str) and "/" not in one for one in found.values()):
            return dict(found)
    except (orjson.JSONDecodeError, AttributeError):
        pass
    raise UserError(f"{out}/{mark} is no mark of a look: remove it, or give another --out")


def _is_finished(place: str, folders: Mapping[str, str]) -> bool:
    runs = [f"{place}/{one}" for one in folders.values()]
    if not all(open_folder(one).exists("run.json") for one in runs):
        return False
    return not any(not_run(RunReader(one)) for one in runs)
