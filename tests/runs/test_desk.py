"""The desk's arithmetic, without Ray: one limit shared by workers that know only what they heard
last.

What is guaranteed. A worker holds as many places as it keeps to, has calls on, or is being sent.
What all workers hold grows only as long as it stays within the limit; where a cut has taken the
limit below it, it only shrinks. So without cuts the calls of all never exceed the limit, and after
one they exceed it by no more than the cut took away, until the calls it caught have ended. The
one exception is a worker that was silent for five seconds and lives.
"""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evenhand.core import Message
from evenhand.models import Endpoint
from evenhand.models.base import ModelRequest
from evenhand.models.limiter import AdaptiveLimit
from evenhand.runs.runners.desk import ClusterLimit, Coordinator, EndpointObservation, WorkerReport
from tests.loopback.faulty import Capacity, LoopbackServer

KEY = "http://127.0.0.1/v1 m"
START = 16  # places, before anything is known


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def heard(desk: Coordinator, worker: str, seen: EndpointObservation) -> tuple[int, int]:
    """The places and the epoch that a worker is told."""
    return desk.sync(WorkerReport(worker=worker, endpoints={KEY: seen})).places[KEY]


def limit_of(desk: Coordinator) -> int:
    return desk.overview().endpoints[KEY][1]


def cut_to(desk: Coordinator, limit: int) -> None:
    """One overload answer after the other, as a worker without places has them."""
    epoch = heard(desk, "cutter", EndpointObservation())[1]
    while limit_of(desk) > limit:
        epoch = heard(desk, "cutter", EndpointObservation(overloaded_in=epoch))[1]


# -- what is guaranteed ------------------------------------------------------------------------


@dataclass
class Member:
    """A real gate, the calls on it, and the order that is on its way to it."""

    gate: ClusterLimit = field(default_factory=lambda: ClusterLimit(lambda: None))
    tickets: list[int] = field(default_factory=list)
    order: tuple[int, int] | None = None
    last_heard: float = 0.0

    def holds(self) -> int:
        return max(self.gate.size, len(self.tickets), self.order[0] if self.order else 0)


class AnyOrder(RuleBasedStateMachine):
    """Workers join, send calls, report and obey in any order; orders come late or never."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.desk = Coordinator(clock=self.clock)
        self.members: dict[str, Member] = {}
        self.held_before = 0

    def some(self, number: int) -> tuple[str, Member]:
        return sorted(self.members.items())[number % len(self.members)]

    @precondition(lambda self: len(self.members) < 5)
    @rule()
    def join(self) -> None:
        name = f"w{len(self.members)}-{self.clock.now}"
        self.members[name] = Member(last_heard=self.clock.now)

    @precondition(lambda self: self.members)
    @rule(number=st.integers(0, 4), waiting=st.integers(0, 50))
    def report(self, number: int, waiting: int) -> None:
        name, member = self.some(number)
        if member.order is None:  # a worker reports again when it has heard, or given up
            seen = member.gate.report()
            seen.waiting = waiting
            member.order = heard(self.desk, name, seen)
            member.last_heard = self.clock.now

    @precondition(lambda self: self.members)
    @rule(number=st.integers(0, 4), lost=st.sampled_from([False, False, False, True]))
    def hear(self, number: int, lost: bool) -> None:
        _, member = self.some(number)
        if member.order is not None and not lost:
            member.gate.obey(*member.order)
        member.order = None

    @precondition(lambda self: self.members)
    @rule(number=st.integers(0, 4), calls=st.integers(1, 40))
    def send(self, number: int, calls: int) -> None:
        _, member = self.some(number)
        for _ in range(calls):
            ticket = member.gate.acquire_now()
            if ticket is not None:
                member.tickets.append(ticket)

    @precondition(lambda self: self.members)
    @rule(
        number=st.integers(0, 4),
        calls=st.integers(1, 40),
        overloaded=st.sampled_from([True, False, False, None]),
    )
    def end(self, number: int, calls: int, overloaded: bool | None) -> None:
        _, member = self.some(number)
        for _ in range(min(calls, len(member.tickets))):
            member.gate.release(member.tickets.pop(0), overloaded=overloaded)

    @rule(seconds=st.floats(0.01, 1.5))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        for name, member in list(self.members.items()):
            if self.clock.now - member.last_heard > 5.0:
                del self.members[name]  # taken for dead, and here it is

    @invariant()
    def what_all_hold_grows_only_within_the_limit(self) -> None:
        held = sum(member.holds() for member in self.members.values())
        limit = self.desk.overview().endpoints.get(KEY, (0, START))[1]
        assert held <= max(limit, self.held_before)
        self.held_before = held

    @invariant()
    def no_worker_has_more_calls_than_it_held_places(self) -> None:
        for member in self.members.values():
            assert member.gate.in_flight == len(member.tickets)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=60)


def test_places_that_are_taken_back_go_to_another_only_when_they_are_known_to_be_free() -> None:
    """16 places, all with the first worker; the second has to wait for two reports of it: with the
    one it hears that it may keep 8, with the next it says that it does."""
    desk = Coordinator(clock=Clock())
    assert heard(desk, "first", EndpointObservation(waiting=100))[0] == 16
    assert heard(desk, "second", EndpointObservation(waiting=100))[0] == 0
    # It reports 3 calls, but may send 13 more before it hears that it has 8 places.
    assert heard(desk, "first", EndpointObservation(places=16, in_flight=3, waiting=97))[0] == 8
    assert heard(desk, "second", EndpointObservation(waiting=100))[0] == 0
    # It kept to 8, and has 11 calls that were sent before.
    assert heard(desk, "first", EndpointObservation(places=8, in_flight=11, waiting=89))[0] == 8
    assert heard(desk, "second", EndpointObservation(waiting=100))[0] == 5
    assert heard(desk, "first", EndpointObservation(places=8, in_flight=8, waiting=92))[0] == 8
    assert heard(desk, "second", EndpointObservation(places=5, in_flight=5, waiting=95))[0] == 8


# -- cuts --------------------------------------------------------------------------------------


def test_however_many_workers_find_the_endpoint_full_the_limit_is_cut_once_an_epoch() -> None:
    desk = Coordinator(clock=Clock())
    epochs = {heard(desk, f"w{n}", EndpointObservation())[1] for n in range(6)}
    assert epochs == {1}
    for _ in range(3):  # each of them, and again, before it has heard of the cut
        for n in range(6):
            assert heard(desk, f"w{n}", EndpointObservation(overloaded_in=1))[1] == 2
    assert limit_of(desk) == 12  # 16 × 0.8 = 12.8
    heard(desk, "w3", EndpointObservation(overloaded_in=2))
    heard(desk, "w4", EndpointObservation(overloaded_in=2))
    assert limit_of(desk) == 10  # 12.8 × 0.8 = 10.24


def test_the_limit_never_falls_below_one() -> None:
    desk = Coordinator(clock=Clock())
    cut_to(desk, 1)
    for epoch in range(1, 60):
        heard(desk, "w", EndpointObservation(overloaded_in=epoch))
    assert limit_of(desk) == 1


# -- growth ------------------------------------------------------------------------------------


def grown_alone(cuts: int, answers: int) -> float:
    """The limit of one process after so many cuts and good answers in full use."""
    limit = AdaptiveLimit()
    for _ in range(cuts):
        ticket = limit.acquire_now()
        assert ticket is not None
        limit.release(ticket, overloaded=True)
    for _ in range(answers):
        limit.in_flight = limit.size - 1  # it is full with the one that ends now
        limit.in_flight += 1
        limit.release(limit._ticket(), overloaded=False)
    return limit.limit


@pytest.mark.parametrize(
    ("cuts", "answers"), [(0, 10), (0, 100), (0, 2000), (1, 7), (1, 300), (3, 500)]
)
def test_the_same_answers_make_the_limit_grow_as_in_one_process(cuts: int, answers: int) -> None:
    desk = Coordinator(clock=Clock())
    for epoch in range(1, cuts + 1):
        heard(desk, "w0", EndpointObservation(overloaded_in=epoch))
    for n in range(answers):  # spread over four workers, one to a report
        heard(desk, f"w{n % 4}", EndpointObservation(good=1))
    assert limit_of(desk) == int(grown_alone(cuts, answers))


def test_a_round_trip_doubles_the_limit_until_a_cut_and_adds_one_after_it() -> None:
    """By hand: 16 good answers while it is still looking for the edge add one each. After a cut to
    16 × 0.8 = 12.8 twelve answers add 1 / 12.8 each, and a little less as it grows: not quite 1;
    and the tenth part of it within a tenth of the edge at 16."""
    desk = Coordinator(clock=Clock())
    for n in range(4):
        heard(desk, f"w{n}", EndpointObservation(good=4))
    assert limit_of(desk) == 32
    desk = Coordinator(clock=Clock())
    heard(desk, "w0", EndpointObservation(overloaded_in=1))
    heard(desk, "w0", EndpointObservation(good=12))
    assert limit_of(desk) == 13  # 12.8 + 12 / 13.2 = 13.7
    for _ in range(10):  # 12.8² + 2 × 22 ≈ 14.4², where the last tenth before the edge begins
        heard(desk, "w0", EndpointObservation(good=1))
    assert limit_of(desk) == 14
    for _ in range(38):  # 14.4 + 38 / 144 = 14.7
        heard(desk, "w0", EndpointObservation(good=1))
    assert limit_of(desk) == 14


# -- who gets how much -------------------------------------------------------------------------


def test_a_silent_workers_places_go_back_after_five_seconds_and_not_before() -> None:
    clock = Clock()
    desk = Coordinator(clock=clock)
    assert heard(desk, "silent", EndpointObservation(waiting=10))[0] == 16
    assert heard(desk, "heard", EndpointObservation(waiting=10))[0] == 0
    clock.now += 4.9
    assert heard(desk, "heard", EndpointObservation(waiting=10))[0] == 0
    assert desk.overview().workers == 2
    clock.now += 0.2
    assert heard(desk, "heard", EndpointObservation(waiting=10))[0] == 16
    assert desk.overview().workers == 1


class Crew:
    """Workers whose calls take `seconds` each, and which report every 0.2 s, one after the other.
    `served` is when each first had a place."""

    def __init__(
        self, desk: Coordinator, clock: Clock, demand: dict[str, int], seconds: float
    ) -> None:
        self._desk, self._clock, self._demand, self._seconds = desk, clock, demand, seconds
        self._gates = {name: ClusterLimit(lambda: None) for name in demand}
        self._ends: list[tuple[float, str, int]] = []
        self.served: dict[str, float] = {}
        self.most = 0

    def work(self, seconds: float) -> None:
        began, step = self._clock.now, 0.2 / len(self._gates)
        while self._clock.now < began + seconds:
            for name, gate in self._gates.items():
                self._clock.now += step
                self._end_calls()
                seen = gate.report()
                seen.waiting = max(0, self._demand[name] - gate.in_flight)
                gate.obey(*heard(self._desk, name, seen))
                while gate.in_flight < self._demand[name]:
                    ticket = gate.acquire_now()
                    if ticket is None:
                        break
                    self.served.setdefault(name, self._clock.now - began)
                    self._ends.append((self._clock.now + self._seconds, name, ticket))
            self.most = max(self.most, len(self._ends))

    def _end_calls(self) -> None:
        for call in [call for call in self._ends if call[0] <= self._clock.now]:
            self._ends.remove(call)
            self._gates[call[1]].release(call[2], overloaded=None)


@pytest.mark.parametrize("places", [1, 2, 3])
@pytest.mark.parametrize(
    "demand",
    [
        pytest.param({f"w{n}": 20 for n in range(7)}, id="all-want-the-same"),
        pytest.param({"busy": 500, **{f"w{n}": 1 for n in range(6)}}, id="one-wants-all"),
    ],
)
def test_with_fewer_places_than_workers_each_gets_one_in_turn(
    demand: dict[str, int], places: int
) -> None:
    clock = Clock()
    desk = Coordinator(clock=clock)
    cut_to(desk, places)
    clock.now += 6.0  # the one that cut is forgotten
    crew = Crew(desk, clock, demand, seconds=0.1)
    crew.work(7 * 2.0)
    assert crew.served.keys() == demand.keys()
    assert max(crew.served.values()) <= 7 * 2.0
    assert crew.most <= places


@pytest.mark.parametrize("busy", [20, 500])
def test_a_worker_with_one_call_gets_its_place_beside_one_with_hundreds(busy: int) -> None:
    """By demand alone its part of 16 would be 16 / 501, and rounded down for ever."""
    clock = Clock()
    desk = Coordinator(clock=clock)
    crew = Crew(desk, clock, {"busy": busy, "small": 1}, seconds=0.1)
    crew.work(2.0)
    assert crew.served["small"] <= 1.0


def test_all_of_the_limit_is_given_and_in_proportion_to_what_is_asked() -> None:
    """16 places: one for each of the two who ask; 14 for 30 : 15 : 1, which is 9.13, 4.57 and
    0.30; the one left over goes to the largest rest."""
    desk = Coordinator(clock=Clock())
    asked = {"a": 30, "b": 15, "c": 0}
    places = dict.fromkeys(asked, 0)
    for _ in range(4):
        for name, waiting in asked.items():
            seen = EndpointObservation(places=places[name], waiting=waiting)
            places[name] = heard(desk, name, seen)[0]
    assert places == {"a": 10, "b": 6, "c": 0}


# -- the worker's gate -------------------------------------------------------------------------


def sent(gate: ClusterLimit, calls: int) -> list[int]:
    tickets = [gate.acquire_now() for _ in range(calls)]
    return [ticket for ticket in tickets if ticket is not None]


def test_a_call_that_finds_the_endpoint_full_makes_the_gate_smaller_at_once_and_hurries_once() -> (
    None
):
    hurried: list[int] = []
    gate = ClusterLimit(lambda: hurried.append(1))
    gate.obey(10, 5)
    before = sent(gate, 10)
    for ticket in before[:4]:  # ten of one round trip: the others say nothing new
        gate.release(ticket, overloaded=True)
        assert (gate.size, len(hurried)) == (8, 1)
    assert gate.report() == EndpointObservation(overloaded_in=5, places=8, in_flight=6)
    after, _ = sent(gate, 10)  # and these are sent after it
    gate.release(after, overloaded=True)
    assert (gate.size, len(hurried)) == (6, 1)
    assert gate.report().overloaded_in == 5, "until the desk is known to have heard"

    gate.obey(10, 5)  # an order from before the desk heard
    assert gate.size == 6
    gate.obey(5, 6)
    assert (gate.size, gate.report().overloaded_in) == (5, -1)
    for ticket in before[4:]:  # sent before the cut
        gate.release(ticket, overloaded=True)
    assert (gate.size, len(hurried)) == (5, 1)
    gate.release(*sent(gate, 1), overloaded=True)
    assert (gate.size, len(hurried)) == (4, 2)


def test_a_gate_that_the_desk_does_not_answer_comes_to_rest_after_a_few_calls() -> None:
    """A full endpoint answers in a millisecond. 10, 8, 6, 4, 3, 2, 1, 0: seven calls, and not as
    many as fit into the time that the desk takes."""
    gate = ClusterLimit(lambda: None)
    gate.obey(10, 1)
    calls = 0
    while calls < 100 and (ticket := gate.acquire_now()) is not None:
        gate.release(ticket, overloaded=True)
        calls += 1
    assert calls == 7


def test_only_answers_that_came_while_all_places_were_taken_count_for_growth() -> None:
    gate = ClusterLimit(lambda: None)
    gate.obey(3, 1)
    first, second = sent(gate, 2)
    gate.release(first, overloaded=False)  # two of three
    assert gate.report().good == 0
    third, _ = sent(gate, 2)
    gate.release(second, overloaded=False)  # three of three
    gate.release(third, overloaded=None)
    assert gate.report().good == 1
    assert gate.report().good == 0, "a report is of what came since the last"


async def test_an_endpoint_gives_every_place_of_the_gate_back() -> None:
    """A ticket of 0 would be taken for no ticket, and its place be lost."""
    gate = ClusterLimit(lambda: None)
    gate.obey(*heard(Coordinator(), "w", EndpointObservation(waiting=3)))
    async with LoopbackServer(Capacity(limit=100, latency=0.01)) as server:
        model = Endpoint(server.url, model="pretended", limit=gate)
        asked = [ModelRequest(messages=(Message("user", f"{n}"),)) for n in range(40)]
        async with asyncio.timeout(20):
            await asyncio.gather(*map(model.complete, asked))
            for request in asked:  # and one by one, when there is always a place
                await model.complete(request)
        await model.close()
        assert server.counts.most_active == START
    assert (gate.in_flight, gate.waiting) == (0, 0)


# -- the word to stop --------------------------------------------------------------------------


def test_a_word_to_stop_reaches_every_worker_and_is_never_taken_back() -> None:
    desk = Coordinator(clock=Clock())
    assert desk.sync(WorkerReport(worker="a")).stop == 0
    desk.stop(2)
    desk.stop(1)
    assert [desk.sync(WorkerReport(worker=name)).stop for name in "abc"] == [2, 2, 2]


def test_the_overview_adds_up_what_the_workers_said_last() -> None:
    desk = Coordinator(clock=Clock())
    for name, busy in (("a", 3), ("b", 4), ("a", 5)):
        seen = EndpointObservation(in_flight=busy, waiting=1)
        desk.sync(
            WorkerReport(
                worker=name,
                endpoints={KEY: seen},
                open_shares=2,
                counts={"answered": busy, "calls": 2 * busy},
            )
        )
    overview = desk.overview()
    assert (overview.workers, overview.open_shares) == (2, 4)
    assert overview.counts == {"answered": 9, "calls": 18}
    assert overview.endpoints == {KEY: (9, START)}
