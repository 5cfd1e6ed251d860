"""When to leave an upstream alone: a breaker that opens while it fails or is slow, and a budget for
asking again. Neither has a task of its own: both look at the clock when they are asked.

Every constant is chosen for R6 and R7 of docs/fault-tolerance.md.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
_MOST_MODELS = 32  # of a tenant
_FURTHER = "\0"  # no model is called that
_PIECES = 20  # a window slides in steps of a twentieth: memory does not grow with the traffic


class _EventWindow:
    """Counts of two kinds of events within the last seconds."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._step = seconds / _PIECES
        self._clock = clock
        self._pieces: deque[list[int]] = deque()  # [number of the step, first kind, second kind]
        self._sums = [0, 0]

    def add(self, first: int, second: int) -> None:
        now = self._forget()
        if not self._pieces or self._pieces[-1][0] != now:
            self._pieces.append([now, 0, 0])
        for kind, count in enumerate((first, second)):
            self._pieces[-1][kind + 1] += count
            self._sums[kind] += count

    def sums(self) -> tuple[int, int]:
        self._forget()
        return self._sums[0], self._sums[1]

    def clear(self) -> None:
        self._pieces.clear()
        self._sums = [0, 0]

    def _forget(self) -> int:
        now = int(self._clock() / self._step)
        while self._pieces and self._pieces[0][0] <= now - _PIECES:
            _, first, second = self._pieces.popleft()
            self._sums[0] -= first
            self._sums[1] -= second
        return now


@dataclass(eq=False, slots=True)
class BreakerCall:
    """A call that the breaker let through, to be given back to `done`."""

    began: float


class Breaker:
    """The breaker of one upstream.

    Closed, it lets everything through, until within `window` seconds at least `least` calls ended
    or were overdue and a `share` of them was bad. Open, it lets nothing through for `rest` seconds,
    then one probe at a time; `closes_after` good ones in a row close it, a bad one opens it again.

    A call is bad if it failed (connection lost, 5xx, time-out) or took longer than `slow_after`
    seconds. It counts as soon as it is overdue: a call that hangs for a minute is noticed at once.
    Give three to five times what the upstream usually takes, None if that cannot be said.
    """

    def __init__(
        self,
        *,
        slow_after: float | None,
        window: float = 4.0,  # so short that earlier good calls do not hide a sudden failure
        share: float = 0.5,
        least: int = 5,
        rest: float = 2.0,  # always as long: one probe in two seconds burdens nobody
        closes_after: int = 2,
        clock: Clock = time.monotonic,
    ) -> None:
        self._slow_after = slow_after
        self._window = _EventWindow(window, clock)  # calls that ended, bad ones
        self._share = share
        self._least = least
        self._rest = rest
        self._closes_after = closes_after
        self._clock = clock
        self._opened: float | None = None  # when, if it is not closed
        self._good_probes = 0
        # Neither overdue nor begun before the last change, after which they say nothing; the oldest
        # stands first.
        self._under_way: dict[BreakerCall, None] = {}

    @property
    def closed(self) -> bool:
        self._notice_overdue()
        return self._opened is None

    @property
    def idle(self) -> bool:
        """Whether it knows nothing: closed, nothing under way, nothing within the window."""
        return self.closed and not self._under_way and self._window.sums() == (0, 0)

    @property
    def retry_after(self) -> float:
        """Seconds until it may be worth asking again."""
        if self.closed or self._opened is None:
            return 0.0
        return max(0.0, self._opened + self._rest - self._clock())

    def let_through(self) -> BreakerCall | None:
        """Let a call through, or none. Each one that is let through must be given to `done`."""
        self._notice_overdue()
        now = self._clock()
        if self._opened is not None and (now < self._opened + self._rest or self._under_way):
            return None
        call = BreakerCall(now)
        self._under_way[call] = None
        return call

    def done(self, call: BreakerCall, *, good: bool | None) -> None:
        """Say how a call ended. `good` is None if that says nothing about the upstream: the client
        has gone, or the answer was "too many requests from you". Said twice, it counts once."""
        self._notice_overdue()
        if call not in self._under_way:
            return  # counted when it was overdue, or begun before a change
        del self._under_way[call]
        if good is not None:
            self._count(good)

    def _notice_overdue(self) -> None:
        if self._slow_after is None:
            return
        latest = self._clock() - self._slow_after
        while self._under_way:
            oldest = next(iter(self._under_way))
            if oldest.began >= latest:
                return
            del self._under_way[oldest]
            self._count(False)

    def _count(self, good: bool) -> None:
        if self._opened is None:
            self._window.add(1, not good)
            ended, bad = self._window.sums()
            if not good and ended >= self._least and bad >= self._share * ended:
                self._change(self._clock())
        elif not good:
            self._change(self._clock())
        else:
            self._good_probes += 1
            if self._good_probes >= self._closes_after:
                self._change(None)

    def _change(self, opened: float | None) -> None:
        self._opened = opened
        self._good_probes = 0
        self._under_way.clear()
        self._window.clear()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks the upstream for what."""

    tenant: str
    model: str = ""


class Breakers:
    """A breaker for each tenant and model: an error that one tenant provokes, or that one model
    has, rests nobody else.

    In an outage of the whole upstream each opens by itself, and each probes by itself.
    """

    def __init__(self, *, slow_after: float | None, clock: Clock = time.monotonic) -> None:
        self._slow_after = slow_after
        self._clock = clock
        self._of: dict[str, dict[str, Breaker]] = {}

    @property
    def closed(self) -> bool:
        """Whether none is open."""
        return all(breaker.closed for models in self._of.values() for breaker in models.values())

    def of(self, caller: Caller) -> Breaker:
        """The breaker of a caller. Names of models come from clients: a tenant has a bounded number
        of breakers, and all further names share one."""
        models = self._of.setdefault(caller.tenant, {})
        if caller.model not in models and len(models) >= _MOST_MODELS:
            for name in [name for name, breaker in models.items() if breaker.idle]:
                del models[name]
        has_own = caller.model in models or len(models) < _MOST_MODELS
        name = caller.model if has_own else _FURTHER
        if name not in models:
            models[name] = Breaker(slow_after=self._slow_after, clock=self._clock)
        return models[name]


class RetryBudget:
    """The budget of one upstream for asking again: in any `window` seconds at most `share` as many
    retries as requests. So an outage makes 1.2 calls of a request and not eight.

    Nothing is given in advance: with fewer than five requests in half a minute, none is retried.
    """

    def __init__(
        self, *, share: float = 0.2, window: float = 30.0, clock: Clock = time.monotonic
    ) -> None:
        self._share = share
        self._window = _EventWindow(window, clock)

    def request(self) -> None:
        """Count a request, once, before its first attempt."""
        self._window.add(1, 0)

    def retry(self) -> bool:
        """Take one retry out of the budget, if there is one left."""
        requests, retries = self._window.sums()
        if retries + 1 > self._share * requests:
            return False
        self._window.add(0, 1)
        return True
