"""The adaptive concurrency limit finds by trying how many calls an endpoint takes at once (additive
increase, multiplicative decrease, as in TCP).

`Law` decides the number, `ResizableSemaphore` keeps to one. Here both sit together; on a cluster
one law serves the gates of all processes.
"""

import asyncio
from collections import deque

DECREASE = 0.8  # our choice: shallower than TCP's half, so that the mean stays near the capacity
_FLOOR = 1.0
_NEAR, _CAREFUL = 0.1, 0.1  # our choice: within 10% of the last known edge, grow ten times slower


class Law:
    """The law of the limit: it doubles every round trip until the first overload answer, then grows
    by one per round trip and shrinks by 20% on overload."""

    def __init__(self, start: int = 16, ceiling: int = 1024) -> None:
        self.limit = float(min(start, ceiling))
        self._ceiling = float(ceiling)
        self._searching = True
        self._full_at = 0.0  # the limit at the last overload answer

    def grow(self) -> None:
        """Count one more good answer that came while the limit was in full use."""
        step = 1.0 if self._searching else 1.0 / self.limit
        if abs(self.limit - self._full_at) < _NEAR * self._full_at:
            step *= _CAREFUL
        self.limit = min(self._ceiling, self.limit + step)

    def keep_below(self, ceiling: int) -> None:
        """Take a ceiling that somebody named."""
        self._ceiling = max(_FLOOR, min(self._ceiling, float(ceiling)))
        self.limit = min(self.limit, self._ceiling)

    def cut(self) -> None:
        self._full_at = self.limit
        self.limit = max(_FLOOR, self.limit * DECREASE)
        self._searching = False


class ResizableSemaphore:
    """A gate is a semaphore whose size may change while it is in use."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def acquire_now(self) -> int | None:
        """Take a place if one is free, without waiting. The ticket is what `release` wants back."""
        if self._waiting or self.in_flight >= self.size:
            return None
        self.in_flight += 1
        return self._ticket()

    async def acquire(self) -> int:
        """Wait for a place, first come first served."""
        ticket = self.acquire_now()
        if ticket is not None:
            return ticket
        await self._queue()
        return self._ticket()

    def release(self, ticket: int, *, overloaded: bool | None) -> None:
        """Give a place back. `overloaded` is None where the answer says nothing about capacity (a
        refused key)."""
        self.in_flight -= 1
        self._learn(ticket, overloaded)
        self._wake()

    def resize(self, size: int) -> None:
        self.size = size
        self._wake()

    def _ticket(self) -> int:
        """The number that tells calls sent before a cut from those sent after it."""
        raise NotImplementedError

    def _learn(self, ticket: int, overloaded: bool | None) -> None:
        raise NotImplementedError

    async def _queue(self) -> None:
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(ticket)
        try:
            await ticket  # the task that wakes this one has counted it already
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():
                self.in_flight -= 1  # the place came as we left: pass it on
                self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting and self.in_flight < self.size:
            ticket = self._waiting.popleft()
            if not ticket.done():
                self.in_flight += 1
                ticket.set_result(None)


class AdaptiveLimit(ResizableSemaphore):
    """The gate and the law of one process. It cuts at most once per round trip, because the answers
    to calls that were sent before a cut say nothing new."""

    def __init__(self, start: int = 16, ceiling: int = 1024) -> None:
        self._law = Law(start, ceiling)
        super().__init__(int(self._law.limit))
        self._sent = 0  # calls sent so far
        self._cut_at = 0  # value of _sent at the last cut

    @property
    def limit(self) -> float:
        return self._law.limit

    def keep_below(self, ceiling: int) -> None:
        """Never again have more at once than the endpoint says that it takes."""
        self._law.keep_below(ceiling)
        self.size = int(self._law.limit)

    def _ticket(self) -> int:
        self._sent += 1
        return self._sent

    def _learn(self, ticket: int, overloaded: bool | None) -> None:
        if overloaded is True and ticket > self._cut_at:
            self._law.cut()
            self._cut_at = self._sent
        # Only a limit that is being used may grow: an idle one has shown nothing.
        elif overloaded is False and self.in_flight + 1 >= self.size:
            self._law.grow()
        else:
            return
        self.size = int(self._law.limit)
