"""R16 in an object store: one slot has one owner; a paused writer writes nothing afterwards."""

import asyncio
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import Fenced
from evenhand.runs.runners import Progress, StopSignal, replay_of, run
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.ledger import LedgerWriter
from tests.errors import assert_names
from tests.runs.crash.checker import check_whole, committed, started
from tests.runs.crash.conftest import Runner, until
from tests.runs.crash.worker import Job
from tests.runs.crash.worker import plan as plan_of

from . import racer
from .conftest import BUCKET, Unbroken, copied, objects, status, use_endpoint
from .flaky_proxy import FlakyProxy

ROUNDS = 20


@pytest.fixture
def url(tmp_path: Path) -> str:
    place = f"s3://{BUCKET}/{tmp_path.name}"
    open_folder(place).create("run.json", b"{}")
    return place


def test_of_threads_that_race_for_a_slot_exactly_one_owns_it(url: str) -> None:
    for slot in range(ROUNDS):
        assert threads_that_won(url, slot, 6) == 1


def test_of_threads_that_race_through_a_flaky_network_at_most_one_believes_it_owns_the_slot(
    url: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loser whose answer is lost finds another's bytes; the winner finds its own."""
    with FlakyProxy(server, seed=1, share=0.3) as proxy:
        use_endpoint(proxy.url, monkeypatch)
        slot = 0
        # Which request meets which fault is up to the threads: go on until it has happened.
        while slot < 8 or proxy.seen["PUT answer lost"] < 3:
            assert threads_that_won(url, slot, 4) == 1
            slot += 1


def threads_that_won(url: str, slot: int, racers: int) -> int:
    won, together = [], threading.Barrier(racers)

    def race(name: str) -> None:
        folder = open_folder(url)
        folder.exists("run.json")
        together.wait()
        try:
            LedgerWriter(folder, slot, name)
            won.append(name)
        except Fenced:
            pass

    threads = [threading.Thread(target=race, args=(f"thread {n}",)) for n in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(won)


def test_of_processes_that_race_for_a_slot_exactly_one_owns_it(url: str) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, racer.__file__, url, str(ROUNDS), f"process {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for _ in range(ROUNDS):
        assert {said(process) for process in racers} == {"ready"}
        for process in racers:
            tell(process, f"{time.time() + 0.05}")
        assert Counter(map(said, racers)) == {"won": 1, "fenced": 3}
    for process in racers:
        process.communicate()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def test_half_a_request_of_a_paused_writer_keeps_nobody_from_writing(url: str, server: str) -> None:
    host, port = server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b"PUT /runs/half HTTP/1.1\r\nHost: s3\r\nContent-Length: 9\r\n\r\nhalf")
        time.sleep(0.2)  # the server reads what has come
        open_folder(url).create("whole", b"whole")
        half.sendall(b" more")
        assert half.recv(64).split()[1] == b"200"


@pytest.mark.parametrize("calls", [30, 200])
def test_a_paused_writer_that_wakes_after_a_take_over_stops_and_has_committed_nothing(
    calls: int, job: Job, unbroken: Unbroken, store: Any, tmp_path: Path
) -> None:
    paused = Runner(replace(job, seconds=0.05, part_items=20), script=True)
    until(lambda: started(Path(job.log)).total() >= calls, "it did not get going")
    paused.signal(signal.SIGSTOP)
    paused.until_stopped()
    Runner(replace(job, steal_lock=True), script=True).finish()
    before = committed(copied(job, store, tmp_path / "before"))

    paused.signal(signal.SIGCONT)
    assert "taken over" in paused.refused("Fenced")
    after = check_whole(copied(job, store, tmp_path / "after"), job.items, unbroken.whole)
    assert after.files == before.files


def test_a_second_runner_is_told_who_writes_and_writes_nothing(job: Job, store: Any) -> None:
    open_folder(job.out).replace("status.json", status("running", 2))
    before = objects(job, store)
    message = Runner(job, script=True).refused("RunLocked")
    assert_names(message, "process 7", "host")
    assert "--steal-lock" in message
    assert objects(job, store) == before


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_lines_that_a_paused_writer_sends_after_a_take_over_are_void(
    seed: int, job: Job, store: Any, tmp_path: Path
) -> None:
    """They were in its memory. The new one has asked the same again and, with a model that never
    says the same twice, heard something else: a result must not rest on the other's turns."""
    luck = random.Random(seed)
    noisy = replace(job, noisy=True, calls=64, seconds=0.3)
    paused = Runner(noisy, script=True)
    until(lambda: started(Path(job.log)).total() > 0, "it did not get going")
    time.sleep(luck.uniform(2.0, 3.0))
    paused.signal(signal.SIGSTOP)
    paused.until_stopped()
    before = started(Path(job.log)).total()
    new = Runner(replace(noisy, steal_lock=True), script=True)
    until(lambda: started(Path(job.log)).total() > before, "the new one did not get going")
    time.sleep(luck.uniform(1.5, 2.0))
    assert new.killed()
    paused.signal(signal.SIGCONT)
    paused.refused("Fenced")

    quick = replace(noisy, steal_lock=True, seconds=0.004)
    Runner(quick, script=True).finish()
    found = check_whole(copied(job, store, tmp_path / "copy"), job.items)
    replayed = f"{job.out}-replayed"
    plan = replace(plan_of(noisy), cast=replay_of(job.out))
    asyncio.run(run(plan, replayed, progress=Progress(), stop=StopSignal()))
    again = RunReader(replayed).results().collect().to_dicts()
    # A part without conversations has no column of them.
    single = [{"conversation": None, "tool_calls": None, **row} for row in found.results]
    assert again == sorted(single, key=lambda row: int(row["position"]))
    assert not open_folder(job.out).names("journal")
