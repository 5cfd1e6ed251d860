"""R5: how many calls are under way follows what the server can take."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise

import pytest

from evenhand.core import Message
from evenhand.models import Endpoint
from evenhand.models.base import ModelRequest
from tests.loopback.faulty import Capacity
from tests.loopback.process import Reading, RemoteServer, in_own_process

from .conftest import Connect

WORKERS = 60  # three times the largest capacity: there is always more to send
CAPACITIES = (20, 5, 20)
SETTLE, MEASURED = 5.0, 5.0  # seconds
LONGEST = 30.0  # the bar: seconds from a change of capacity to a mean within 25 % of it


@pytest.fixture
def remote() -> Iterator[RemoteServer]:
    with in_own_process(Capacity(limit=20, latency=0.05)) as server:
        yield server


async def _ask_forever(model: Endpoint, worker: int) -> None:
    request = ModelRequest(messages=(Message("user", f"Hello from {worker}."),))
    while True:
        await model.complete(request)


def _mean_concurrency(before: Reading, after: Reading) -> float:
    return (after.busy_seconds - before.busy_seconds) / (after.clock - before.clock)


def _overload_share(before: Reading, after: Reading) -> float:
    full = after.outcomes["overloaded"] - before.outcomes.get("overloaded", 0)
    good = after.outcomes["good"] - before.outcomes.get("good", 0)
    return full / (full + good)


def _is_near(mean: float, capacity: int) -> bool:
    return 0.75 * capacity <= mean <= 1.25 * capacity


async def _settled_mean(remote: RemoteServer, capacity: int) -> float:
    """The mean over the first five seconds that are near the capacity, or the last within 30 s."""
    await asyncio.sleep(SETTLE)
    for _ in range(int((LONGEST - SETTLE) / MEASURED)):
        before = remote.read()
        await asyncio.sleep(MEASURED)
        mean = _mean_concurrency(before, remote.read())
        if _is_near(mean, capacity):
            break
    return mean


@pytest.mark.slow
async def test_calls_under_way_follow_a_capacity_of_20_then_5_then_20_with_few_overload_answers(
    remote: RemoteServer, connect: Connect
) -> None:
    model = connect(remote.url)
    workers = [asyncio.create_task(_ask_forever(model, n)) for n in range(WORKERS)]
    means: list[float] = []
    readings = [remote.read()]
    for capacity in CAPACITIES:
        remote.set("limit", capacity)
        means.append(await _settled_mean(remote, capacity))
        readings.append(remote.read())
    for worker in workers:
        worker.cancel()
    ends = await asyncio.gather(*workers, return_exceptions=True)
    shares = [_overload_share(before, after) for before, after in pairwise(readings)]
    overall = _overload_share(readings[0], readings[-1])
    print(f"means {means}, overload {overall:.4f}, by phase {shares}")
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)  # no call failed
    assert [_is_near(*pair) for pair in zip(means, CAPACITIES, strict=True)] == [True] * 3
    assert overall <= 0.05
