"""One cap for many workers: over any order of reports, delays, losses and deaths, what they spend
together stays within it, and what is not used goes to whoever can use it."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.prices import Price, Prices
from evenhand.runs.runners.desk import (
    CapCoordinator,
    Coordinator,
    LeaseCaps,
    LeasedCap,
    Spending,
    WorkerReport,
)
from evenhand.runs.runners.purse import MAX_CALLS, MAX_COST

PRICES = Prices({"m": Price(per_million_prompt_tokens=1.0, per_million_completion_tokens=1.0)})


async def settle_down() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@dataclass
class Worker:
    """A real purse, calls that want to be sent, and the lease that is on its way to it."""

    name: str
    prices: Prices | None = None
    hurries: int = 0
    order: LeaseCaps | None = None
    sent: list[float] = field(default_factory=list)  # the most that each call under way can cost
    calls: int = 0  # sent in all
    paid: float = 0.0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.purse = LeasedCap(self.prices, self._hurry)

    def _hurry(self) -> None:
        self.hurries += 1

    async def ask(self, *most: float) -> None:
        """So many calls, of at most this cost each."""
        self.tasks += [asyncio.create_task(self._send(cost)) for cost in most]
        await settle_down()

    async def _send(self, most: float) -> None:
        await self.purse.take(most)
        self.calls += 1
        self.sent.append(most)

    async def end(self, cost: Callable[[float], float] = lambda most: most) -> None:
        """The oldest call under way comes back."""
        if self.sent:
            most = self.sent.pop(0)
            self.paid += cost(most)
            self.purse.settle(most, cost(most))
            await settle_down()

    async def report(self, treasury: CapCoordinator) -> LeaseCaps:
        """A round trip to the desk in which nothing is lost."""
        self.order = treasury.lease(self.name, self.purse.report())
        await self.hear()
        return treasury._leases[self.name]

    async def hear(self) -> None:
        if self.order is not None:
            self.purse.obey(self.order)
            self.order = None
            await settle_down()

    async def die(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    @property
    def waiting(self) -> int:
        return sum(not task.done() for task in self.tasks)


def together(workers: list[Worker]) -> tuple[int, float]:
    """Calls sent, and the most that they have cost or can cost yet: the bill, from outside."""
    calls = sum(worker.calls for worker in workers)
    return calls, sum(worker.paid + sum(worker.sent) for worker in workers)


@contextlib.asynccontextmanager
async def crew(count: int, prices: Prices | None = None) -> AsyncIterator[list[Worker]]:
    workers = [Worker(f"w{n}", prices) for n in range(count)]
    try:
        yield workers
    finally:
        for worker in workers:
            await worker.die()


# -- never more than the caps ------------------------------------------------------------------

steps = st.tuples(
    st.sampled_from(["ask", "end", "report", "hear", "lose", "die", "forget"]),
    st.integers(0, 3),
    st.integers(1, 5),
    st.floats(0.0, 1.0),
)


@dataclass
class Story:
    """What happens, step by step, to four workers and their treasury."""

    treasury: CapCoordinator
    workers: list[Worker]
    all: list[Worker]

    async def step(self, what: str, number: int, count: int, part: float) -> None:
        worker = self.workers[number]
        match what:
            case "ask":
                await worker.ask(*(0.01 * count * n for n in range(1, count + 1)))
            case "end":
                await worker.end(lambda most: most * part)
            case "report" if worker.order is None:
                worker.order = self.treasury.lease(worker.name, worker.purse.report())
            case "hear":
                await worker.hear()
            case "lose":
                worker.order = None
            case "forget" if count == 5:  # it was silent, and lives
                self.treasury.forget(worker.name)
            case "die" if count == 5:  # what it had under way is paid for and never settled
                await worker.die()
                fresh = Worker(f"{worker.name}+", worker.prices)
                self.workers[number] = fresh
                self.all.append(fresh)


@settings(max_examples=150)
@given(
    st.lists(steps, max_size=80),
    st.integers(0, 30),
    st.floats(0.0, 2.0),
    st.integers(0, 10),
    st.floats(0.0, 1.0),
)
def test_whatever_is_late_lost_or_dead_the_workers_together_stay_within_both_caps(
    story: list[tuple[str, int, int, float]],
    max_calls: int,
    max_cost: float,
    spent_calls: int,
    spent_cost: float,
) -> None:
    async def tell() -> None:
        async with crew(4, PRICES) as workers:
            everybody = list(workers)
            treasury = CapCoordinator(
                LeaseCaps(max_calls, max_cost), LeaseCaps(spent_calls, spent_cost)
            )
            told = Story(treasury, workers, everybody)
            for step in story:
                await told.step(*step)
                calls, cost = together(everybody)
                assert calls <= max(0, max_calls - spent_calls)
                assert cost <= max(0.0, max_cost - spent_cost) + 1e-9
            workers[:] = everybody  # so that all are ended

    asyncio.run(tell())


# -- and not much less -------------------------------------------------------------------------


async def rounds(
    workers: list[Worker], treasury: CapCoordinator, count: int, part: float = 1.0
) -> None:
    """Each reports and then ends its calls, again and again."""
    for _ in range(count):
        for worker in workers:
            await worker.report(treasury)
        for worker in workers:
            while worker.sent:
                await worker.end(lambda most: most * part)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(0, 40))
def test_every_call_under_the_cap_is_made_whoever_wants_it(wanted: list[int], cap: int) -> None:
    async def tell() -> None:
        async with crew(len(wanted)) as workers:
            treasury = CapCoordinator(LeaseCaps(calls=cap), LeaseCaps(0, 0.0))
            for worker, calls in zip(workers, wanted, strict=True):
                await worker.ask(*[0.0] * calls)
            await rounds(workers, treasury, 45)
            assert together(workers)[0] == min(cap, sum(wanted))
            assert treasury.exhausted == (MAX_CALLS if cap < sum(wanted) else None)

    asyncio.run(tell())


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.floats(0.01, 1.0), max_size=6), min_size=1, max_size=5),
    st.floats(0.0, 8.0),
    st.floats(0.1, 1.0),
)
def test_money_that_would_pay_for_the_next_call_of_anybody_is_not_left_lying(
    wanted: list[list[float]], cap: float, part: float
) -> None:
    """In the end nothing is left to do, or less than the first call of each who waits can cost."""

    async def tell() -> None:
        async with crew(len(wanted), PRICES) as workers:
            treasury = CapCoordinator(LeaseCaps(cost=cap), LeaseCaps(0, 0.0))
            for worker, calls in zip(workers, wanted, strict=True):
                await worker.ask(*calls)
            await rounds(workers, treasury, 40, part)
            _, cost = together(workers)
            stuck = [
                calls[worker.calls]
                for worker, calls in zip(workers, wanted, strict=True)
                if worker.calls < len(calls)
            ]
            assert all(cost + most > cap - 1e-9 for most in stuck)
            assert treasury.exhausted == (MAX_COST if stuck else None)
            assert math.isclose(treasury.spent.cost, cost, abs_tol=1e-9)

    asyncio.run(tell())


async def test_two_workers_with_half_of_the_money_each_do_not_wait_for_one_another() -> None:
    """4.00 are left, each wants to send a call of 3.00: one of them can."""
    async with crew(2, PRICES) as (first, second):
        treasury = CapCoordinator(LeaseCaps(cost=6.0), LeaseCaps(0, 0.0))
        await first.ask(2.0, 3.0)
        await second.ask(3.0)
        await first.report(treasury)  # 5.00 of 6.00 are its
        await second.report(treasury)
        assert (first.calls, second.calls) == (2, 0)
        await first.end()
        await first.end(lambda most: 0.0)  # the second call is not billed: 4.00 are left
        await first.ask(3.0)
        for _ in range(3):
            await second.report(treasury)
            await first.report(treasury)
        assert first.calls + second.calls == 3
        assert treasury.exhausted is None, "one is under way"


async def test_a_lease_that_is_not_used_comes_back_with_the_next_report() -> None:
    async with crew(2) as (first, second):
        treasury = CapCoordinator(LeaseCaps(calls=10), LeaseCaps(0, 0.0))
        await first.ask(*[0.0] * 10)
        assert (await first.report(treasury)).calls == 10
        await second.ask(0.0)
        await second.report(treasury)
        assert second.calls == 0
        await first.report(treasury)  # ten under way: ten more may follow, of which there are none
        for _ in range(10):
            first.calls -= 1  # none of them was sent after all
            first.purse.settle(first.sent.pop(), 0.0, sent=False)
        assert (await first.report(treasury)).calls == 0
        await second.report(treasury)
        assert second.calls == 1


async def test_a_worker_at_work_may_keep_as_much_again_as_it_has_under_way_and_no_more() -> None:
    async with crew(1) as (worker,):
        treasury = CapCoordinator(LeaseCaps(calls=100), LeaseCaps(0, 0.0))
        await worker.ask(*[0.0] * 6)
        assert (await worker.report(treasury)).calls == 6
        assert (await worker.report(treasury)).calls == 12  # 6 sent, 6 under way
        for _ in range(5):
            await worker.end()
        assert (await worker.report(treasury)).calls == 7  # 6 sent, 1 under way


async def test_what_a_dead_worker_may_have_spent_is_not_given_to_another() -> None:
    async with crew(2, PRICES) as (dead, other):
        treasury = CapCoordinator(LeaseCaps(calls=5), LeaseCaps(0, 0.0))
        await dead.ask(1.0, 1.0, 1.0)
        await dead.report(treasury)
        await dead.report(treasury)  # what it has used: 3 calls, and 2 more it may use
        treasury.forget(dead.name)
        await other.ask(1.0)
        await other.report(treasury)
        assert other.calls == 0
        assert treasury.spent == LeaseCaps(5, 6.0), "all that it might have spent"


# -- when the cap is reached -------------------------------------------------------------------


async def test_many_workers_that_begin_at_once_do_not_look_like_a_cap_that_is_reached() -> None:
    async with crew(20) as workers:
        treasury = CapCoordinator(LeaseCaps(calls=1000), LeaseCaps(0, 0.0))
        for worker in workers:
            await worker.ask(0.0)
        for worker in workers:  # each waits, none has anything under way
            worker.order = treasury.lease(worker.name, worker.purse.report())
        assert treasury.exhausted is None
        for worker in workers:
            await worker.hear()
        assert together(workers)[0] == 20


async def test_the_cap_is_not_reached_while_another_worker_may_still_be_spending() -> None:
    """The last two calls are leased to the first, which has said nothing since. Were it stopped
    now, calls under way would be paid for and lost."""
    async with crew(2) as (first, second):
        treasury = CapCoordinator(LeaseCaps(calls=2), LeaseCaps(0, 0.0))
        await first.ask(0.0, 0.0)
        await first.report(treasury)
        await second.ask(0.0)
        for _ in range(50):
            await second.report(treasury)
            assert treasury.exhausted is None
        await first.report(treasury)
        await second.report(treasury)
        assert treasury.exhausted is None, "two calls are under way"
        await first.end()
        await first.end()
        await first.report(treasury)
        await second.report(treasury)
        assert treasury.exhausted == MAX_CALLS


@pytest.mark.parametrize("workers", [1, 4, 12])
@pytest.mark.parametrize(
    ("caps", "option"),
    [
        pytest.param(LeaseCaps(calls=8), MAX_CALLS, id="calls"),
        pytest.param(LeaseCaps(cost=8.5), MAX_COST, id="money"),
        pytest.param(LeaseCaps(calls=8, cost=100.0), MAX_CALLS, id="calls-before-money"),
        pytest.param(LeaseCaps(calls=100, cost=8.5), MAX_COST, id="money-before-calls"),
    ],
)
async def test_a_second_after_the_last_call_the_desk_says_stop_and_which_option_it_was(
    caps: LeaseCaps, option: str, workers: int
) -> None:
    """Eight calls of 1.00 are made; then nobody can go on."""
    clock = [100.0]
    treasury = CapCoordinator(caps, LeaseCaps(0, 0.0))
    desk = Coordinator(treasury, clock=lambda: clock[0])
    async with crew(workers, PRICES) as all_of_them:
        for worker in all_of_them:
            await worker.ask(*[1.0] * 10)
        stop = 0
        while not stop and clock[0] < 110.0:
            clock[0] += 0.2
            for worker in all_of_them:
                report = WorkerReport(worker=worker.name, spending=worker.purse.report())
                orders = desk.sync(report)
                stop, worker.order = orders.stop, orders.lease
                await worker.hear()
            if sum(worker.calls for worker in all_of_them) == 8 and clock[0] < 102.0:
                clock[0] = 102.0  # all eight are sent; here they end
                for worker in all_of_them:
                    while worker.sent:
                        await worker.end()
        assert sum(worker.calls for worker in all_of_them) == 8
        assert stop == 2
        assert clock[0] <= 103.0
        assert desk.overview().exhausted == option


async def test_a_cap_that_is_reached_when_the_run_begins_is_named_at_once() -> None:
    async with crew(1) as (worker,):
        treasury = CapCoordinator(LeaseCaps(calls=5), LeaseCaps(5, 0.0))
        await worker.ask(0.0)
        await worker.report(treasury)
        assert treasury.exhausted == MAX_CALLS


# -- asking the desk ---------------------------------------------------------------------------


async def test_a_worker_out_of_lease_asks_at_once_but_not_again_as_soon_as_it_was_refused() -> None:
    """Else it would ask as often as the desk can answer, for as long as another is spending."""
    async with crew(2) as (spender, other):
        treasury = CapCoordinator(LeaseCaps(calls=1), LeaseCaps(0, 0.0))
        await spender.ask(0.0)
        assert spender.hurries == 1
        await spender.report(treasury)
        await other.ask(0.0)
        assert other.hurries == 1
        for _ in range(10):
            await other.report(treasury)
        assert other.hurries == 1


def test_without_a_cap_on_a_thing_there_is_always_as_much_of_it_as_is_wanted() -> None:
    treasury = CapCoordinator(LeaseCaps(), LeaseCaps(10**9, 10.0**9))
    report = Spending(
        LeaseCaps(3, 1.0), LeaseCaps(3, 1.0), LeaseCaps(7, 9.0), in_flight=0, waiting=7, first=1.0
    )
    assert treasury.lease("w", report) == LeaseCaps(10, 10.0)
