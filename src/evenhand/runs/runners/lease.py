"""One spending cap holds for many workers: each may spend what was leased to it and no more.

A lease only ever shrinks by the worker's own promise, so that the leases never add up to more than
the cap, whatever is on its way between worker and coordinator. What was leased to a worker that
died counts as spent until the run is resumed and looks at what was recorded.
"""

from collections.abc import Callable
from dataclasses import dataclass

from evenhand.core.prices import Prices
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
        self._just_told = False  # that there is no more for now: asking again at once is no use

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
        if obstacle is not None:  # half of what it needs is no use to it
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
        """Compute how large the worker's lease can be beside those of the others."""
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
