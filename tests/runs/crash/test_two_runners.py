"""R16: of two runners on one run exactly one proceeds; a paused one writes nothing afterwards."""

import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from .checker import Bill, check_whole, committed, started, visible
from .conftest import FIGURES, Runner, Unbroken, until
from .worker import REFUSED, Job, Point

STALLS = [
    pytest.param(Point(op="names", name="journal"), id="before-it-lists-the-journals"),
    pytest.param(Point(op="names", name="journal", when="after"), id="after-it-lists-the-journals"),
    pytest.param(Point(op="remove", name="journal/"), id="before-it-removes-a-spent-journal"),
    pytest.param(Point(op="append", nth=300), id="before-a-journal-line"),
    pytest.param(Point(op="create", name="turns/", nth=2), id="before-a-turns-part"),
    pytest.param(Point(op="create", name="ledger/", nth=3), id="before-a-ledger-entry"),
    pytest.param(Point(op="link", name="ledger/", nth=3), id="inside-a-ledger-entry"),
    pytest.param(
        Point(op="create", name="ledger/", nth=3, when="after"), id="after-a-ledger-entry"
    ),
]


def test_the_second_runner_is_told_who_writes_and_what_to_do_and_changes_nothing(
    job: Job, unbroken: Unbroken
) -> None:
    first = Runner(replace(job, seconds=0.05))
    until(lambda: started(Path(job.log)).total() > 50, "the first did not get going")
    message = Runner(replace(job, log=f"{job.log}-second")).refused("RunLocked")
    assert f"process {first.pid}" in message
    assert "--steal-lock" in message
    assert not Path(f"{job.log}-second").exists() or not started(Path(f"{job.log}-second"))
    first.finish()
    check_whole(Path(job.out), job.items, unbroken.whole)
    assert started(Path(job.log)) == unbroken.calls


@pytest.mark.parametrize("point", STALLS)
def test_a_stalled_runner_that_wakes_after_a_take_over_stops_and_has_changed_nothing(
    point: Point, job: Job, unbroken: Unbroken
) -> None:
    out = Path(job.out)
    assert Runner(replace(job, points=(Point(op="append", nth=150),))).wait() == -signal.SIGKILL
    stalled = Runner(replace(job, points=(replace(point, do="stop"),)))
    stalled.until_stopped()
    Runner(replace(job, steal_lock=True)).finish()
    before = check_whole(out, job.items, unbroken.whole)

    stalled.signal(signal.SIGCONT)
    assert "taken over" in stalled.refused("Fenced")
    assert committed(out).files == before.files
    check_whole(out, job.items, unbroken.whole)
    FIGURES.update({"take-overs": 1})


@pytest.mark.parametrize("point", STALLS[:3])
def test_a_stalled_runner_that_wakes_in_its_recovery_leaves_the_journal_of_the_new_one_alone(
    point: Point, job: Job, unbroken: Unbroken
) -> None:
    """Else a kill of the new one would lose calls that it had recorded."""
    bill, wasted = Bill(Path(job.log)), Path(f"{job.log}-stalled")
    assert Runner(replace(job, points=(Point(op="append", nth=40),))).wait() == -signal.SIGKILL
    bill.note_kill(Path(job.out))
    stalled = Runner(replace(job, log=str(wasted), points=(replace(point, do="stop"),)))
    stalled.until_stopped()
    new = Runner(replace(job, steal_lock=True, points=(Point(op="append", nth=45, do="stop"),)))
    new.until_stopped()
    before = visible(Path(job.out) / "journal")
    time.sleep(1.0)  # after a stall of a second it looks before it goes on
    stalled.signal(signal.SIGCONT)
    stalled.refused("Fenced")
    assert visible(Path(job.out) / "journal") == before
    assert started(wasted).total() <= 2 * job.concurrency, "an item asks at most two side by side"
    assert new.killed()
    bill.note_kill(Path(job.out))

    Runner(job).finish()
    check_whole(Path(job.out), job.items, unbroken.whole)
    bill.check(unbroken.calls)


def status(path: Path) -> bool:
    """Whether the file is the progress report, which decides nothing."""
    return "status.json" in path.name


def test_a_runner_that_is_taken_over_at_full_speed_makes_no_file_more(
    job: Job, unbroken: Unbroken
) -> None:
    """Within the second in which it does not look: neither a part nor a journal that a third
    process would take for the newest. The temporary file of its status may stay."""
    out, bill = Path(job.out), Bill(Path(job.log))
    busy = Runner(replace(job, points=(Point(op="append", nth=100, do="stop"),)))
    busy.until_stopped()
    new = Runner(
        replace(job, steal_lock=True, points=(Point(op="names", name="journal", do="stop"),))
    )
    new.until_stopped()
    before = {path for path in out.rglob("*") if path.is_file() and not status(path)}
    busy.signal(signal.SIGCONT)
    busy.refused("Fenced")
    after = {path for path in out.rglob("*") if path.is_file() and not status(path)}
    assert after == before

    assert new.killed()
    bill.note_kill(out)
    Runner(job).finish()
    check_whole(out, job.items, unbroken.whole)
    bill.check(unbroken.calls)


def test_a_runner_that_took_over_holds_the_run_also_when_the_stalled_one_is_gone(
    job: Job, unbroken: Unbroken
) -> None:
    stalled = Runner(replace(job, points=(Point(op="append", nth=150, do="stop"),)))
    stalled.until_stopped()
    made = started(Path(job.log)).total()
    new = Runner(replace(job, seconds=0.1, steal_lock=True))
    until(lambda: started(Path(job.log)).total() > made + 50, "the new runner did not get going")
    assert stalled.killed()
    assert f"process {new.pid}" in Runner(job).refused("RunLocked")
    new.finish()
    check_whole(Path(job.out), job.items, unbroken.whole)


@pytest.mark.slow
@pytest.mark.parametrize("nth", [150, 500])
def test_of_twenty_that_take_over_at_once_the_ledger_makes_one_order(
    nth: int, job: Job, unbroken: Unbroken
) -> None:
    assert Runner(replace(job, points=(Point(op="append", nth=nth),))).wait() == -signal.SIGKILL
    racers = [Runner(replace(job, steal_lock=True)) for _ in range(20)]
    ends = [(racer.wait(), racer.end().get("error"), racer.stderr()) for racer in racers]
    assert set(ends) <= {(0, None, ""), (REFUSED, "Fenced", "")}, sorted(set(ends))
    assert (0, None, "") in ends
    found = check_whole(Path(job.out), job.items, unbroken.whole)
    assert found.tokens == sorted(set(found.tokens))
    FIGURES.update({"racers": 20, "racers fenced": sum(code == REFUSED for code, *_ in ends)})


def test_of_ten_that_open_a_new_run_at_once_exactly_one_writes_it(
    job: Job, unbroken: Unbroken
) -> None:
    racers = [Runner(job) for _ in range(10)]
    ends = sorted((racer.wait(), str(racer.end().get("error"))) for racer in racers)
    assert ends == [(0, "None")] + [(REFUSED, "RunLocked")] * 9
    check_whole(Path(job.out), job.items, unbroken.whole)
    assert started(Path(job.log)) == unbroken.calls
