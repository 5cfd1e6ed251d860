"""R13: a full disk stops a run cleanly; with room again, the same command ends it."""

import asyncio
import signal
import threading
import time
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.core.errors import DiskFull
from evenhand.runs.runners import Progress, StopSignal, run
from evenhand.runs.store import RunReader, RunWriter, tables
from evenhand.runs.store.folder import LocalAppender, LocalFolder
from tests.errors import assert_names, raises_naming

from . import worker
from .checker import Bill, check_whole, committed, visible
from .conftest import FIGURES, Runner, SmallDisk, Unbroken
from .worker import Job, Point

PAGE = 4096
PAGES = (4, 6, 9, 13, 20, 30, 45, 70, 1000)  # more and more room
PLACES = {
    "lock": Point(op="lock"),
    "run.json": Point(op="create", name="run.json"),
    "the-first-ledger-entry": Point(op="create", name="ledger/"),
    "journal": Point(op="append", nth=100),
    "a-turns-part": Point(op="create", name="turns/", nth=2),
    "a-results-part": Point(op="create", name="results/", nth=2),
    "a-ledger-entry": Point(op="create", name="ledger/", nth=3),
    "the-last-ledger-entry": Point(op="create", name="ledger/", nth=6),
}


def stops_cleanly(job: Job, bill: Bill) -> str:
    """Run until the disk is full, and look at what is left; gives the name that had no room."""
    message = Runner(job).refused("DiskFull")
    assert_names(message, "resume")
    out = Path(job.out)
    found = committed(out)  # every committed byte against its hash
    assert not found.positions().total() - len(found.positions())
    if (out / "run.json").exists():
        assert len(RunReader(out).results().collect()) == len(found.results)
    for journal in visible(out / "journal"):
        *lines, tail = journal.read_bytes().split(b"\n")
        assert tail == b"", "half a line would spoil the one after it"
        for line in lines:
            assert line[2:10] == b"%08x" % zlib.crc32(line[11:]), "a row was spoilt"
    bill.note_kill(out)
    place = message.removeprefix("no room to write ").split(".")[0].split("/")[0]
    if place == "results":
        parts = {str(path.relative_to(out)) for path in out.rglob("*.parquet")}
        assert parts <= found.files.keys(), "its turns alone are of no use and take room"
    return place


@pytest.mark.parametrize("place", PLACES)
def test_a_disk_that_fills_at_a_named_place_stops_the_run_and_a_larger_one_ends_it(
    place: str, job: Job, unbroken: Unbroken, disk: SmallDisk
) -> None:
    disk.mount(16 * 1024 * PAGE)
    job, bill = replace(job, out=str(disk.path / "run")), Bill(Path(job.log))
    named = stops_cleanly(replace(job, points=(replace(PLACES[place], do="fill"),)), bill)
    assert named in place
    disk.enlarge()
    Runner(job).finish()
    check_whole(Path(job.out), job.items, unbroken.whole)
    bill.check(unbroken.calls)
    FIGURES.update({"full disks": 1})


def test_attempts_on_a_disk_that_stays_full_do_not_fill_it_further(
    job: Job, unbroken: Unbroken, disk: SmallDisk
) -> None:
    """Else the little room that is freed would go to copies of the same journal."""
    disk.mount(16 * 1024 * PAGE)
    job = replace(job, out=str(disk.path / "run"))
    assert Runner(replace(job, points=(Point(op="append", nth=200),))).wait() == -signal.SIGKILL
    used = disk.used()
    disk.enlarge(used + 8 * PAGE)
    for attempt in range(1, 4):
        Runner(job).refused("DiskFull")
        assert disk.used() <= used + attempt * PAGE, "an opening in the ledger, and no more"
    disk.enlarge()
    Runner(job).finish()
    check_whole(Path(job.out), job.items, unbroken.whole)


@pytest.mark.slow
def test_disks_of_many_sizes_fill_at_many_places_and_none_costs_a_row(
    job: Job, unbroken: Unbroken, disk: SmallDisk
) -> None:
    named = set()
    for pages in (*range(2, 12, 3), *range(12, 80, 7)):
        disk.mount(pages * PAGE)
        log = Path(f"{job.log}-{pages}")
        ours, bill = replace(job, out=str(disk.path / "run"), log=str(log)), Bill(log)
        named.add(stops_cleanly(ours, bill))
        if pages % 2:  # full again, a little later
            disk.enlarge(2 * pages * PAGE)
            named.add(stops_cleanly(ours, bill))
        disk.enlarge()
        Runner(ours).finish()
        check_whole(Path(ours.out), job.items, unbroken.whole)
        bill.check(unbroken.calls)
        FIGURES.update({"full disks": 1 + pages % 2})
        disk.unmount()
    assert {"journal", "results"} <= named
    assert len(named) >= 3


def test_a_full_disk_while_hundreds_of_answers_wait_for_it_ends_the_run_and_does_not_hang_it(
    job: Job, disk: SmallDisk
) -> None:
    disk.mount(16 * 1024 * PAGE)
    crawl = Point(op="create", name="turns/", do="crawl")
    many = replace(job, out=str(disk.path / "run"), items=900, concurrency=400, points=(crawl,))
    Runner(many).refused("DiskFull")
    disk.enlarge()
    Runner(replace(many, points=())).finish()
    check_whole(Path(many.out), many.items)


def test_a_run_can_go_on_in_the_process_that_met_the_full_disk(
    job: Job, unbroken: Unbroken, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook. The lock must have been let go, also where opening the run failed."""
    monkeypatch.setattr(tables, "PART_ITEMS", job.part_items)
    disk.mount(PAGE)
    job = replace(job, out=str(disk.path / "run"), concurrency=5)
    worker.fill(disk.path)
    with raises_naming(DiskFull, "lock"):
        RunWriter.open(Path(job.out), worker.plan(job).record())

    fulls: list[int] = []

    async def attempts() -> None:
        for pages in PAGES:
            disk.enlarge(pages * PAGE)
            planned = worker.plan(job)
            try:
                await run(planned, Path(job.out), progress=Progress(), stop=StopSignal())
                break
            except DiskFull:
                fulls.append(pages)
            finally:
                await planned.cast.close()

    asyncio.run(attempts())
    assert len(fulls) >= 5
    check_whole(Path(job.out), job.items, unbroken.whole)


async def test_a_run_whose_very_last_part_finds_no_room_lets_go_and_goes_on_in_the_same_process(
    job: Job, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = LocalFolder.create

    def fill_first(self: LocalFolder, name: str, data: bytes) -> None:
        if name.startswith("results/"):
            worker.fill(disk.path)
        create(self, name, data)

    disk.mount(16 * 1024 * PAGE)
    few = replace(job, out=str(disk.path / "run"), items=20)
    planned, out = worker.plan(few), Path(few.out)
    monkeypatch.setattr(LocalFolder, "create", fill_first)
    with raises_naming(DiskFull, "results/part-00000000-000000.parquet"):
        await run(planned, out, progress=Progress(), stop=StopSignal())
    monkeypatch.setattr(LocalFolder, "create", create)
    disk.enlarge()
    await run(planned, out, progress=Progress(), stop=StopSignal())
    await planned.cast.close()
    check_whole(out, few.items)


async def test_a_run_that_meets_a_full_disk_does_not_leave_a_thread_that_still_writes(
    job: Job, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is let go then, so the next runner would meet it."""
    create, append, writing = LocalFolder.create, LocalAppender.write, threading.Event()

    def slow(self: LocalFolder, name: str, data: bytes) -> None:
        if not name.startswith("turns/"):
            return create(self, name, data)
        writing.set()
        time.sleep(1.0)
        try:
            return create(self, name, data)
        finally:
            writing.clear()

    def fill_meanwhile(self: LocalAppender, data: bytes) -> None:
        if writing.is_set():
            worker.fill(disk.path)
        append(self, data)

    disk.mount(512 * PAGE)
    monkeypatch.setattr(tables, "PART_ITEMS", job.part_items)
    monkeypatch.setattr(LocalFolder, "create", slow)
    monkeypatch.setattr(LocalAppender, "write", fill_meanwhile)
    planned = worker.plan(replace(job, seconds=0.3))  # slow: no second part is full meanwhile
    with pytest.raises(DiskFull):
        await run(planned, disk.path / "run", progress=Progress(), stop=StopSignal())
    await planned.cast.close()
    assert not writing.is_set()
