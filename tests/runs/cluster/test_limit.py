"""R5 over a whole cluster: the actors share one limit, and it follows what the server can take."""

import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.loopback.faulty import Capacity
from tests.loopback.process import Reading, RemoteServer, in_own_process
from tests.runs.crash.conftest import until

from .conftest import Driver, write_items
from .driver import Job
from .nodes import Nodes

ACTORS = 4
CAPACITIES = (20, 5, 20)
LATENCY = 0.25  # so that the time a call waits for a core of this machine does not count
SETTLE, MEASURED = 5.0, 5.0  # seconds
LONGEST = 30.0  # the bar: seconds from a change of capacity to a mean within 25 % of it
FOUR_STARTS = 4 * 16  # what four processes that know nothing of each other open at once


@pytest.fixture
def remote() -> Iterator[RemoteServer]:
    with in_own_process(Capacity(limit=CAPACITIES[0], latency=LATENCY)) as server:
        yield server


@pytest.fixture
def four_actors(nodes: Nodes) -> Iterator[Nodes]:
    """A node has cores for two."""
    nodes.add()
    yield nodes
    until(lambda: not nodes.actors(), "the actors live on", seconds=60)
    nodes.kill()


def _mean(before: Reading, after: Reading) -> float:
    return (after.busy_seconds - before.busy_seconds) / (after.clock - before.clock)


def _overload_share(before: Reading, after: Reading) -> float:
    full = after.outcomes.get("overloaded", 0) - before.outcomes.get("overloaded", 0)
    good = after.outcomes.get("good", 0) - before.outcomes.get("good", 0)
    return full / (full + good)


def _is_near(mean: float, capacity: int) -> bool:
    return 0.75 * capacity <= mean <= 1.25 * capacity


def _settled_mean(remote: RemoteServer, capacity: int) -> float:
    """The mean over the first five seconds that are near the capacity, or the last within 30 s."""
    time.sleep(SETTLE)
    before = remote.read()
    for _ in range(int((LONGEST - SETTLE) / MEASURED)):
        time.sleep(MEASURED)
        after = remote.read()
        mean, before = _mean(before, after), after
        if _is_near(mean, capacity):
            break
    return mean


def _wait_until_at_work(nodes: Nodes, remote: RemoteServer) -> None:
    ends = time.monotonic() + 120.0
    while len(nodes.actors()) < ACTORS or remote.read().outcomes.get("good", 0) < 200:
        assert time.monotonic() < ends, f"only {len(nodes.actors())} actors: {remote.read()}"
        time.sleep(0.5)  # looking costs the cores that the actors need


@pytest.mark.slow
def test_the_calls_of_four_actors_together_follow_a_capacity_of_20_then_5_then_20(
    four_actors: Nodes, remote: RemoteServer, tmp_path: Path
) -> None:
    job = Job(
        out=str(tmp_path / "run"),
        items=write_items(tmp_path / "items.jsonl", 20_000),
        url=remote.url,
        address=four_actors.address,
        actors=ACTORS,
        concurrency=24,
        attempt_timeout=5.0,
    )
    driver = Driver(job, tmp_path / "log")
    _wait_until_at_work(four_actors, remote)
    readings, means = [remote.read()], []
    for capacity in CAPACITIES:
        remote.set("limit", capacity)
        means.append(_settled_mean(remote, capacity))
        readings.append(remote.read())
    four_at_work = len(four_actors.actors())
    shares = [_overload_share(before, after) for before, after in pairwise(readings)]
    last = readings[-1]
    overall = last.outcomes["overloaded"] / last.outcomes["good"]
    print(f"means {means}, most {last.most_connections}, overload {overall:.4f}, by phase {shares}")
    remote.set("limit", 1000)  # for a quick end of the items at work
    driver.signal(signal.SIGINT)
    told = driver.finish()
    assert four_at_work == ACTORS
    assert told["failed_by_reason"].get("model_busy", 0) == 0, "waiting for a place fails nobody"
    assert [_is_near(*pair) for pair in zip(means, CAPACITIES, strict=True)] == [True] * 3
    assert overall <= 0.05
    assert last.most_connections < FOUR_STARTS
