"""Ends of a run on a cluster that are not its end: a word to stop, a second driver, a method that
cannot do its items, a cap. The bill is the server's own log."""

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from tests.errors import assert_names
from tests.runs.crash.checker import (
    Bill,
    Committed,
    check_whole,
    committed,
    ended,
    http_key_of,
    started,
    visible,
)

from .conftest import Driver, Upstream, write_items
from .driver import Job
from .nodes import Nodes

ITEMS = 160
IN_FLIGHT = 24
LATENCY = 0.3  # so that there is time to stop it; waiting takes no core


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Upstream]:
    """A server without faults: here each line of its log is one call."""
    server = Upstream(tmp_path / "server", seed=5, rate=0.0, latency=LATENCY)
    yield server
    server.close()


@dataclass(frozen=True)
class Unbroken:
    """The run that nothing happened to."""

    job: Job
    whole: Committed
    calls: Counter[str]  # as the server logged them


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    folder = tmp_path_factory.mktemp("unbroken")
    server = Upstream(folder / "server", seed=5, rate=0.0, latency=LATENCY)
    job = Job(
        out=str(folder / "run"),
        items=write_items(folder / "items.jsonl", ITEMS),
        url=server.url,
        concurrency=100,
        attempt_timeout=30.0,
    )
    try:
        Driver(job, folder / "log").finish()
    finally:
        server.close()
    return Unbroken(job, committed(Path(job.out)), started(server.log))


@dataclass(frozen=True)
class Scene:
    """The job for a run on the cluster, its bill, and what an unbroken one gave."""

    job: Job
    bill: Bill
    unbroken: Unbroken

    @property
    def out(self) -> Path:
        return Path(self.job.out)

    def calls(self) -> int:
        return self.bill.made().total()

    def is_whole(self) -> None:
        check_whole(self.out, ITEMS, self.unbroken.whole)
        assert not visible(self.out / "journal")

    def wait_for(self, calls: int, driver: Driver) -> None:
        """Until the server has been asked so often."""
        ends = time.monotonic() + 400.0
        while self.calls() < calls:
            assert driver.running, "the run was over first"
            assert time.monotonic() < ends, f"{self.calls()} calls"
            time.sleep(0.05)


@pytest.fixture
def scene(nodes: Nodes, served: Upstream, unbroken: Unbroken, tmp_path: Path) -> Iterator[Scene]:
    job = replace(
        unbroken.job,
        out=str(tmp_path / "run"),
        url=served.url,
        address=nodes.address,
        concurrency=IN_FLIGHT,
    )
    yield Scene(job, Bill(served.log, 2 * 2 * IN_FLIGHT, http_key_of), unbroken)
    for process in nodes.actors():  # of a driver that a failed test has left
        process.kill()


def status(out: Path) -> str:
    state: str = json.loads((out / "status.json").read_text())["state"]
    return state


def test_one_interrupt_finishes_the_items_at_work_and_a_resumed_run_pays_nothing_twice(
    scene: Scene, tmp_path: Path
) -> None:
    driver = Driver(scene.job, tmp_path / "first")
    scene.wait_for(120, driver)
    driver.signal(signal.SIGINT)
    told = time.monotonic()
    end = driver.finish()
    took = time.monotonic() - told
    print(f"stopped in {took:.1f} s with {end['done']} of {ITEMS} items")
    done = committed(scene.out).positions()
    assert 0 < done.total() < ITEMS
    assert (end["state"], status(scene.out)) == ("stopped", "stopped")
    assert end["done"] == done.total()
    assert scene.calls() == ended(scene.bill.log).total(), "none is cut"

    assert Driver(scene.job, tmp_path / "second").finish()["state"] == "ended"
    scene.is_whole()
    assert scene.bill.made() == scene.unbroken.calls, "as in the unbroken run"
    assert status(scene.out) == "ended"


def test_a_second_interrupt_ends_it_at_once_and_only_calls_in_flight_are_paid_again(
    scene: Scene, tmp_path: Path
) -> None:
    driver = Driver(scene.job, tmp_path / "first")
    scene.wait_for(120, driver)
    driver.signal(signal.SIGINT)
    driver.signal(signal.SIGTERM)  # two of one kind may arrive as one
    told = time.monotonic()
    end = driver.finish()
    print(f"stopped in {time.monotonic() - told:.1f} s")
    assert (end["state"], status(scene.out)) == ("stopped", "stopped")
    scene.bill.note_kill(scene.out)

    Driver(scene.job, tmp_path / "second").finish()
    scene.is_whole()
    twice, in_flight = scene.bill.check(scene.unbroken.calls)
    print(f"{twice} paid twice of {in_flight} in flight")
    assert 0 < twice <= in_flight


def test_a_second_driver_is_refused_and_one_that_takes_over_ends_the_first(
    scene: Scene, nodes: Nodes, tmp_path: Path
) -> None:
    """R16, on a cluster."""
    first = Driver(replace(scene.job, actors=1), tmp_path / "first")
    scene.wait_for(100, first)
    for process in nodes.actors():  # else it may be done before the others have started
        process.suspend()
    refused = Driver(scene.job, tmp_path / "refused").end()
    assert refused["error"] == "RunLocked"
    assert f"process {first._process.pid}" in refused["message"]

    second = Driver(replace(scene.job, actors=1, steal_lock=True), tmp_path / "second")
    assert first.end()["error"] == "Fenced"
    assert second.finish()["state"] == "ended"
    scene.is_whole()
    assert len(committed(scene.out).tokens) == 2


def test_a_driver_that_slept_through_a_take_over_ends_as_fenced_and_has_changed_nothing(
    scene: Scene, nodes: Nodes, tmp_path: Path
) -> None:
    first = Driver(replace(scene.job, actors=1), tmp_path / "first")
    scene.wait_for(100, first)
    asleep = [psutil.Process(first._process.pid), *nodes.actors()]
    for process in asleep:
        process.suspend()
    second = Driver(replace(scene.job, actors=1, steal_lock=True), tmp_path / "second")
    second.finish()
    before = committed(scene.out).files
    for process in asleep:
        process.resume()
    assert first.end()["error"] == "Fenced"
    assert committed(scene.out).files == before
    scene.is_whole()


def test_a_method_that_cannot_do_an_item_ends_the_run_with_its_own_words(
    nodes: Nodes, tmp_path: Path
) -> None:
    job = Job(
        out=str(tmp_path / "run"),
        items=write_items(tmp_path / "items.jsonl", 40),
        address=nodes.address,
        method="cot",
    )
    local = Driver(replace(job, address="", out=str(tmp_path / "local")), tmp_path / "l").end()
    told = Driver(job, tmp_path / "log").end()
    assert told["error"] == "UserError"
    assert_names(told["message"], "cot", "i0")
    assert told == local
    assert status(tmp_path / "run") == "failed"
    assert "Traceback" not in (tmp_path / "log" / "stderr").read_text()


def test_a_cap_on_calls_holds_over_all_actors_and_a_higher_one_goes_on_from_there(
    scene: Scene, tmp_path: Path
) -> None:
    cap = 250
    end = Driver(replace(scene.job, max_calls=cap), tmp_path / "capped").finish()
    print(f"{scene.calls()} of {cap} calls")
    assert end["capped_by"] == "--max-calls"
    assert (end["state"], status(scene.out)) == ("stopped", "stopped")
    assert scene.calls() == cap, "not one more, and all of them"

    end = Driver(replace(scene.job, max_calls=100_000), tmp_path / "more").finish()
    assert (end["capped_by"], end["state"]) == (None, "ended")
    scene.is_whole()
    assert scene.bill.made() == scene.unbroken.calls, "as many calls as an unbroken run"
