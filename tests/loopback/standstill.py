"""How long a shared machine stood still, so that a test of deadlines does not count it."""

import asyncio
import time
from contextlib import suppress
from types import TracebackType

_BEAT = 0.005  # seconds


class Standstill:
    """A heartbeat in the event loop. Of the time between two beats, what was neither the sleep that
    was asked for nor processor time of this process was taken by others: the machine stood still.
    What this process computed, in whichever thread, is never taken for that; a call that blocks the
    loop without computing would be, so a test of that is no test for this."""

    def __init__(self) -> None:
        self._stood: list[tuple[float, float, float]] = []  # begin, end, seconds of standing still

    async def __aenter__(self) -> "Standstill":
        self._beating = asyncio.create_task(self._beat())
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.sleep(2 * _BEAT)  # the beat that covers the last moment
        self._beating.cancel()
        with suppress(asyncio.CancelledError):
            await self._beating

    async def _beat(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            begin, computed = clock(), time.process_time()
            await asyncio.sleep(_BEAT)
            end = clock()
            stood = end - begin - _BEAT - (time.process_time() - computed)
            if stood > 0:
                self._stood.append((begin, end, stood))

    def late(self, due: float, ended: float) -> float:
        """How long after `due` something ended (before: < 0), without the standing still."""
        overlaps = (
            min(stood, max(min(end, ended) - max(begin, due), 0.0))
            for begin, end, stood in self._stood
        )
        return ended - due - sum(overlaps)
