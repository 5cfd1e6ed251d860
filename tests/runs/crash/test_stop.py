"""SIGINT and SIGTERM: once ends cleanly, twice ends now, and the same command goes on."""

import asyncio
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.runs.runners import Progress, StopSignal, run
from evenhand.runs.store import tables
from evenhand.runs.store.folder import LocalFolder
from tests.errors import raises_naming

from . import worker
from .checker import Bill, check_whole, committed, ended, started
from .conftest import FIGURES, Runner, Unbroken, until
from .worker import Job


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_finishes_the_items_at_work_and_nothing_is_ever_paid_twice(
    number: signal.Signals, job: Job, unbroken: Unbroken
) -> None:
    log = Path(job.log)
    runner = Runner(replace(job, seconds=0.03), script=True)
    until(lambda: ended(log).total() >= 100, "the run did not get going")
    runner.signal(number)
    runner.finish()

    done = committed(Path(job.out)).positions()
    assert 0 < done.total() < job.items
    assert started(log) == ended(log), "no call was cut off"
    assert {int(key.split(":")[0]) for key in started(log)} <= done.keys(), "no item was cut off"

    Runner(job).finish()
    check_whole(Path(job.out), job.items, unbroken.whole)
    assert started(log) == unbroken.calls
    FIGURES.update({"soft stops": 1})


def test_a_second_signal_stops_at_once_and_what_was_recorded_is_not_paid_again(
    job: Job, unbroken: Unbroken
) -> None:
    bill = Bill(Path(job.log))
    runner = Runner(replace(job, seconds=0.2))
    until(lambda: ended(bill.log).total() >= 120, "the run did not get going")
    runner.signal(signal.SIGINT)
    runner.signal(signal.SIGTERM)
    told = time.monotonic()
    runner.finish()
    assert time.monotonic() - told < 10.0
    assert started(bill.log).total() > ended(bill.log).total(), "calls were under way"
    bill.note_kill(Path(job.out))

    Runner(job).finish()
    check_whole(Path(job.out), job.items, unbroken.whole)
    twice, in_flight = bill.check(unbroken.calls)
    assert 0 < twice <= in_flight
    FIGURES.update({"hard stops": 1, "paid twice": twice, "in flight at kills": in_flight})


def test_one_signal_waits_for_items_at_work_and_two_do_not(job: Job) -> None:
    """A call takes an hour here: only the second signal can end the run."""
    runner = Runner(replace(job, seconds=3600.0, items=20))
    until(lambda: started(Path(job.log)).total() >= 20, "the run did not get going")
    runner.signal(signal.SIGINT)
    with raises_naming(AssertionError, runner.pid, "1.0 s"):
        runner.wait(1.0)


async def test_a_run_cancelled_while_a_part_is_being_written_waits_for_it_and_can_be_resumed(
    job: Job, unbroken: Unbroken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a time-out around it. A thread cannot be cancelled: two would write the ledger."""
    create, writing = LocalFolder.create, threading.Event()

    def slow(self: LocalFolder, name: str, data: bytes) -> None:
        if name.startswith("turns/"):
            writing.set()
            time.sleep(0.4)
        create(self, name, data)

    monkeypatch.setattr(LocalFolder, "create", slow)
    monkeypatch.setattr(tables, "PART_ITEMS", job.part_items)
    planned, out = worker.plan(job), Path(job.out)
    running = asyncio.create_task(run(planned, out, progress=Progress(), stop=StopSignal()))
    await asyncio.to_thread(writing.wait)
    await asyncio.sleep(0.2)  # the next part is full by now and waits
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    done = committed(out).positions().total()
    assert 2 * job.part_items <= done < job.items, "both parts are committed"

    await run(planned, out, progress=Progress(), stop=StopSignal())
    await planned.cast.close()
    check_whole(out, job.items, unbroken.whole)
