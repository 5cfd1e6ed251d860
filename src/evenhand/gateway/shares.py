"""A bounded amount of work under way, shared alike by the tenants who wait for it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_MOST = 8_000  # our choice, in characters: about a quarter of a second of the offline screen


class FairQueue:
    """A fair queue. Of those who wait, the tenant whose work so far is least goes first; a tenant
    that comes back begins where the others are, so that nobody saves up turns.

    >>> async with shares.turn("team-hr", cost=1_200):
    ...     await scorer.score(texts)
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._under_way = 0
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        self._worked: dict[str, int] = {}  # of tenants that wait, or are ahead of the others
        self._now = 0  # the work of the tenant whose turn was last

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def turn(self, tenant: str, cost: int) -> AsyncIterator[None]:
        """Wait for a turn, and hold it.

        Args:
            tenant: Whose work it is.
            cost: How much it is, in characters. One that is larger than the bound waits until
                nothing else is under way.
        """
        await self._wait(tenant, cost)
        try:
            yield
        finally:
            self._end(cost)

    async def _wait(self, tenant: str, cost: int) -> None:
        queue = self._waiting.setdefault(tenant, deque())
        if not queue:
            self._worked[tenant] = max(self._now, self._worked.get(tenant, 0))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append((cost, turn))
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(cost)  # granted in the same moment
            else:
                self._forget(tenant, turn)
            raise

    def _forget(self, tenant: str, turn: "asyncio.Future[None]") -> None:
        queue = self._waiting[tenant]
        remaining = deque(entry for entry in queue if entry[1] is not turn)
        if remaining:
            self._waiting[tenant] = remaining
        else:
            del self._waiting[tenant]
        self._grant()

    def _end(self, cost: int) -> None:
        self._under_way -= cost
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            tenant = min(self._waiting, key=self._worked.__getitem__)
            cost, turn = self._waiting[tenant][0]
            if self._under_way and self._under_way + cost > self._most:
                return
            self._waiting[tenant].popleft()
            if not self._waiting[tenant]:
                del self._waiting[tenant]
            self._now = self._worked[tenant]
            self._worked[tenant] += cost
            if not turn.done():
                self._under_way += cost
                turn.set_result(None)
        self._worked = {name: work for name, work in self._worked.items() if work > self._now}
