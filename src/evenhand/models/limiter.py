"""How many calls an endpoint gets at once, found by trying (additive increase, multiplicative
decrease, as TCP does it)."""

import asyncio
from collections import deque

_DECREASE = 0.7  # ours: shallower than TCP's half, so that the mean stays near the capacity
_FLOOR = 1.0
_NEAR, _CAREFUL = 0.1, 0.1  # ours: within 10 % of the last known edge, grow ten times slower


class AdaptiveLimit:
    """A semaphore whose size follows the endpoint's capacity.

    It doubles every round trip until the first overload answer, then grows by one per round trip
    and shrinks by 30 % on overload, at most once per round trip: the answers to calls that were
    sent before a cut say nothing new.
    """

    def __init__(self, start: int = 16, ceiling: int = 1024) -> None:
        self.limit = float(min(start, ceiling))
        self.in_flight = 0
        self._ceiling = float(ceiling)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._searching = True
        self._full_at = 0.0  # the limit at the last overload answer
        self._sent = 0  # calls sent so far
        self._cut_at = 0  # value of _sent at the last cut

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def acquire_now(self) -> int | None:
        """A place if one is free, without waiting. The ticket is what `release` wants back."""
        if self._waiting or self.in_flight >= int(self.limit):
            return None
        self.in_flight += 1
        self._sent += 1
        return self._sent

    async def acquire(self) -> int:
        """Wait for a place, first come first served."""
        ticket = self.acquire_now()
        if ticket is not None:
            return ticket
        await self._queue()
        self._sent += 1
        return self._sent

    async def _queue(self) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place  # whoever wakes us has counted us in already
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.in_flight -= 1  # the place came as we left: pass it on
                self._wake()
            raise

    def release(self, ticket: int, *, overloaded: bool | None) -> None:
        """`overloaded` is None where the answer says nothing about capacity (a refused key)."""
        self.in_flight -= 1
        if overloaded is True and ticket > self._cut_at:
            self._full_at = self.limit
            self.limit = max(_FLOOR, self.limit * _DECREASE)
            self._cut_at = self._sent
            self._searching = False
        elif overloaded is False:
            self._grow()
        self._wake()

    def _grow(self) -> None:
        # Only a limit that is being used may grow: an idle one has shown nothing.
        if self.in_flight + 1 >= int(self.limit):
            step = 1.0 if self._searching else 1.0 / self.limit
            if abs(self.limit - self._full_at) < _NEAR * self._full_at:
                step *= _CAREFUL
            self.limit = min(self._ceiling, self.limit + step)

    def _wake(self) -> None:
        while self._waiting and self.in_flight < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)
