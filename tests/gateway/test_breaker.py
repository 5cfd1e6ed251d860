"""R6 and R7 in simulated time: no retry storm, and a brown-out is noticed, shed and left."""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.gateway.breaker import Breaker, BreakerCall, Breakers, Caller, RetryBudget


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _opened(breaker: Breaker, clock: Clock) -> None:
    """Let it see as many failures as it takes."""
    for _ in range(5):
        call = breaker.let_through()
        assert call is not None
        breaker.done(call, good=False)
    assert not breaker.closed


def _probe(breaker: Breaker) -> BreakerCall:
    call = breaker.let_through()
    assert call is not None
    return call


@given(
    arrivals=st.lists(st.floats(0, 3), min_size=1, max_size=300),
    share=st.sampled_from([0.1, 0.2, 0.5]),
)
def test_retries_stay_below_their_share_of_all_requests_and_of_each_window(
    arrivals: list[float], share: float
) -> None:
    clock, requests, retries = Clock(), [], []
    budget = RetryBudget(share=share, window=10.0, clock=clock)
    for pause in arrivals:
        clock.now += pause
        budget.request()
        requests.append(clock.now)
        for _ in range(7):
            if budget.retry():
                retries.append(clock.now)
                # A window is a twentieth shorter than it says while its first piece fills.
                asked = sum(clock.now - 10.0 < at for at in requests)
                again = sum(clock.now - 9.5 < at for at in retries)
                assert again <= share * asked
        assert len(retries) <= share * len(requests)


def test_in_a_full_outage_10_000_requests_make_at_most_12_000_calls() -> None:
    clock, luck = Clock(), random.Random(6)
    budget, calls = RetryBudget(clock=clock), 0
    for _ in range(10_000):
        clock.now += luck.expovariate(100)
        budget.request()
        calls += 1
        for _ in range(7):  # eight attempts, all in vain
            if not budget.retry():
                break
            calls += 1
    assert 11_900 <= calls <= 12_000  # and the budget is there to be used


def test_with_the_breaker_a_full_outage_makes_hardly_any_calls() -> None:
    clock, luck = Clock(), random.Random(6)
    budget, breaker = RetryBudget(clock=clock), Breaker(slow_after=2.0, clock=clock)
    calls = 0
    for _ in range(10_000):  # about 100 seconds
        clock.now += luck.expovariate(100)
        budget.request()
        for attempt in range(8):
            if attempt and not budget.retry():
                break
            call = breaker.let_through()
            if call is None:
                break
            calls += 1
            breaker.done(call, good=False)
    assert calls <= 5 + 100 / 2 + 1  # until it opens, then a probe every two seconds


def test_after_a_quiet_time_the_budget_is_empty_again() -> None:
    clock = Clock()
    budget = RetryBudget(window=30.0, clock=clock)
    for _ in range(4):
        budget.request()
    assert not budget.retry()
    budget.request()
    assert budget.retry()
    assert not budget.retry()
    clock.now += 31
    for _ in range(4):
        budget.request()
    assert not budget.retry()


@dataclass
class Seen:
    """What a simulation saw, by the time of arrival."""

    sent: list[float] = field(default_factory=list)
    shed: list[tuple[float, float]] = field(default_factory=list)  # and the pause asked for
    closed: list[tuple[float, bool]] = field(default_factory=list)


def _simulate(
    seconds_of: Callable[[float], float],
    *,
    until: float,
    rate: float,
    breaker: Breaker,
    clock: Clock,
) -> Seen:
    """Requests come at random, and each takes as long as the upstream does when it comes."""
    seen, luck, numbers = Seen(), random.Random(7), itertools.count()
    begun = clock.now
    events: list[tuple[float, int, BreakerCall | None]] = [(begun, next(numbers), None)]
    while events:
        clock.now, _, ended = heapq.heappop(events)
        now = clock.now - begun
        if ended is not None:
            breaker.done(ended, good=True)
        elif now < until:
            heapq.heappush(events, (clock.now + luck.expovariate(rate), next(numbers), None))
            call = breaker.let_through()
            if call is None:
                seen.shed.append((now, breaker.retry_after))
            else:
                seen.sent.append(now)
                heapq.heappush(events, (clock.now + seconds_of(now), next(numbers), call))
        seen.closed.append((now, breaker.closed))
    return seen


@pytest.mark.parametrize("rate", [3.0, 50.0, 400.0])
def test_a_brown_out_is_noticed_in_5_seconds_shed_at_once_and_left_in_10(rate: float) -> None:
    clock = Clock()
    breaker = Breaker(slow_after=1.5, clock=clock)
    seen = _simulate(
        lambda now: 4.0 if 30 <= now < 90 else 0.4,
        until=150.0,
        rate=rate,
        breaker=breaker,
        clock=clock,
    )
    opened = min(at for at, closed in seen.closed if not closed)
    shut = max(at for at, closed in seen.closed if not closed)
    assert 30 < opened <= 35
    assert 90 < shut <= 100
    assert all(opened <= at <= shut for at, _ in seen.shed)  # nobody before, nobody after
    assert all(0 <= pause <= 2.0 for _, pause in seen.shed)
    # While it is slow it gets a probe every few seconds, and no more.
    assert sum(opened < at < 90 for at in seen.sent) <= (90 - opened) / 2.0


def test_usual_variation_does_not_open_it() -> None:
    clock, luck = Clock(), random.Random(8)
    breaker = Breaker(slow_after=2.0, clock=clock)
    seen = _simulate(
        lambda _: luck.lognormvariate(-1.0, 0.8), until=120, rate=50, breaker=breaker, clock=clock
    )
    assert len(seen.sent) > 5000
    assert seen.shed == []


def test_a_call_that_hangs_counts_though_it_never_ends() -> None:
    clock = Clock()
    breaker = Breaker(slow_after=1.5, clock=clock)
    hanging = [_probe(breaker) for _ in range(5)]
    clock.now += 1.5
    assert breaker.closed  # not longer than that
    clock.now += 0.1
    assert breaker.let_through() is None
    for call in hanging:
        breaker.done(call, good=True)  # too late to say so
    assert breaker.let_through() is None


def test_few_failures_or_a_small_share_do_not_open_it() -> None:
    clock = Clock()
    breaker = Breaker(slow_after=None, clock=clock)
    for good in [True] * 5 + [False] * 4 + [None] * 100:
        breaker.done(_probe(breaker), good=good)
    assert breaker.closed  # 4 of 9 are less than half
    breaker.done(_probe(breaker), good=False)
    assert not breaker.closed  # 5 of 10


def test_failures_of_long_ago_do_not_count() -> None:
    clock = Clock()
    breaker = Breaker(slow_after=None, clock=clock)
    for _ in range(20):
        breaker.done(_probe(breaker), good=False)
        clock.now += 1.1  # never five within four seconds
    assert breaker.closed


def test_after_its_rest_one_probe_goes_at_a_time_and_two_good_ones_close_it() -> None:
    clock = Clock()
    breaker = Breaker(slow_after=5.0, clock=clock)
    _opened(breaker, clock)
    assert breaker.retry_after == 2.0
    assert breaker.let_through() is None
    clock.now += 2.0
    assert breaker.retry_after == 0.0
    first = _probe(breaker)
    assert breaker.let_through() is None
    breaker.done(first, good=True)
    second = _probe(breaker)
    assert breaker.let_through() is None
    assert not breaker.closed
    breaker.done(second, good=True)
    assert breaker.closed
    assert all(breaker.let_through() for _ in range(100))


def test_a_bad_probe_opens_it_again_and_a_lost_one_does_not_hold_it() -> None:
    clock = Clock()
    breaker = Breaker(slow_after=1.0, clock=clock)
    _opened(breaker, clock)
    clock.now += 2.0
    breaker.done(_probe(breaker), good=False)
    assert breaker.retry_after == 2.0
    clock.now += 2.0
    breaker.done(_probe(breaker), good=None)  # the client has gone
    _probe(breaker)  # so the next may go; it hangs
    clock.now += 1.1
    assert breaker.let_through() is None
    assert breaker.retry_after == 2.0


def test_what_was_under_way_when_it_opened_says_nothing_after_it_has_closed() -> None:
    clock = Clock()
    breaker = Breaker(slow_after=None, clock=clock)
    old = [_probe(breaker) for _ in range(50)]
    _opened(breaker, clock)
    clock.now += 2.0
    for _ in range(2):
        breaker.done(_probe(breaker), good=True)
    for call in old:
        breaker.done(call, good=False)
    assert breaker.closed


@example([("ask", 0.0)] * 4 + [("ask", 3.0)])  # a good call is no reason to open
@given(
    st.lists(
        st.tuples(st.sampled_from(["ask", "good", "bad", "gone"]), st.floats(0, 3)), max_size=200
    )
)
def test_open_it_lets_one_through_per_rest_and_it_always_closes_on_a_good_upstream(
    steps: list[tuple[str, float]],
) -> None:
    clock = Clock()
    breaker = Breaker(slow_after=2.0, clock=clock)
    calls: list[BreakerCall] = []
    for what, pause in steps:
        clock.now += pause
        if what == "ask":
            was_closed, before = breaker.closed, breaker.retry_after
            call = breaker.let_through()
            assert call is not None or not was_closed
            assert call is None or before == 0.0
            calls += [call] if call else []
        elif calls:
            ended = calls.pop(0)
            breaker.done(ended, good={"good": True, "bad": False, "gone": None}[what])
            breaker.done(ended, good=False)  # said twice
    for call in calls:
        breaker.done(call, good=None)
    for _ in range(2):
        clock.now += 2.0
        breaker.done(_probe(breaker), good=True)
    assert breaker.closed


def test_what_one_tenant_or_one_model_provokes_rests_nobody_else() -> None:
    clock = Clock()
    breakers = Breakers(slow_after=None, clock=clock)
    _opened(breakers.of(Caller("a", "m")), clock)
    assert breakers.of(Caller("a", "m")).let_through() is None
    assert not breakers.closed
    for other in (Caller("b", "m"), Caller("a", "n"), Caller("a")):
        assert breakers.of(other).let_through() is not None


def test_new_names_of_models_make_no_new_breakers_without_end() -> None:
    clock = Clock()
    breakers = Breakers(slow_after=None, clock=clock)
    for number in range(1_000):
        call = breakers.of(Caller("a", f"m{number}")).let_through()
        if call is not None:
            breakers.of(Caller("a", f"m{number}")).done(call, good=False)
    assert len(breakers._of["a"]) == 33  # 32 names, and all further ones together
    assert breakers.of(Caller("a", "another")).let_through() is None  # which are resting
    assert breakers.of(Caller("b", "another")).let_through() is not None
    clock.now += 60  # what was long ago is forgotten
    assert breakers.of(Caller("a", "another")).let_through() is not None
    assert len(breakers._of["a"]) == 2
