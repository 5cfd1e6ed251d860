"""What a run costs this process: memory, and time in which the event loop did nothing else; how
late something ended on a shared machine."""

import asyncio
import contextlib
import ctypes
import gc
import threading
import time
from types import TracebackType
from typing import Self

import psutil

_EVERY = 0.002  # seconds between looks: a 10 MB copy takes longer than this
_BEAT = 0.005  # seconds


class PeakMemory:
    """The highest resident size during a `with`, over what it was before.

    The growth at the end alone would miss what was taken and given back.
    """

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        _give_back()
        self._before = self._peak = self._process.memory_info().rss
        self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._watcher.join()

    @property
    def megabytes(self) -> float:
        growth: int = self._peak - self._before
        return growth / 2**20

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            self._peak = max(self._peak, self._process.memory_info().rss)


def _give_back() -> None:
    """Free memory that is kept for later would hide growth."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL("libc.so.6").malloc_trim(0)


class LoopLag:
    """The longest time for which this process's own computing held up the event loop during an
    `async with`. While a shared machine stands still, nothing is computed."""

    seconds: float = 0.0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.sleep(0.02)  # so that a hold-up just now is seen
        self._task.cancel()

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            before, computed = clock(), time.process_time()
            await asyncio.sleep(0.01)
            held, computed = clock() - before - 0.01, time.process_time() - computed
            self.seconds = max(self.seconds, min(held, computed))


class Lateness:
    """How long after its time something ended, without the time for which the event loop was held
    up meanwhile. A heartbeat in the loop sees every hold-up, whether a machine stood still or
    computed slowly; what is left is time in which the loop was free and the thing had not ended."""

    def __init__(self) -> None:
        self.held: list[tuple[float, float]] = []  # from when a beat was due to when it came

    async def __aenter__(self) -> Self:
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
        with contextlib.suppress(asyncio.CancelledError):
            await self._beating

    async def _beat(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + _BEAT
            await asyncio.sleep(_BEAT)
            self.held.append((due, clock()))

    def of(self, due: float, ended: float) -> float:
        """Seconds from `due` to `ended` (before: < 0), without the hold-ups between them."""
        between = (max(min(end, ended) - max(begin, due), 0.0) for begin, end in self.held)
        return ended - due - sum(between)
