"""Tenants who wait for the screen share it alike, by how much they give it to do."""

import asyncio
import random
from collections import Counter

import pytest

from evenhand.gateway.screening import FairQueue


async def take(shares: FairQueue, tenant: str, cost: int, order: list[str]) -> None:
    async with shares.turn(tenant, cost):
        order.append(tenant)
        await asyncio.sleep(0)


async def test_a_tenant_with_a_hundred_long_texts_is_not_before_one_with_a_short_one() -> None:
    shares, order = FairQueue(most=4_000), list[str]()
    flood = [asyncio.create_task(take(shares, "a", 4_000, order)) for _ in range(100)]
    await asyncio.sleep(0)
    await take(shares, "b", 100, order)
    assert order.index("b") <= 2
    await asyncio.gather(*flood)
    assert Counter(order) == {"a": 100, "b": 1}


async def test_of_equal_work_two_tenants_get_the_same_whatever_the_size_of_a_piece() -> None:
    shares, order = FairQueue(most=1_000), list[str]()
    large = [asyncio.create_task(take(shares, "a", 1_000, order)) for _ in range(20)]
    small = [asyncio.create_task(take(shares, "b", 100, order)) for _ in range(200)]
    await asyncio.sleep(0)
    for done in range(1, 101):
        while len(order) < done:
            await asyncio.sleep(0)
        work = {name: order[:done].count(name) * size for name, size in (("a", 1_000), ("b", 100))}
        assert abs(work["a"] - work["b"]) <= 2_000
    await asyncio.gather(*large, *small)


async def test_who_comes_back_has_saved_up_no_turns() -> None:
    shares, order = FairQueue(most=100), list[str]()
    for _ in range(50):
        await take(shares, "a", 100, order)
    both = [asyncio.create_task(take(shares, name, 100, order)) for name in "ba" * 10]
    await asyncio.gather(*both)
    assert Counter(order[50:60])["b"] <= 6


async def test_no_more_than_the_bound_is_under_way_and_a_larger_piece_goes_alone() -> None:
    shares, under_way, most = FairQueue(most=100), 0, 0

    async def work(cost: int) -> None:
        nonlocal under_way, most
        async with shares.turn("a", cost):
            under_way += cost
            most = max(most, under_way)
            assert under_way <= 100 or under_way == cost
            await asyncio.sleep(0)
            under_way -= cost

    await asyncio.gather(*(work(cost) for cost in (60, 60, 500, 30, 30, 30)))
    assert most == 500


@pytest.mark.parametrize("seed", range(20))
async def test_whoever_is_cancelled_gives_his_turn_back(seed: int) -> None:
    rng, shares, order = random.Random(seed), FairQueue(most=50), list[str]()
    tasks = [
        asyncio.create_task(take(shares, rng.choice("abc"), rng.randint(1, 80), order))
        for _ in range(60)
    ]
    for task in rng.sample(tasks, 30):
        if rng.random() < 0.5:
            await asyncio.sleep(0)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (shares.waiting, shares._under_way) == (0, 0)
    await asyncio.wait_for(take(shares, "d", 50, order), 5)
