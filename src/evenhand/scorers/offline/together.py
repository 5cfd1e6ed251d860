"""Texts of many callers, scored together in threads, so that the event loop does not wait.

A call starts at once where a thread is free. While all are busy, texts collect; whichever thread is
free next takes as many of them as fit. So no call waits for others to come, and none longer than
for the batches under way.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from evenhand.scorers.offline.network import WITH_ONNX_RUNTIME

_AT_ONCE = 4  # our choice, in threads: what one interpreter can keep busy
_MOST = 8_000  # our choice, in characters: about 0.1 s of the network
_Result = TypeVar("_Result")


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads of this process that score. Scorers do not hold them, as they are sent to other
    processes."""
    return ThreadPoolExecutor(_threads(), "offline-scorer")


def _threads() -> int:
    """One for each core with ONNX Runtime. Several in numpy would wait for each other within BLAS,
    busily, and take the interpreter from the loop."""
    return min(_AT_ONCE, os.cpu_count() or 1) if WITH_ONNX_RUNTIME else 1


os.register_at_fork(after_in_child=_pool.cache_clear)  # a thread is not there in a child


@dataclass(eq=False, slots=True)
class _Call(Generic[_Result]):
    texts: Sequence[str]
    results: "asyncio.Future[list[_Result]]"


@dataclass(eq=False)
class _Queue(Generic[_Result]):
    """What waits on one event loop."""

    calls: deque[_Call[_Result]] = field(default_factory=deque)
    batches: set["asyncio.Task[None]"] = field(default_factory=set)  # under way


class Together(Generic[_Result]):
    """Scores the texts of calls that come at once in one batch.

    Args:
        work: Gives one result a text, in their order; runs in a thread.
        most: How many characters a batch holds, unless one call has more.
    """

    def __init__(self, work: Callable[[Sequence[str]], list[_Result]], most: int = _MOST) -> None:
        self._work, self._most = work, most
        self._queues = WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue[_Result]]()

    def __reduce__(self) -> tuple[Any, ...]:
        return Together, (self._work, self._most)

    async def __call__(self, texts: Sequence[str]) -> list[_Result]:
        """Score texts, together with those of other calls.

        Args:
            texts: The texts of this call.

        Returns:
            Their results, in the order of the texts.
        """
        loop = asyncio.get_running_loop()
        queue = self._queues.setdefault(loop, _Queue())
        call: _Call[_Result] = _Call(texts, loop.create_future())
        queue.calls.append(call)
        self._start(queue)
        return await call.results

    def _start(self, queue: _Queue[_Result]) -> None:
        while queue.calls and len(queue.batches) < _threads():
            batch = asyncio.ensure_future(self._batch(self._next(queue)))
            queue.batches.add(batch)
            batch.add_done_callback(lambda done: self._end(queue, done))

    def _end(self, queue: _Queue[_Result], batch: "asyncio.Task[None]") -> None:
        queue.batches.discard(batch)
        self._start(queue)

    def _next(self, queue: _Queue[_Result]) -> list[_Call[_Result]]:
        calls, size = list[_Call[_Result]](), 0
        while queue.calls:
            size += sum(map(len, queue.calls[0].texts))
            if calls and size > self._most:
                break
            call = queue.calls.popleft()
            if not call.results.done():  # else its caller has gone
                calls.append(call)
        return calls

    async def _batch(self, calls: list[_Call[_Result]]) -> None:
        texts = [text for call in calls for text in call.texts]
        try:
            results = iter(await self._in_thread(texts))
        except Exception as error:
            if len(calls) == 1:
                _fail(calls[0], error)
                return
            for call in calls:  # one of them has failed: each for itself
                await self._batch([call])
            return
        for call in calls:
            mine = [next(results) for _ in call.texts]
            if not call.results.done():
                call.results.set_result(mine)

    async def _in_thread(self, texts: Sequence[str]) -> list[_Result]:
        return await asyncio.get_running_loop().run_in_executor(_pool(), self._work, texts)


def _fail(call: _Call[Any], error: Exception) -> None:
    if not call.results.done():
        call.results.set_exception(error)
