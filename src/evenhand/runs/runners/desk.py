"""The coordinator of a cluster's workers ("desk"): it holds one limit per endpoint over all of
them, knows what is at work where, and passes on a request to stop.

Asking it before each call would cost more than the call's own share of a core. Each worker reports
a few times a second instead and keeps to the number of places it was given. What a worker may be
using, by its last report and the order it got for it, counts as taken until it says otherwise; so
the calls of all never add up to more than the limit, but for those that a cut caught under way.

One spending cap holds for many workers in the same way: each may spend what was leased to it. A
lease only ever shrinks by the worker's own promise, so that the leases never add up to more than
the cap, whatever is on its way. What was leased to a worker that died counts as spent until the run
is resumed and looks at what was recorded.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evenhand.core.prices import Prices
from evenhand.models.limiter import DECREASE, Law, ResizableSemaphore
from evenhand.runs.runners.purse import MAX_CALLS, MAX_COST, SpendingCap


@dataclass(frozen=True, slots=True)
class LeaseCaps:
    calls: float = float("inf")
    cost: float = float("inf")


@dataclass(frozen=True, slots=True)
class Spending:
    """A worker reports what it has used up, what it promises not to exceed, and what it wants."""

    used: LeaseCaps
    promised: LeaseCaps
    wanted: LeaseCaps
    in_flight: int
    waiting: int
    first: float = 0.0  # the most that the first of those who wait can cost


class LeasedCap(SpendingCap):
    """The spending cap on the worker's side: calls that do not fit the lease wait for a larger
    one."""

    patience = float("inf")  # it may come at any time

    def __init__(self, prices: Prices | None, hurry: Callable[[], None]) -> None:
        super().__init__(max_calls=0, max_cost=0.0 if prices else None, prices=prices)
        self._hurry = hurry
        self._just_told = False  # that nothing is left for now: asking again at once is useless

    def report(self) -> Spending:
        used = LeaseCaps(self.calls, self.cost + self._reserved)
        more = LeaseCaps(
            len(self._waiting) + self._in_flight,
            sum(ticket.most for ticket in self._waiting) + self._reserved,
        )
        # What does not help the first who waits may help another worker: all of it goes back.
        keep = LeaseCaps(0, 0.0) if self._waiting else more
        self.max_calls = min(self.max_calls or 0, int(used.calls + keep.calls))
        if self.max_cost is not None:
            self.max_cost = min(self.max_cost, used.cost + keep.cost)
        promised = LeaseCaps(self.max_calls, self.max_cost or 0.0)
        first = self._waiting[0].most if self._waiting else 0.0
        return Spending(used, promised, more, self._in_flight, len(self._waiting), first)

    def obey(self, lease: LeaseCaps) -> None:
        self.max_calls = int(lease.calls)
        if self.max_cost is not None:
            self.max_cost = lease.cost
        self._just_told = True
        self._serve_waiting()
        self._just_told = False

    def _run_dry(self, obstacle: str) -> None:  # noqa: ARG002
        if not self._just_told:
            self._hurry()


class CapCoordinator:
    """The spending cap on the coordinator's side: the caps of the run, and which worker may spend
    how much of them."""

    def __init__(self, caps: LeaseCaps, spent: LeaseCaps) -> None:
        self._caps = caps
        self._spent = spent  # before this job
        self._leases: dict[str, LeaseCaps] = {}
        self._reports: dict[str, Spending] = {}
        self._refused: set[str] = set()  # since anybody could last go on
        self.exhausted: str | None = None

    def lease(self, worker: str, report: Spending) -> LeaseCaps:
        self._reports[worker] = report
        came_back = self._leases.get(worker, report.promised) != report.promised
        self._leases[worker] = report.promised
        lease = LeaseCaps(self._most("calls", report), self._most("cost", report))
        obstacle = _obstacle(report, lease)
        if obstacle is not None:  # half of what it needs is useless to it
            lease = report.promised
        if came_back or lease != report.promised:
            self._refused.clear()
        self._leases[worker] = lease
        if obstacle is not None:
            self._refused.add(worker)
            self._look_if_dry(obstacle)
        return lease

    def forget(self, worker: str) -> None:
        """Drop a worker that was not heard of for a while. Its lease stays counted, because it may
        still be spending it."""
        self._reports.pop(worker, None)

    @property
    def spent(self) -> LeaseCaps:
        """The sum that was used up before this job and in it; a worker that is gone counts with its
        whole lease."""
        reports = self._reports
        used = [reports[w].used if w in reports else lease for w, lease in self._leases.items()]
        return LeaseCaps(
            self._spent.calls + sum(caps.calls for caps in used),
            self._spent.cost + sum(caps.cost for caps in used),
        )

    def _most(self, what: str, report: Spending) -> float:
        """Compute how large the worker's lease can be, given those of the others."""
        leased = sum(getattr(lease, what) for lease in self._leases.values())
        available: float = getattr(self._caps, what) - getattr(self._spent, what) - leased
        promised: float = getattr(report.promised, what)
        requested: float = getattr(report.used, what) + getattr(report.wanted, what)
        return max(promised, min(requested, promised + max(0.0, available)))

    def _look_if_dry(self, obstacle: str) -> None:
        """Declare the cap exhausted once nothing is in flight and every waiting worker was refused,
        because that cannot change any more."""
        for worker, report in self._reports.items():
            if report.in_flight or (report.waiting and worker not in self._refused):
                return
        self.exhausted = self.exhausted or obstacle


def _obstacle(report: Spending, lease: LeaseCaps) -> str | None:
    """Name the option that keeps the first waiting call from going on."""
    if report.waiting and lease.calls - report.used.calls < 1:
        return MAX_CALLS
    if report.waiting and report.used.cost + report.first > lease.cost:
        return MAX_COST
    return None


SYNC_SECONDS = 0.2
_SILENCE = 5.0  # our choice: a worker that was not heard for so long is taken for dead
_ROTATE = 2.0  # our choice: where there are fewer places than workers, they change hands this often


@dataclass(slots=True)
class EndpointObservation:
    """A worker's observation of one endpoint since its last report."""

    good: int = 0  # answers while all its places were taken
    overloaded_in: int = -1  # the newest epoch in which a call was sent that found it full
    places: int = 0  # that it keeps to
    in_flight: int = 0
    waiting: int = 0


@dataclass(slots=True)
class WorkerReport:
    worker: str
    endpoints: dict[str, EndpointObservation] = field(default_factory=dict)
    open_shares: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # of the shares at work
    spending: Spending | None = None


@dataclass(slots=True)
class WorkerOrders:
    stop: int = 0  # 1: finish what is at work; 2: stop at once
    places: dict[str, tuple[int, int]] = field(default_factory=dict)  # key -> (places, epoch)
    lease: LeaseCaps | None = None


@dataclass(slots=True)
class Overview:
    """The state of the cluster at one moment, for the driver."""

    workers: int
    open_shares: int
    counts: dict[str, int]
    endpoints: dict[str, tuple[int, int]]  # key -> (calls in flight, limit)
    spent: LeaseCaps | None
    exhausted: str | None  # the option that capped the run


class _EndpointState:
    def __init__(self) -> None:
        self.law = Law()
        self.epoch = 1  # counts the cuts: a call that was sent before one says nothing new
        self.held: dict[str, int] = {}  # places that a worker may be using before it reports again


class Coordinator:
    """The coordinator keeps these books and does no I/O; `ray.py` puts it into an actor."""

    def __init__(
        self, treasury: CapCoordinator | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._treasury = treasury
        self._clock = clock
        self._heard: dict[str, tuple[float, WorkerReport]] = {}
        self._endpoints: dict[str, _EndpointState] = {}
        self._stop = 0

    def sync(self, report: WorkerReport) -> WorkerOrders:
        now = self._clock()
        self._heard[report.worker] = now, report
        self._forget_the_silent(now)
        orders = WorkerOrders()
        if self._treasury is not None and report.spending is not None:
            orders.lease = self._treasury.lease(report.worker, report.spending)
            if self._treasury.exhausted:
                self.stop(2)
        orders.stop = self._stop
        for key, usage in report.endpoints.items():
            endpoint = self._endpoints.setdefault(key, _EndpointState())
            self._learn(endpoint, usage)
            granted = self._grant(key, endpoint, report.worker, now)
            orders.places[key] = granted, endpoint.epoch
        return orders

    def stop(self, level: int) -> None:
        self._stop = max(self._stop, level)

    def overview(self) -> Overview:
        self._forget_the_silent(self._clock())
        counts: dict[str, int] = {}
        for _, report in self._heard.values():
            for name, count in report.counts.items():
                counts[name] = counts.get(name, 0) + count
        return Overview(
            workers=len(self._heard),
            open_shares=sum(report.open_shares for _, report in self._heard.values()),
            counts=counts,
            endpoints={
                key: (
                    sum(usage.in_flight for _, usage in self._asking(key)),
                    int(endpoint.law.limit),
                )
                for key, endpoint in self._endpoints.items()
            },
            spent=self._treasury.spent if self._treasury else None,
            exhausted=self._treasury.exhausted if self._treasury else None,
        )

    def _learn(self, endpoint: _EndpointState, usage: EndpointObservation) -> None:
        if usage.overloaded_in == endpoint.epoch:
            endpoint.law.cut()
            endpoint.epoch += 1
        else:
            for _ in range(usage.good):
                endpoint.law.grow()

    def _grant(self, key: str, endpoint: _EndpointState, worker: str, now: float) -> int:
        """Give a worker its fair part of the limit, as far as the others have given back what they
        held."""
        limit = int(endpoint.law.limit)
        fair = _fair(limit, dict(self._demand(key)), int(now / _ROTATE))[worker]
        taken = sum(held for other, held in endpoint.held.items() if other != worker)
        granted = max(0, min(fair, limit - taken))
        usage = self._heard[worker][1].endpoints[key]
        endpoint.held[worker] = max(granted, usage.places, usage.in_flight)
        return granted

    def _demand(self, key: str) -> list[tuple[str, int]]:
        return [(worker, usage.in_flight + usage.waiting) for worker, usage in self._asking(key)]

    def _asking(self, key: str) -> list[tuple[str, EndpointObservation]]:
        return [
            (worker, report.endpoints[key])
            for worker, (_, report) in self._heard.items()
            if key in report.endpoints
        ]

    def _forget_the_silent(self, now: float) -> None:
        for worker in [w for w, (heard, _) in self._heard.items() if now - heard > _SILENCE]:
            del self._heard[worker]
            if self._treasury is not None:
                self._treasury.forget(worker)
            for endpoint in self._endpoints.values():
                endpoint.held.pop(worker, None)


def _fair(limit: int, demand: dict[str, int], turn: int) -> dict[str, int]:
    """Share out the limit: one place to each worker that asks, the rest by demand. All of it is
    given out, because a worker that asks for nothing now may ask the next moment, so each counts as
    asking for one; what does not divide, or is not enough for all, rotates."""
    workers = sorted(demand)
    asking = [worker for worker in workers if demand[worker]]
    if limit < len(asking):
        first = turn * limit
        lucky = {asking[(first + i) % len(asking)] for i in range(limit)}
        return {worker: int(worker in lucky) for worker in workers}
    shares = {worker: int(demand[worker] > 0) for worker in workers}
    rest = limit - len(asking)
    weights = {worker: max(1, demand[worker]) for worker in workers}
    exact = {worker: rest * weights[worker] / sum(weights.values()) for worker in workers}
    floors = {worker: int(exact[worker]) for worker in workers}
    around = {worker: (i - turn) % len(workers) for i, worker in enumerate(workers)}
    order = sorted(workers, key=lambda w: (-round(exact[w] - floors[w], 6), around[w]))
    ahead = set(order[: rest - sum(floors.values())])
    return {worker: shares[worker] + floors[worker] + (worker in ahead) for worker in workers}


class ClusterLimit(ResizableSemaphore):
    """A worker's concurrency limit for an endpoint. The coordinator sets its size; a call that
    finds the endpoint full makes it smaller at once, without waiting for the coordinator, because a
    full endpoint says so in a millisecond and a busy coordinator may take a hundred."""

    def __init__(self, hurry: Callable[[], None]) -> None:
        super().__init__(0)
        self._hurry = hurry  # have the coordinator hear of it now
        self._epoch = 1
        self._full_in = 0  # the last epoch in which it was found full
        self._sent = 0  # calls so far, which number the tickets
        self._cut_at = 0  # value of _sent at the last cut, our own or the coordinator's
        self._good = 0

    def report(self) -> EndpointObservation:
        good, self._good = self._good, 0
        full_in = self._epoch if self._full_in == self._epoch else -1
        return EndpointObservation(good, full_in, self.size, self.in_flight, self.waiting)

    def obey(self, places: int, epoch: int) -> None:
        if epoch != self._epoch:
            self._epoch, self._cut_at = epoch, self._sent
        elif self._full_in == epoch:  # the coordinator did not know that yet
            places = min(places, self.size)
        self.resize(places)

    def _ticket(self) -> int:
        self._sent += 1
        return self._sent

    def _learn(self, ticket: int, overloaded: bool | None) -> None:
        if overloaded is True and ticket > self._cut_at:
            self._cut_at = self._sent
            self.size = int(self.size * DECREASE)
            if self._full_in != self._epoch:
                self._full_in = self._epoch
                self._hurry()
        elif overloaded is False and self.in_flight + 1 >= self.size:
            self._good += 1
