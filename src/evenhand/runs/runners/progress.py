"""Progress counts how far a run is; a screen and the run folder's `status.json` show the
counters."""

import asyncio
import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from evenhand.agents import Cast
from evenhand.core import Answered, Event, Item
from evenhand.core.errors import Fenced
from evenhand.models.batch import BatchQueue, BatchState
from evenhand.models.endpoint import RemoteModel
from evenhand.runs.runners.purse import SpendingCap
from evenhand.runs.store.folder import Folder

STATUS_FILE = "status.json"
_STATUS_SECONDS = 2.0
_RATE_SECONDS = 30.0  # our choice: what "now" means for calls a second
_ETA_SECONDS = 300.0  # our choice: long enough that one slow item does not move the forecast
_MARK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _ProgressMark:
    """The counters at one moment."""

    clock: float
    calls: int
    ended: int


@dataclass(slots=True)
class Progress:
    """The counters of a run, which a display may read while the run goes on.

    What is not counted but read off elsewhere (`cost`, `endpoints`) is filled in by `look`, which
    the runner sets, each time somebody asks for a snapshot.
    """

    planned: int = 0
    resumed: int = 0  # items that an earlier process had finished
    answered: int = 0
    failed: int = 0
    changed: int = 0
    calls: int = 0
    tokens: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    in_flight: int = 0
    cost: float | None = None  # of the whole run; None: no prices
    currency: str = ""
    endpoints: dict[str, tuple[int, int]] = field(default_factory=dict)  # (in flight, limit)
    batches_ended: int = 0
    batches: list[BatchState] = field(default_factory=list)  # that are under way
    state: str = "running"  # or ended, stopped, failed
    look: Callable[["Progress"], None] | None = None
    _marks: deque[_ProgressMark] = field(default_factory=deque)
    _started: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        return self.resumed + self.answered + self.failed

    def starting(self, items: Iterable[tuple[int, Item]]) -> Iterator[tuple[int, Item]]:
        """Yield the items, each counted as being at work from here until `count` has its end."""
        for item in items:
            self.in_flight += 1
            yield item

    def count(self, event: Event) -> None:
        self.in_flight -= 1
        self.calls += event.calls
        self.tokens += (event.prompt_tokens or 0) + (event.completion_tokens or 0)
        if isinstance(event, Answered):
            self.answered += 1
            self.changed += event.answer.changed
        else:
            self.failed += 1
            self.reasons[event.reason] = self.reasons.get(event.reason, 0) + 1

    def snapshot(self) -> dict[str, Any]:
        """Give all counters as plain data."""
        if self.look is not None:
            self.look(self)
        now = self._mark()
        recent, longer = self._since(now, _RATE_SECONDS), self._since(now, _ETA_SECONDS)
        items_per_second = _rate(now.ended - longer.ended, now.clock - longer.clock)
        left = max(self.planned - self.done, 0)
        return {
            "state": self.state,
            "planned": self.planned,
            "done": self.done,
            "resumed": self.resumed,
            "answered": self.answered,
            "failed": self.failed,
            "failed_by_reason": dict(self.reasons),
            "changed": self.changed,
            "in_flight": self.in_flight,
            "calls": self.calls,
            "calls_per_second": _rate(now.calls - recent.calls, now.clock - recent.clock),
            "tokens": self.tokens,
            "cost": self.cost,
            "currency": self.currency,
            "seconds": now.clock - self._started,
            "eta_seconds": left / items_per_second if items_per_second else None,
            "endpoints": {
                name: {"in_flight": busy, "limit": limit}
                for name, (busy, limit) in self.endpoints.items()
            },
            "batches_ended": self.batches_ended,
            "batches": [
                {
                    "id": batch.id,
                    "status": batch.status,
                    "total": batch.total,
                    "completed": batch.completed,
                    "failed": batch.failed,
                    "note": batch.note,
                }
                for batch in self.batches
            ],
            "updated": datetime.now(UTC).isoformat(timespec="seconds"),
            "writer": f"process {os.getpid()} on {socket.gethostname()}",
        }

    def _mark(self) -> _ProgressMark:
        now = _ProgressMark(time.monotonic(), self.calls, self.answered + self.failed)
        if not self._marks:
            self._marks.append(_ProgressMark(self._started, 0, 0))
        if now.clock - self._marks[-1].clock >= _MARK_SECONDS:
            self._marks.append(now)
        while len(self._marks) > 1 and self._marks[1].clock <= now.clock - _ETA_SECONDS:
            self._marks.popleft()
        return now

    def _since(self, now: _ProgressMark, seconds: float) -> _ProgressMark:
        """Give the last mark that is at least so old, or the oldest there is."""
        old_enough = (mark for mark in reversed(self._marks) if mark.clock <= now.clock - seconds)
        return next(old_enough, self._marks[0])


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


def local_gauges(
    cast: Cast, purse: SpendingCap | None, queue: BatchQueue | None = None
) -> Callable[[Progress], None]:
    """Make a function that reads the gauges of this process into `Progress`.

    Args:
        cast: Models by role. Only remote ones have a concurrency limit to show.
        purse: Spending cap that knows the cost. None: no cap.
        queue: Queue of batch jobs. None: calls are made one by one.

    Returns:
        A function for `Progress.look`.
    """
    # A scorer or a scripted model has no limit. Two models at one address have one each.
    endpoints = [model for model in cast.models() if isinstance(model, RemoteModel)]

    def look(progress: Progress) -> None:
        for endpoint in endpoints:
            name = f"{endpoint.name} at {endpoint.where}"
            progress.endpoints[name] = endpoint.limit.in_flight, endpoint.limit.size
        if purse is not None and purse.prices is not None:
            progress.cost = purse.cost - purse.cancelled_cost
            progress.currency = purse.prices.currency
        if queue is not None:
            progress.batches_ended, progress.batches = queue.states()

    return look


@contextlib.asynccontextmanager
async def status_file(folder: Folder, progress: Progress) -> AsyncIterator[None]:
    """Keep `status.json` fresh for those who are not at the terminal."""
    over = asyncio.Event()
    writing = asyncio.create_task(_rewrite(folder, progress, over))
    ours = True
    try:
        yield
    except BaseException as error:
        ours = not isinstance(error, Fenced)  # else the file is of the one that took over
        progress.state = "stopped" if isinstance(error, asyncio.CancelledError) else "failed"
        raise
    else:
        progress.state = "ended" if progress.done >= progress.planned else "stopped"
    finally:
        progress.in_flight = 0
        over.set()  # not cancelled: a write under way in its thread could overtake the last one
        await writing
        if ours:
            await _write(folder, progress)


async def _rewrite(folder: Folder, progress: Progress, over: asyncio.Event) -> None:
    while not over.is_set():
        await _write(folder, progress)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STATUS_SECONDS):
                await over.wait()


async def _write(folder: Folder, progress: Progress) -> None:
    data = orjson.dumps(progress.snapshot(), option=orjson.OPT_INDENT_2)
    with contextlib.suppress(Exception):  # a status that cannot be written must not stop a run
        await asyncio.to_thread(folder.replace, STATUS_FILE, data)
