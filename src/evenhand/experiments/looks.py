"""The looks of a watch lie in one folder: a mark for each, named by when it began, and its runs in
a folder of the same name, which is that of a gate."""

from datetime import UTC, datetime

from evenhand.core.errors import UserError
from evenhand.experiments.gate_file import GateFile
from evenhand.experiments.gating import CHECKS, RecordedRuns
from evenhand.findings.display import Remark
from evenhand.findings.monitoring import Monitoring, MonitoringLook, monitoring
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder

MARKS = "looks"
_NAMED = "%Y-%m-%dT%H-%M-%S.%fZ"


def judged(file: GateFile, out: str, false_alarm_every: int) -> Monitoring:
    """Judge all finished looks in a folder.

    Args:
        file: The checks.
        out: The folder of the looks.
        false_alarm_every: Average number of looks between two false alarms, at least.

    Raises:
        UserError: If no look is finished.
    """
    looks, notes = looks_of(out, file)
    if not looks:
        raise UserError(f"{out} has no look yet: evenhand watch {file.path} --out {out}")
    return monitoring(file.checks, looks, false_alarm_every=false_alarm_every, notes=notes)


def next_look(out: str) -> str:
    """Give the folder of the look that is to be made: one that was broken off, else a new one."""
    there = _names(out)
    if there and not _is_finished(f"{out}/{there[-1]}"):
        return f"{out}/{there[-1]}"
    name = datetime.now(UTC).strftime(_NAMED)
    open_folder(out).create(f"{MARKS}/{name}", b"")
    return f"{out}/{name}"


def looks_of(out: str, file: GateFile) -> tuple[list[MonitoringLook], list[Remark]]:
    """Give every look that is finished, the oldest first, and say which ones are not. A check that
    a look did not have yet has no run in it."""
    looks, notes = [], []
    for name in _names(out):
        folder = f"{out}/{name}"
        if not _is_finished(folder):
            notes.append(Remark("look.unfinished", folder=folder))
            continue
        run_by_check = RecordedRuns.at([folder]).by_check
        runs = {
            check.name: RunReader(run_by_check[check.name])
            for check in file.checks
            if check.name in run_by_check
        }
        looks.append(MonitoringLook(began=_began(name, out), place=folder, runs=runs))
    return looks, notes


def _names(out: str) -> list[str]:
    return [path.rpartition("/")[2] for path in open_folder(out).names(MARKS)]


def _began(name: str, out: str) -> str:
    try:
        began = datetime.strptime(name, _NAMED).replace(tzinfo=UTC)
    except ValueError:
        raise UserError(
            f"{out}/{MARKS}/{name} is no mark of a look: remove it, or give another --out"
        ) from None
    return began.isoformat(timespec="milliseconds")


def _is_finished(folder: str) -> bool:
    """A gate says which check looks at which run when all of them are run."""
    return open_folder(folder).exists(CHECKS)
