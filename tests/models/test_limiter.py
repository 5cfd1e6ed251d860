"""The adaptive limit, step by step."""

import asyncio

import pytest

from evenhand.models.limiter import AdaptiveLimit


def fill(limit: AdaptiveLimit) -> list[int]:
    """Take every place there is."""
    tickets = []
    while (ticket := limit.acquire_now()) is not None:
        tickets.append(ticket)
    return tickets


def test_there_are_as_many_places_as_the_limit_says() -> None:
    assert fill(AdaptiveLimit(start=3)) == [1, 2, 3]
    assert len(fill(AdaptiveLimit(start=16, ceiling=4))) == 4


def test_the_limit_doubles_per_round_trip_until_the_first_overload() -> None:
    limit = AdaptiveLimit(start=2)
    sent = fill(limit)
    for expected in (4.0, 8.0, 16.0):
        following = []
        for ticket in sent:
            limit.release(ticket, overloaded=False)
            following += fill(limit)  # there is always more to send
        sent = following
        assert (limit.limit, len(sent)) == (expected, expected)


def test_an_idle_limit_does_not_grow() -> None:
    limit = AdaptiveLimit(start=4)
    for _ in range(10):
        ticket = limit.acquire_now()
        assert ticket is not None
        limit.release(ticket, overloaded=False)  # one in flight of four: nothing is shown
    assert limit.limit == 4.0


def test_overload_cuts_the_limit_by_twenty_percent() -> None:
    limit = AdaptiveLimit(start=10)
    limit.release(fill(limit)[0], overloaded=True)
    assert limit.limit == pytest.approx(8.0)


def test_overload_answers_to_calls_sent_before_a_cut_do_not_cut_again() -> None:
    limit = AdaptiveLimit(start=10)
    tickets = fill(limit)
    for ticket in tickets:  # ten calls of one round trip, all turned away
        limit.release(ticket, overloaded=True)
    assert limit.limit == pytest.approx(8.0)
    limit.release(fill(limit)[0], overloaded=True)  # one sent after the cut
    assert limit.limit == pytest.approx(6.4)


def test_after_a_cut_the_limit_grows_by_one_over_itself_per_answer() -> None:
    limit = AdaptiveLimit(start=10)
    for ticket in fill(limit):
        limit.release(ticket, overloaded=True)
    tickets = fill(limit)
    assert len(tickets) == 8
    limit.release(tickets[0], overloaded=False)
    assert limit.limit == pytest.approx(8 + 1 / 8)


def test_the_limit_stays_between_one_and_its_ceiling() -> None:
    low = AdaptiveLimit(start=1)
    for _ in range(5):
        low.release(fill(low)[0], overloaded=True)
    assert low.limit == 1.0
    high = AdaptiveLimit(start=2, ceiling=3)
    for _ in range(5):
        for ticket in fill(high):
            high.release(ticket, overloaded=False)
    assert high.limit == 3.0


def test_an_answer_that_says_nothing_about_capacity_changes_nothing() -> None:
    limit = AdaptiveLimit(start=2)
    limit.release(fill(limit)[0], overloaded=None)
    assert (limit.limit, limit.in_flight) == (2.0, 1)


async def test_places_are_given_first_come_first_served() -> None:
    limit = AdaptiveLimit(start=1)
    first = await limit.acquire()
    order: list[str] = []

    async def wait(name: str) -> None:
        ticket = await limit.acquire()
        order.append(name)
        limit.release(ticket, overloaded=None)

    waiting = [asyncio.create_task(wait(name)) for name in "abc"]
    await asyncio.sleep(0)
    assert limit.waiting == 3
    assert limit.acquire_now() is None
    limit.release(first, overloaded=None)
    await asyncio.gather(*waiting)
    assert order == ["a", "b", "c"]
    assert (limit.in_flight, limit.waiting) == (0, 0)


async def test_nobody_overtakes_those_who_wait() -> None:
    limit = AdaptiveLimit(start=1)
    first = await limit.acquire()
    waiting = asyncio.create_task(limit.acquire())
    await asyncio.sleep(0)
    limit.release(first, overloaded=None)  # the place is the waiting one's already
    assert limit.acquire_now() is None
    assert await waiting == 2


@pytest.mark.parametrize("woken", [False, True])
async def test_one_who_leaves_the_queue_takes_no_place_with_them(woken: bool) -> None:
    limit = AdaptiveLimit(start=1)
    first = await limit.acquire()
    leaving, staying = (asyncio.create_task(limit.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    if woken:
        limit.release(first, overloaded=None)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    if not woken:
        limit.release(first, overloaded=None)
    async with asyncio.timeout(1):
        limit.release(await staying, overloaded=None)
    assert (limit.in_flight, limit.waiting) == (0, 0)
