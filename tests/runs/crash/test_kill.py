"""R1: kill -9 at any moment loses no item, doubles none, and pays again only what was in flight."""

import random
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.errors import raises_naming

from .checker import Bill, check_whole, committed, http_key_of, key_of, recorded, started
from .conftest import FIGURES, Runner, Unbroken, replayed, until
from .worker import Job, Point

STEPS = {
    "run.json": Point(op="create", name="run.json"),
    "journal line": Point(op="append"),
    "turns part": Point(op="create", name="turns/"),
    "results part": Point(op="create", name="results/"),
    "ledger entry": Point(op="create", name="ledger/"),
    "spent journal": Point(op="remove", name="journal/"),
}
NTH = {"run.json": (1,), "journal line": (1, 400), "ledger entry": (1, 3)}
POINTS = [
    pytest.param(replace(point, when=when, nth=nth), id=f"{when}-{step}-{nth}".replace(" ", "-"))
    for step, point in STEPS.items()
    for when in ("before", "after")
    for nth in NTH.get(step, (1, 3))
]
INSIDE = [
    pytest.param(Point(op="append", do="tear", nth=250), id="half-a-journal-line"),
    pytest.param(Point(op="names", name="journal"), id="before-the-journals-are-listed"),
    *(
        pytest.param(Point(op="link", name=name, when=when), id=f"{when}-{name.strip('/')}-appears")
        for name in ("run.json", "turns/", "ledger/")
        for when in ("before", "after")
    ),
]


def resume_to_the_end(job: Job, bill: Bill, unbroken: Unbroken) -> None:
    """The same command again, then the whole account."""
    Runner(replace(job, points=())).finish()
    check_whole(Path(job.out), job.items, unbroken.whole)
    twice, in_flight = bill.check(unbroken.calls)
    FIGURES.update({"kills": bill.kills, "paid twice": twice, "in flight at kills": in_flight})


@pytest.mark.parametrize("point", POINTS + INSIDE)
def test_a_kill_at_a_named_point_and_again_in_the_recovery_costs_only_calls_in_flight(
    point: Point, job: Job, unbroken: Unbroken
) -> None:
    bill = Bill(Path(job.log))
    assert Runner(replace(job, points=(point,))).wait() == -signal.SIGKILL
    bill.note_kill(Path(job.out))
    again = replace(point, nth=1)
    if Runner(replace(job, points=(again,))).wait() == -signal.SIGKILL:
        bill.note_kill(Path(job.out))
    resume_to_the_end(job, bill, unbroken)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_kills_at_random_moments_lose_nothing_and_double_nothing(
    seed: int, job: Job, unbroken: Unbroken
) -> None:
    rng, kills, runs = random.Random(seed), 0, 0
    while kills < 7:  # of one run if it lasts so long, else of a second one
        runs += 1
        ours = replace(job, out=f"{job.out}-{runs}", log=f"{job.log}-{runs}", seconds=0.02)
        bill = Bill(Path(ours.log))
        while kills + bill.kills < 7 and kill_after(rng.uniform(0.0, 0.3), ours, bill):
            pass
        resume_to_the_end(ours, bill, unbroken)
        kills += bill.kills
    FIGURES.update({"kills at random moments": kills})


def kill_after(delay: float, job: Job, bill: Bill) -> bool:
    """Kill one process of the run, this long after it began to work; False if it was done first."""
    runner = Runner(job)
    err = Path(f"{job.log}.{runner.pid}.err")  # the first thing it opens
    until(err.exists, "the worker did not start")
    time.sleep(delay)
    if not runner.killed():
        return False
    bill.note_kill(Path(job.out))
    return True


@pytest.mark.slow
def test_kills_lose_nothing_when_the_model_is_a_server(server: Job, unbroken: Unbroken) -> None:
    """The server's own log says what was paid for; it goes on when its client is killed."""
    whole = replace(server, out=f"{server.out}-unbroken")
    Runner(whole).finish()
    expected, calls = check_whole(Path(whole.out), whole.items), started(Path(server.log))
    assert said_alike(expected.results, unbroken.whole.results)

    bill, rng = Bill(Path(server.log), key=http_key_of, before=calls), random.Random(1)
    while bill.kills < 5 and kill_after(rng.uniform(0.05, 0.3), server, bill):
        pass
    Runner(server).finish()
    check_whole(Path(server.out), server.items, expected)
    twice, in_flight = bill.check(calls)
    FIGURES.update({"kills": bill.kills, "paid twice": twice, "in flight at kills": in_flight})
    assert bill.kills >= 3


def said_alike(some: list[dict[str, object]], others: list[dict[str, object]]) -> bool:
    return Counter(str(row["text"]) for row in some) == Counter(str(row["text"]) for row in others)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_result_rests_on_its_own_turns_also_when_the_model_never_says_the_same_twice(
    seed: int, job: Job
) -> None:
    noisy, rng, bill = replace(job, noisy=True, calls=64), random.Random(seed), Bill(Path(job.log))
    while bill.kills < 4 and kill_after(rng.uniform(0.0, 0.3), noisy, bill):
        pass
    Runner(noisy).finish()
    found = check_whole(Path(job.out), job.items)
    single = [{"conversation": None, "tool_calls": None, **row} for row in found.results]
    assert replayed(noisy) == sorted(single, key=lambda row: row["position"])
    FIGURES.update({"kills": bill.kills})


def test_what_a_killed_process_left_half_written_is_never_read(
    job: Job, unbroken: Unbroken
) -> None:
    """A part without a ledger entry, and hidden files of every kind."""
    out = Path(job.out)
    before_entry = Point(op="create", name="ledger/", nth=3)
    assert Runner(replace(job, points=(before_entry,))).wait() == -signal.SIGKILL
    known = committed(out).files
    orphans = [path for path in out.rglob("*.parquet") if str(path.relative_to(out)) not in known]
    assert len(orphans) == 2, "a results part and a turns part that nobody vouches for"
    for folder, name in (("results", "x.parquet"), ("ledger", "00000002.json"), ("journal", "x")):
        (out / folder / f".{name}.1.tmp").write_bytes(b"half a fi")
    (out / "results" / "zz-stray.parquet").write_bytes(orphans[0].read_bytes())

    assert committed(out).files == known
    assert {turn["position"] for turn in committed(out).turns} == committed(out).positions().keys()
    Runner(job).finish()
    check_whole(out, job.items, unbroken.whole)


def test_a_resumed_process_with_the_number_of_a_killed_one_leaves_its_files_alone(
    job: Job, unbroken: Unbroken
) -> None:
    """In a container every process is number 1, so a hidden name must not rest on it: the file
    that a killed one left under it may be the very file that was committed, by another name."""
    for name in ("run.json", "ledger/", "turns/"):
        point = Point(op="link", name=name, when="after")
        out = Path(job.out) / name.strip("/").replace(".", "-")
        ours = replace(job, out=str(out), pid=1, log=f"{job.log}-{out.name}")
        assert Runner(replace(ours, points=(point,))).wait() == -signal.SIGKILL
        written = (out / "run.json").stat().st_mtime_ns
        Runner(ours).finish()
        assert (out / "run.json").stat().st_mtime_ns == written
        check_whole(out, job.items, unbroken.whole)


def test_the_account_notices_a_recorded_call_that_is_made_again(
    job: Job, unbroken: Unbroken
) -> None:
    """The checker itself: a journal that is thrown away is a bill that does not add up."""
    bill = Bill(Path(job.log))
    assert Runner(replace(job, points=(Point(op="append", nth=200),))).wait() == -signal.SIGKILL
    bill.note_kill(Path(job.out))
    assert recorded(Path(job.out), key_of)
    for journal in (Path(job.out) / "journal").iterdir():
        journal.unlink()
    with raises_naming(AssertionError, "recorded calls"):
        resume_to_the_end(job, bill, unbroken)
