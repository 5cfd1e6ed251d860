"""Who is let in, told why not, and let out exactly once, whatever happens in between."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.gateway.admission import Admission
from evenhand.gateway.quotas import Allowance, Lease, LocalQuotas, SharedQuotas
from evenhand.gateway.wire import Refused

from .redis_server import RedisServer, new_server

FREE = Allowance()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    server = new_server(tmp_path)
    yield server
    server.kill()


class SlowQuotas(LocalQuotas):
    """One memory that answers after a few turns of the loop, as a store does."""

    def __init__(self) -> None:
        super().__init__()
        self.settled: list[tuple[Lease, int]] = []
        self.taken = 0

    async def take(self, tenant: str, allowance: Allowance, tokens: int) -> Lease:
        await _turns(2)
        lease = await super().take(tenant, allowance, tokens)
        self.taken += 1
        await _turns(2)
        return lease

    async def settle(self, lease: Lease, tokens: int) -> None:
        await _turns(3)
        self.settled.append((lease, tokens))
        await super().settle(lease, tokens)


async def _turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def _refused(admission: Admission, tenant: str = "team", tokens: int = 0) -> Refused:
    with pytest.raises(Refused) as caught:
        async with admission.enter(tenant, tokens=tokens):
            pass
    return caught.value


def _told(refused: Refused) -> tuple[int, str, str | None]:
    return refused.status, refused.code, refused.headers.get("retry-after")


class Inside:
    """Requests that stay inside until they are let go."""

    def __init__(self, admission: Admission, tenant: str = "team", tokens: int = 0) -> None:
        self._admission, self._tenant, self._tokens = admission, tenant, tokens
        self._go = asyncio.Event()
        self.entered = 0
        self.tasks: list[asyncio.Task[None]] = []

    async def _stay(self) -> None:
        async with self._admission.enter(self._tenant, tokens=self._tokens):
            self.entered += 1
            await self._go.wait()

    async def come(self, number: int) -> None:
        self.tasks += [asyncio.create_task(self._stay()) for _ in range(number)]
        await _turns(20)

    async def go(self) -> list[BaseException | None]:
        self._go.set()
        return await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_what_was_spent_is_settled_and_what_is_not_said_is_all_that_was_reserved() -> None:
    quotas = SlowQuotas()
    admission = Admission(quotas, {"team": Allowance(tokens_a_day=100)})
    async with admission.enter("team", tokens=40) as permit:
        permit.spend(10)
        permit.spend(5)
    async with admission.enter("team", tokens=40) as permit:
        permit.spend(0)
    async with admission.enter("team", tokens=40):
        pass
    assert [tokens for _, tokens in quotas.settled] == [15, 0, 40]
    told = _told(await _refused(admission, tokens=46))
    assert told[:2] == (429, "budget_spent")
    assert 1 <= int(told[2] or 0) <= 86_400
    assert _told(await _refused(admission, tokens=101)) == (429, "budget_spent", None)
    async with admission.enter("team", tokens=45):
        pass


async def test_each_bound_of_a_tenant_has_its_own_429() -> None:
    allowances = {"minute": Allowance(requests_a_minute=1), "once": Allowance(at_once=1)}
    admission = Admission(LocalQuotas(lambda: 1_000_000.0), allowances)
    async with admission.enter("minute"), admission.enter("once"):
        assert _told(await _refused(admission, "once")) == (429, "too_many_at_once", "1")
        assert _told(await _refused(admission, "minute")) == (429, "rate_limited", "60")
    async with admission.enter("once"):
        pass
    assert _told(await _refused(admission, "minute")) == (429, "rate_limited", "60")


async def test_a_tenant_without_an_allowance_may_use_nothing() -> None:
    admission = Admission(LocalQuotas(), {"team": FREE})
    assert _told(await _refused(admission, "stranger")) == (403, "no_allowance", None)


async def test_beyond_the_places_and_the_queue_a_request_is_shed_at_once() -> None:
    admission = Admission(LocalQuotas(), {"team": FREE}, most=3, queue=2, patience=600.0)
    inside = Inside(admission)
    await inside.come(5)
    assert (inside.entered, admission.waiting) == (3, 2)
    assert _told(await _refused(admission)) == (503, "overloaded", "1")
    assert await inside.go() == [None] * 5
    assert (inside.entered, admission.waiting, admission.under_way) == (5, 0, 0)


async def test_who_waits_in_vain_is_shed_and_what_he_took_is_given_back() -> None:
    quotas = SlowQuotas()
    admission = Admission(quotas, {"team": Allowance(at_once=2)}, most=1, patience=0.01)
    inside = Inside(admission)
    await inside.come(1)
    assert _told(await _refused(admission)) == (503, "overloaded", "1")
    await inside.go()
    assert await admission.drain(60.0) == 0
    assert len(quotas.settled) == quotas.taken == 2


async def test_a_tenant_over_its_quota_stands_in_nobodys_way() -> None:
    allowances = {"greedy": Allowance(at_once=1), "team": FREE}
    admission = Admission(SlowQuotas(), allowances, most=2, queue=1, patience=600.0)
    greedy, team = Inside(admission, "greedy"), Inside(admission)
    await greedy.come(200)
    await team.come(1)
    assert (greedy.entered, team.entered) == (1, 1)
    outcomes = await greedy.go()
    codes = {outcome.code for outcome in outcomes if isinstance(outcome, Refused)}
    assert codes == {"too_many_at_once"}
    assert await team.go() == [None]


async def test_an_error_inside_comes_out_as_it_is_and_gives_the_place_back() -> None:
    quotas = SlowQuotas()
    admission = Admission(quotas, {"team": Allowance(at_once=1)}, most=1, queue=0)
    for error in (ValueError("inside"), Refused(400, "content_blocked", "No.")):
        with pytest.raises(type(error)) as caught:
            async with admission.enter("team"):
                raise error
        assert caught.value is error
    assert admission.under_way == 0
    assert len(quotas.settled) == 2


@pytest.mark.parametrize("seed", range(4))
async def test_whenever_a_request_is_cancelled_all_is_given_back_exactly_once(seed: int) -> None:
    luck, quotas = random.Random(seed), SlowQuotas()
    allowances = {"team": Allowance(at_once=6, tokens_a_day=10**9)}
    admission = Admission(quotas, allowances, most=4, queue=3, patience=0.005)
    busiest = inside = 0

    async def request() -> None:
        nonlocal busiest, inside
        async with admission.enter("team", tokens=3) as permit:
            inside += 1
            busiest = max(busiest, inside)
            try:
                await _turns(luck.randrange(6))
                permit.spend(1)
                await _turns(luck.randrange(6))
            finally:
                inside -= 1

    tasks: list[asyncio.Task[None]] = []
    for _ in range(600):
        tasks.append(asyncio.create_task(request()))
        await _turns(luck.randrange(4))
        if luck.random() < 0.5:
            luck.choice(tasks[-8:]).cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(one, Refused | asyncio.CancelledError | None) for one in outcomes)
    assert sum(isinstance(one, asyncio.CancelledError) for one in outcomes) > 50
    assert sum(one is None for one in outcomes) > 50
    assert await admission.drain(60.0) == 0
    assert busiest == 4
    assert len(quotas.settled) == len({lease.id for lease, _ in quotas.settled}) == quotas.taken
    assert (quotas._tenants["team"].reserved, quotas._tenants["team"].leases) == (0, {})
    assert admission._places._value == 4
    assert admission.waiting == 0


async def test_drain_refuses_the_new_at_once_and_waits_for_the_old() -> None:
    admission = Admission(SlowQuotas(), {"team": FREE}, most=2)
    inside = Inside(admission)
    await inside.come(3)  # one waits: it came before, and is let in
    assert admission.ready
    draining = asyncio.create_task(admission.drain(600.0))
    await _turns(5)
    assert not admission.ready
    assert not draining.done()
    assert _told(await _refused(admission)) == (503, "draining", "5")
    assert await inside.go() == [None] * 3
    assert await draining == 0


async def test_drain_says_how_many_are_left_when_its_grace_has_passed() -> None:
    admission = Admission(LocalQuotas(), {"team": FREE})
    inside = Inside(admission)
    await inside.come(100)
    assert await admission.drain(0.01) == 100
    await inside.go()
    assert await admission.drain(60.0) == 0


async def test_a_store_that_cannot_be_asked_lets_nobody_in_and_then_everybody(
    own_server: RedisServer,
) -> None:
    quotas = SharedQuotas(own_server.url, patience=2.0)
    admission = Admission(quotas, {"team": Allowance(requests_a_minute=100)})
    async with admission.enter("team") as permit:
        permit.spend(0)
        own_server.kill()
        for _ in range(5):
            assert _told(await _refused(admission)) == (503, "quota_unknown", "1")
    assert admission.under_way == 0
    own_server.start()
    async with admission.enter("team"):
        assert admission.under_way == 1
    await quotas.close()


async def test_the_bytes_under_way_are_bounded_and_one_tenant_has_half_of_them() -> None:
    admission = Admission(LocalQuotas(), {"a": FREE, "b": FREE}, most_bytes=100)
    async with admission.enter("a") as first, admission.enter("a") as second:
        first.hold(30)
        second.hold(20)
        with pytest.raises(Refused) as caught:
            second.hold(1)
        assert _told(caught.value) == (503, "overloaded", "1")
        async with admission.enter("b") as third:
            third.hold(50)
            assert admission.memory.held == 100
    assert admission.memory.held == 0
    alone = Admission(LocalQuotas(), {"a": FREE}, most_bytes=100)
    async with alone.enter("a") as permit:
        permit.hold(100)
        with pytest.raises(Refused):
            permit.hold(1)
    assert alone.memory.held == 0
