"""What a power cut can cost: calls of items that were not committed, and no committed item."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evenhand.core import Event
from evenhand.core.errors import EvenhandError
from evenhand.runs.runners import Progress, StopSignal, run
from evenhand.runs.store import RunReader, tables
from evenhand.runs.store.ledger import CommittedPart
from evenhand.runs.store.writer import OpenedRun

from . import worker
from .checker import Committed, check_whole, started
from .conftest import FIGURES
from .power import Disk, Op, Recorder, put

ITEMS, PART, CALLS = 8, 3, 6
RESUMED = 8  # one state of so many is resumed too
STOP_AFTER = 5  # items, of the first of the two processes that are recorded


State = dict[str, bytes | None]


@dataclass(frozen=True)
class Recorded:
    root: Path
    log: list[Op]
    whole: Committed


def job_at(place: Path, disk: Path | None = None) -> worker.Job:
    return worker.Job(
        out=str((disk or place / "disk") / "run"),
        log=str(place / "calls"),
        items=ITEMS,
        concurrency=4,
        seconds=0.0,
        calls=CALLS,
    )


class StopsAfter(Progress):
    """Counts as ever, and breaks the run off after so many items."""

    def __init__(self, items: int, stop: StopSignal) -> None:
        super().__init__()
        self._last, self._stop = items, stop

    def count(self, event: Event) -> None:
        super().count(event)
        if self.answered + self.failed == self._last:
            self._stop()
            self._stop()


async def work(job: worker.Job, stop_after: int = ITEMS + 1) -> None:
    plan, stop = worker.plan(job), StopSignal()
    try:
        await run(plan, job.out, progress=StopsAfter(stop_after, stop), stop=stop)
    finally:
        await plan.cast.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A run that is broken off in the middle of its items and resumed, with every change of the
    disk. "committed" is noted when a commit has returned, so that the run counts on it."""
    job = job_at(tmp_path_factory.mktemp("recorded"))
    recorder = Recorder(Path(job.out).parent)
    commit: Callable[[OpenedRun, CommittedPart], bool] = OpenedRun.commit

    def noted(self: OpenedRun, part: CommittedPart) -> bool:
        entered = commit(self, part)
        recorder.note("committed", part.positions)
        return entered

    with recorder.recording(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "PART_ITEMS", PART)
        patch.setattr(OpenedRun, "commit", noted)
        asyncio.run(work(job, STOP_AFTER))
        asyncio.run(work(job))
    whole = check_whole(Path(job.out), ITEMS)
    return Recorded(Path(job.out), recorder.log, whole)


def states(recorded: Recorded, log: list[Op]) -> Iterator[tuple[set[int], State]]:
    """Every state after every entry of the log, each once, with the items that count by then."""
    counted: set[int] = set()
    seen: set[tuple[int, int]] = set()
    for at, op in enumerate(log):
        if op[0] == "committed":
            counted = counted | {n for start, stop in op[1] for n in range(start, stop)}
        disk = Disk(log[: at + 1])
        for how, seed in (("least", 0), ("most", 0), ("names", 0), ("any", at)):
            state = disk.after_a_cut(str(recorded.root), how, seed)
            known = hash(tuple(sorted((path, data or b"") for path, data in state.items())))
            if (known, len(counted)) not in seen:
                seen.add((known, len(counted)))
                yield counted, state


def found_in(place: Path) -> set[int]:
    """The items that a reader finds, each byte checked; none where no run has begun."""
    if not (place / "run/run.json").exists():
        return set()
    reader = RunReader(place / "run")
    reader.verify()
    return set(reader.results().collect()["position"])


def test_a_power_cut_at_any_moment_loses_no_committed_item_and_the_run_goes_on(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PART_ITEMS", PART)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # what is tested has happened already
    calls = len(recorded.whole.turns)
    for number, (counted, state) in enumerate(states(recorded, recorded.log)):
        place = tmp_path / str(number)
        put(state, recorded.root, place)
        assert found_in(place) >= counted, f"state {number}"
        FIGURES.update({"power cuts": 1})
        if number % RESUMED == 0:
            job = job_at(place, disk=place)
            asyncio.run(work(job))
            check_whole(Path(job.out), ITEMS, recorded.whole)
            again = started(Path(job.log)).total()
            assert again <= calls
            FIGURES.update({"power cuts resumed": 1})
        shutil.rmtree(place)


@pytest.mark.parametrize("left_out", ["bytes", "names"])
def test_without_its_syncs_the_same_run_would_lose_committed_items(
    left_out: str, recorded: Recorded, tmp_path: Path
) -> None:
    """So the states above are hard enough to tell."""
    kind = int if left_out == "bytes" else str
    log = [op for op in recorded.log if op[0] != "sync" or not isinstance(op[1], kind)]
    lost = 0
    for number, (counted, state) in enumerate(states(recorded, log)):
        if lost or not counted:
            continue
        put(state, recorded.root, tmp_path / str(number))
        try:
            lost += not found_in(tmp_path / str(number)) >= counted
        except EvenhandError:
            lost += 1
    assert lost


def test_a_journal_goes_only_after_what_was_carried_over_from_it_is_safe(
    recorded: Recorded,
) -> None:
    """Else the calls of unfinished items would be paid again after a power cut."""
    newest, removed = -1, 0
    safe: set[int | str] = set()
    for kind, *given in recorded.log:
        if kind == "create" and "/journal/" in given[0]:
            newest, safe = given[1], set()
        elif kind == "sync":
            safe.add(given[0])
        elif kind == "unlink" and "/journal/" in given[0]:
            assert {newest, str(recorded.root / "journal")} <= safe
            removed += 1
    assert removed > 1
