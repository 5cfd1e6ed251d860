"""Quotas in one memory, and what a sliding minute, places and a day's tokens mean."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.gateway.quotas import Allowance, Lease, LocalQuotas, OverQuota
from tests.errors import raises_naming

NOON = 20_000 * 86_400.0 + 43_200.0


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("value", [-1, 1.0, "5", True, 10**15 + 1])
def test_a_bound_that_is_no_whole_number_is_refused(value: object) -> None:
    with raises_naming(UserError, "at_once", repr(value)):
        Allowance(at_once=value)  # type: ignore[arg-type]


def _steps() -> st.SearchStrategy[list[tuple[float, str, int]]]:
    pause = st.sampled_from([0.0, 0.0, 0.5, 7.0, 20.0, 59.9, 60.0, 40_000.0])
    return st.lists(st.tuples(pause, st.sampled_from(["take", "end"]), st.integers(0, 40)))


@given(_steps(), st.none() | st.integers(0, 5), st.none() | st.integers(0, 3), st.integers(0, 100))
def test_a_request_is_taken_exactly_when_all_that_happened_before_leaves_room(
    steps: list[tuple[float, str, int]], a_minute: int | None, at_once: int | None, a_day: int
) -> None:
    """The other route looks at the whole history each time."""
    allowance = Allowance(requests_a_minute=a_minute, at_once=at_once, tokens_a_day=a_day)
    clock = Clock()
    quotas = LocalQuotas(clock)
    taken: list[float] = []
    spent: list[tuple[int, int]] = []  # day, tokens
    open_leases: list[Lease] = []

    async def replay() -> None:
        for pause, what, tokens in steps:
            clock.now += pause
            if what == "end":
                if open_leases:
                    lease = open_leases.pop(0)
                    await quotas.settle(lease, tokens)
                    await quotas.settle(lease, tokens)  # said twice
                    spent.append((int(clock.now // 86_400), tokens))
                continue
            today = sum(used for day, used in spent if day == int(clock.now // 86_400))
            reserved = sum(lease.tokens for lease in open_leases)
            lately = sum(at > clock.now - 60 for at in taken)
            full = {
                "requests_a_minute": a_minute is not None and lately >= a_minute,
                "at_once": at_once is not None and len(open_leases) >= at_once,
                "tokens_a_day": today + reserved + tokens > a_day,
            }
            bound = None
            try:
                open_leases.append(await quotas.take("team", allowance, tokens))
                taken.append(clock.now)
            except OverQuota as error:
                bound = error.bound
            assert full[bound] if bound else not any(full.values())

    asyncio.run(replay())


async def _bound(quotas: LocalQuotas, tenant: str, allowance: Allowance, tokens: int) -> OverQuota:
    with pytest.raises(OverQuota) as caught:
        await quotas.take(tenant, allowance, tokens)
    return caught.value


async def test_who_waits_as_long_as_he_is_told_is_let_in_and_no_sooner() -> None:
    clock = Clock()
    quotas, allowance = LocalQuotas(clock), Allowance(requests_a_minute=2)
    await quotas.take("team", allowance, 0)
    clock.now += 10
    await quotas.take("team", allowance, 0)
    clock.now += 5
    told = (await _bound(quotas, "team", allowance, 0)).retry_after
    assert told == 45.0
    clock.now += told - 0.1
    await _bound(quotas, "team", allowance, 0)
    clock.now += 0.1
    await quotas.take("team", allowance, 0)


async def test_a_day_ends_at_midnight_and_what_never_fits_gets_no_time_to_wait() -> None:
    clock = Clock()
    quotas, allowance = LocalQuotas(clock), Allowance(tokens_a_day=100)
    lease = await quotas.take("team", allowance, 100)
    assert (await _bound(quotas, "team", allowance, 1)).retry_after == 43_200.0
    assert (await _bound(quotas, "team", allowance, 101)).retry_after is None
    await quotas.settle(lease, 30)
    await quotas.settle(await quotas.take("team", allowance, 70), 70)
    await _bound(quotas, "team", allowance, 1)
    clock.now += 43_200.0
    await quotas.settle(await quotas.take("team", allowance, 100), 100)
    clock.now -= 60.0  # a clock that is set back gives nobody a second day
    await _bound(quotas, "team", allowance, 1)


async def test_nothing_at_all_is_an_allowance_too() -> None:
    quotas = LocalQuotas()
    for allowance in (Allowance(requests_a_minute=0), Allowance(at_once=0)):
        assert (await _bound(quotas, "team", allowance, 0)).retry_after is None


async def test_what_one_tenant_uses_is_not_taken_from_another() -> None:
    quotas, allowance = LocalQuotas(), Allowance(requests_a_minute=1, at_once=1, tokens_a_day=1)
    for tenant in ("a", "b", "", "A"):
        await quotas.take(tenant, allowance, 1)
        await _bound(quotas, tenant, allowance, 0)
