"""T7, and two replicas before one real store: exact together, closed when it fails."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from valkey.asyncio import Valkey

from evenhand.core.errors import UserError
from evenhand.gateway.quotas import (
    Allowance,
    Lease,
    LocalQuotas,
    OverQuota,
    SharedQuotas,
    StoreUnavailable,
)
from tests.errors import raises_naming

from . import quota_worker
from .redis_server import RedisServer, new_server

LONG_AGO = 61_000_000  # microseconds


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = new_server(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that the test may kill or stop."""
    server = new_server(tmp_path)
    yield server
    server.kill()


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[Any]:
    """The store as a third party sees it, and empty."""
    client: Any = Valkey.from_url(server.url, decode_responses=True)
    await client.flushall()
    yield client
    await client.aclose()


@pytest.fixture
async def quotas(server: RedisServer) -> AsyncIterator[SharedQuotas]:
    quotas = SharedQuotas(server.url, patience=30.0)
    yield quotas
    await quotas.close()


def _key(tenant: str, part: str) -> str:
    return "evenhand:{" + tenant.encode("utf-8", "surrogatepass").hex() + "}:" + part


async def _refused(
    quotas: SharedQuotas, allowance: Allowance, tokens: int = 0, tenant: str = "team"
) -> OverQuota:
    with pytest.raises(OverQuota) as caught:
        await quotas.take(tenant, allowance, tokens)
    return caught.value


async def _soon(true: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(300):
        if await true():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("not within 30 seconds")


async def test_two_replicas_with_10_000_requests_of_50_tenants_admit_exactly_the_quotas(
    server: RedisServer, store: Any
) -> None:
    command = [sys.executable, "-m", quota_worker.__name__, server.url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    began = time.monotonic()
    replicas = [
        subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE, env=environment)
        for seed in (1, 2)
    ]
    said = [json.loads(replica.communicate()[0]) for replica in replicas]
    minutes = 1 + int((time.monotonic() - began) // 60)
    admitted: Counter[int] = Counter()
    for replica in said:
        admitted.update({int(number): count for number, count in replica["admitted"].items()})
        assert sum(replica["admitted"].values()) + sum(replica["refused"].values()) == 5_000
    for number, tenant in enumerate(quota_worker.TENANTS):
        allowance = quota_worker.allowance(number)
        if allowance.requests_a_minute is not None:
            most = allowance.requests_a_minute
            assert most <= admitted[number] <= most * minutes
        if allowance.tokens_a_day is not None:
            assert admitted[number] == allowance.tokens_a_day // quota_worker.TOKENS
        # What stands in the store is this tenant's and nobody else's.
        budget = await store.hgetall(_key(tenant, "budget"))
        assert int(budget["spent"]) == admitted[number] * quota_worker.TOKENS
        assert int(budget["reserved"]) == 0
    names = {_key(tenant, "budget") for tenant in quota_worker.TENANTS}
    assert {name async for name in store.scan_iter("*:budget")} == names
    # Never more at once than allowed: both replicas' spans on the one clock of this machine.
    for number in range(2, 50, 3):
        spans = [span for replica in said for span in replica["spans"] if span[0] == number]
        edges = sorted([(end, -1) for _, _, end in spans] + [(start, 1) for _, start, _ in spans])
        level = 0
        for _, step in edges:
            level += step
            assert level <= quota_worker.AT_ONCE
    assert sum(count for r in said for key, count in r["refused"].items() if "at_once" in key) > 0


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=30),
    a_minute=st.none() | st.integers(0, 12),
    at_once=st.none() | st.integers(0, 4),
    a_day=st.none() | st.integers(0, 200),
)
def test_the_store_decides_as_one_memory_does(
    server: RedisServer,
    steps: list[tuple[bool, int]],
    a_minute: int | None,
    at_once: int | None,
    a_day: int | None,
) -> None:
    allowance = Allowance(requests_a_minute=a_minute, at_once=at_once, tokens_a_day=a_day)

    async def decisions(quotas: LocalQuotas | SharedQuotas) -> list[object]:
        seen: list[object] = []
        leases: list[Lease] = []
        for take, tokens in steps:
            if not take:
                if leases:
                    await quotas.settle(leases.pop(0), tokens)
                continue
            try:
                leases.append(await quotas.take("team", allowance, tokens))
                seen.append("taken")
            except OverQuota as error:
                seen.append((error.bound, error.retry_after is None))
        await quotas.close()
        return seen

    async def both() -> None:
        client: Any = Valkey.from_url(server.url)
        await client.flushall()
        await client.aclose()
        shared = await decisions(SharedQuotas(server.url, patience=30.0))
        assert shared == await decisions(LocalQuotas())

    asyncio.run(both())


async def test_the_minute_slides_by_the_clock_of_the_store(
    quotas: SharedQuotas, store: Any
) -> None:
    allowance = Allowance(requests_a_minute=3)
    for _ in range(3):
        await quotas.settle(await quotas.take("team", allowance, 0), 0)
    told = (await _refused(quotas, allowance)).retry_after
    assert told is not None
    assert 0 < told <= 60
    seconds, micros = await store.time()
    latest, _, oldest = map(int, await store.lrange(_key("team", "times"), 0, -1))
    assert oldest <= latest <= seconds * 1_000_000 + micros
    await store.lset(_key("team", "times"), 2, oldest - LONG_AGO)  # as if it had been long ago
    await quotas.take("team", allowance, 0)
    await _refused(quotas, allowance)
    assert await store.llen(_key("team", "times")) == 3  # no more are kept than are needed
    assert 0 < await store.pttl(_key("team", "times")) <= 60_000


@pytest.mark.parametrize("invented", [-1, -(10**30), 10**15, 10**30])
async def test_numbers_that_somebody_invents_neither_give_back_nor_break_anything(
    quotas: SharedQuotas, store: Any, invented: int
) -> None:
    allowance = Allowance(tokens_a_day=100)
    for counts in (quotas, LocalQuotas()):
        for _ in range(3):
            await counts.settle(await counts.take("free", Allowance(), invented), invented)
        await counts.settle(await counts.take("team", allowance, 60), 60)
        await counts.settle(await counts.take("team", allowance, 0), invented)
        with pytest.raises(OverQuota):
            await counts.take("team", allowance, 41)
    assert quotas.owed == 0
    spent = int((await store.hgetall(_key("team", "budget")))["spent"])
    assert spent == (60 if invented < 0 else 10**15)


async def test_a_new_day_begins_with_nothing_spent(quotas: SharedQuotas, store: Any) -> None:
    allowance = Allowance(tokens_a_day=100)
    await quotas.settle(await quotas.take("team", allowance, 100), 100)
    told = (await _refused(quotas, allowance, 1)).retry_after
    assert told is not None
    assert 0 < told <= 86_400
    await store.hincrby(_key("team", "budget"), "day", -1)  # as if that had been yesterday
    await quotas.take("team", allowance, 100)
    await _refused(quotas, allowance, 1)


async def test_what_a_dead_replica_held_is_free_after_its_time(
    server: RedisServer, store: Any
) -> None:
    allowance = Allowance(at_once=1, tokens_a_day=100)
    dead, other = (SharedQuotas(server.url, patience=30.0, longest=each) for each in (0.5, 600.0))
    lease = await dead.take("team", allowance, 100)
    await dead._client.aclose()  # it says nothing more
    refused = 0

    async def taken() -> bool:
        nonlocal refused
        try:
            await other.take("team", allowance, 100)
        except OverQuota:
            refused += 1
            return False
        return True

    await _soon(taken)
    assert refused > 0
    # It was not dead after all: what it used counts, and frees nothing of the other's.
    await dead.settle(lease, 5)
    budget = await store.hgetall(_key("team", "budget"))
    assert (budget["spent"], budget["reserved"]) == ("5", "100")
    await dead.close()
    await other.close()


async def test_a_killed_store_closes_the_door_and_a_new_one_opens_it(
    own_server: RedisServer,
) -> None:
    quotas = SharedQuotas(own_server.url, patience=2.0)
    allowance = Allowance(requests_a_minute=100_000)
    outcomes: Counter[str] = Counter()

    async def ask() -> None:
        while not outcomes["down"]:
            try:
                await quotas.settle(await quotas.take("team", allowance, 1), 1)
                outcomes["taken"] += 1
            except StoreUnavailable:
                outcomes["down"] += 1

    asking = [asyncio.create_task(ask()) for _ in range(8)]

    async def some() -> bool:
        return outcomes["taken"] > 50

    await _soon(some)
    own_server.kill()
    await asyncio.gather(*asking)
    for _ in range(20):
        with pytest.raises(StoreUnavailable):
            await quotas.take("team", allowance, 1)
    own_server.start()
    for _ in range(20):
        await quotas.take("team", allowance, 1)

    async def told() -> bool:
        return quotas.owed == 0

    await _soon(told)
    await quotas.close()


async def test_a_hung_store_is_given_up_and_nothing_stays_taken_of_what_it_heard(
    own_server: RedisServer,
) -> None:
    quotas = SharedQuotas(own_server.url, patience=0.25)
    allowance = Allowance(at_once=2, tokens_a_day=1000)

    async def open_again() -> bool:
        try:
            lease = await quotas.take("team", allowance, 1000)
        except (OverQuota, StoreUnavailable):
            return False
        await quotas.settle(lease, 0)
        return True

    await _soon(open_again)  # it is connected now
    own_server.hang()
    async with asyncio.timeout(60):  # in vain it would wait for ever
        for _ in range(3):
            asked = [quotas.take("team", allowance, 10) for _ in range(20)]
            given = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(one, StoreUnavailable) for one in given)
    own_server.go_on()
    # It runs what it was sent meanwhile, and holds two places that nobody has: given back.
    await _soon(open_again)
    await quotas.close()


async def test_what_was_used_while_the_store_hung_is_counted_once_it_answers(
    own_server: RedisServer,
) -> None:
    quotas = SharedQuotas(own_server.url, patience=0.25)
    client: Any = Valkey.from_url(own_server.url, decode_responses=True)
    leases: list[Lease] = []

    async def eleven_taken() -> bool:
        try:
            leases.append(await quotas.take("team", Allowance(), 10))
        except StoreUnavailable:
            return False
        return len(leases) == 11

    async def told() -> bool:
        return quotas.owed == 0

    await _soon(eleven_taken)
    await quotas.settle(leases.pop(), 0)
    await _soon(told)  # the store knows the script now, and will run what it is sent
    own_server.hang()
    await asyncio.gather(*(quotas.settle(lease, 7) for lease in leases))  # raises nothing
    assert quotas.owed == 10
    own_server.go_on()
    await _soon(told)
    budget = await client.hgetall(_key("team", "budget"))
    assert (budget["spent"], budget["reserved"]) == ("70", "0")
    await client.aclose()
    await quotas.close()


GARBAGE = [
    b"",
    b"\r\n",
    b"nonsense\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"+OK\r\n",
    b"-ERR no\r\n",
    b"-NOSCRIPT no\r\n",
    b":0\r\n",
    b"$-1\r\n",
    b"$-7\r\n\r\n",
    b"$99999999999\r\nabc",
    b"*-1\r\n",
    b"*0\r\n",
    b"*1\r\n:0\r\n",
    b"*3\r\n:0\r\n:0\r\n:0\r\n",
    b"*2\r\n:4\r\n:0\r\n",
    b"*2\r\n:-1\r\n:0\r\n",
    b"*2\r\n$1\r\n0\r\n$1\r\n0\r\n",
    b"*2\r\n:0\r\n:x\r\n",
    b"*99999999999\r\n:0\r\n",
    b"*1\r\n" * 20_000,
    b"\xff\xfe\x00" * 50,
]


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("hangs_up", [True, False])
async def test_a_store_that_answers_garbage_is_no_store(garbage: bytes, hangs_up: bool) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            writer.write(garbage)
            if hangs_up:
                break
        writer.close()

    liar = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = liar.sockets[0].getsockname()[1]
    quotas = SharedQuotas(f"redis://127.0.0.1:{port}", patience=0.25)
    async with asyncio.timeout(60):
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await quotas.take("team", Allowance(requests_a_minute=5), 1)
        await quotas.close()
    liar.close()


async def test_a_burst_that_waits_for_a_connection_is_not_taken_for_a_dead_store(
    own_server: RedisServer,
) -> None:
    # 64 questions over 16 connections are four waves of 0.3 s: longer than the patience of one.
    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, to_it = await asyncio.open_connection("127.0.0.1", own_server.port)
        while asked := await reader.read(65536):
            to_it.write(asked)
            said = await behind.read(65536)
            await asyncio.sleep(0.3)
            writer.write(said)
        to_it.close()
        writer.close()

    near = SharedQuotas(own_server.url, patience=30.0)
    await near.take("another", Allowance(), 0)  # the store knows the script now
    await near.close()
    slow = await asyncio.start_server(slowly, "127.0.0.1", 0)
    quotas = SharedQuotas(f"redis://127.0.0.1:{slow.sockets[0].getsockname()[1]}", patience=1.0)
    allowance = Allowance(requests_a_minute=40)
    asked = [quotas.take("team", allowance, 0) for _ in range(64)]
    given = await asyncio.gather(*asked, return_exceptions=True)
    assert Counter(type(one).__name__ for one in given) == {"Lease": 40, "OverQuota": 24}
    await quotas.close()
    slow.close()


async def test_the_error_of_a_store_holds_neither_its_address_nor_its_password() -> None:
    quotas = SharedQuotas("redis://user:canary-password@127.0.0.1:1/0?retry_on_timeout=yes")
    with pytest.raises(StoreUnavailable) as caught:
        await quotas.take("team", Allowance(), 0)
    assert "canary" not in f"{caught.value!r} {caught.value.__cause__!r}"
    await quotas.close()
    with raises_naming(UserError, "redis://127.0.0.1:6379/0") as wrong:
        SharedQuotas("https://user:canary-password@host")
    assert "canary" not in str(wrong.value)


async def test_a_cancelled_question_leaves_nothing_taken(quotas: SharedQuotas, store: Any) -> None:
    allowance = Allowance(at_once=1)
    for steps in range(12):
        asking = asyncio.create_task(quotas.take("team", allowance, 1))
        for _ in range(steps):
            await asyncio.sleep(0)
        asking.cancel()
        (outcome,) = await asyncio.gather(asking, return_exceptions=True)
        if isinstance(outcome, Lease):
            await quotas.settle(outcome, 0)

    async def nothing_taken() -> bool:
        return quotas.owed == 0 and await store.zcard(_key("team", "leases")) == 0

    await _soon(nothing_taken)
