"""Every exchange is written to a run folder, beside the answers and never in their way.

`FOLDER/2026-11-16/TENANT/` (with several replicas `…/TENANT/REPLICA/`) is a run like any other:
`evenhand runs show`, `report` and `pairs from-run` read it. What could not be written is counted by
its action; nothing is lost without a number.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from evenhand.errors import EvenhandError, UserError
from evenhand.gateway.recorded import rows
from evenhand.gateway.traffic import Kept, Traffic, as_text, day_of, end_if_open, place_of
from evenhand.gateway.verdicts import Action, Exchange

_R = TypeVar("_R")
WAITING = 4096  # our choice, in exchanges: a disk may pause for seconds at a thousand a second
SHORTEST_KEY = 16  # our choice, in bytes: a hash with a shorter key could be guessed after all
_AT_ONCE = 256  # our choice: exchanges that are written in one go
_TICK_SECONDS = 1.0  # our choice: how often an idle writer looks at the clock
_LATE_SECONDS = 600.0  # our choice: so long after midnight an exchange of before may still come
_DAYS_BACK = 7  # our choice: a gateway that was away for longer leaves older folders as they are
_LONGEST_WAIT = 30.0  # our choice, in seconds: between two attempts at a disk that refuses


class EvidenceLost(EvenhandError):
    """This exchange will not be on record, and the policy asks that none goes out without one."""

    reason = "evidence_lost"


@dataclass(slots=True)
class _Written:
    """What came of one look at the folders."""

    done: int = 0  # exchanges that wait no more
    refused: list[Action] = field(default_factory=list)  # of those, the ones that no row can hold
    problem: str = ""


class Evidence:
    """The writer of the run folders of a gateway.

    `record` never waits: a task writes behind it. While a folder cannot be written, exchanges wait
    in memory, up to `waiting`, and are written when it can be again; until then `healthy` is False.
    With `require_evidence`, `record` raises in that time, and then the exchange is not kept.
    """

    def __init__(  # noqa: PLR0913 - it has as many settings as it has
        self,
        folder: str | Path,
        kept: Mapping[str, Kept],
        *,
        key: bytes = b"",
        replica: str = "",
        redact: Callable[[str], str] = str,
        require_evidence: bool = False,
        waiting: int = WAITING,
        retry_seconds: float = 0.5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if len(key) < SHORTEST_KEY and any(one.content == "hashed" for one in kept.values()):
            raise UserError(f"hashed content needs a key of {SHORTEST_KEY} bytes or more")
        self._folder, self._kept, self._replica = as_text(folder), dict(kept), replica
        self._key, self._redact, self._require = key, redact, require_evidence
        self._most, self._retry_seconds, self._clock = waiting, retry_seconds, clock
        self._waiting: deque[Exchange] = deque()
        self._folders: dict[tuple[str, str], Traffic] = {}
        self._woken, self._closing, self._settled = (asyncio.Event() for _ in range(3))
        self._settled.set()
        self._failures = 0
        self._thread = ThreadPoolExecutor(1, "evidence")
        self._task: asyncio.Task[None] | None = None
        self.lost: dict[Action, int] = dict.fromkeys(Action, 0)
        self.healthy = True
        self.problem = ""  # why it is not healthy, or was not last; never a text of an exchange

    async def start(self) -> None:
        """Commit what earlier processes left in journals, and begin to write."""
        await self._in_thread(self._end_old_ones)
        self._task = asyncio.create_task(self._write_on())

    def record(self, exchange: Exchange) -> None:
        """Take an exchange to be written. Raises `EvidenceLost` if none may go out without."""
        full = len(self._waiting) >= self._most
        if full:
            self.healthy, self.problem = False, f"{self._most:,} exchanges wait to be written"
        stopped = self._closing.is_set()
        if full or stopped or (self._require and not self.healthy):
            self.lost[exchange.action] += 1
            if self._require:
                raise EvidenceLost(self.problem or "the gateway is stopping")
            return
        self._waiting.append(exchange)
        if not self._failures:
            self._settled.clear()
        self._woken.set()

    def place(self, exchange: Exchange) -> str:
        """The folder that the exchange is written to, or after a change of policy the one with a
        number behind it."""
        return place_of(self._folder, day_of(exchange.at), exchange.tenant, self._replica)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def flush(self) -> None:
        """Wait until all that came so far is in a journal, or cannot be written just now."""
        await self._settled.wait()

    async def close(self) -> None:
        """Write what waits and end the folders. What then is not committed is lost, and counted;
        the next process may still find it in a journal."""
        self._closing.set()
        self._woken.set()
        if self._task is not None:
            await self._task
        await self._in_thread(self._end, None)
        # By exchange: one with two texts is lost once.
        left = {
            row.exchange: row.action for one in self._folders.values() for row in one.uncommitted
        }
        for action in (*left.values(), *(one.action for one in self._waiting)):
            self.lost[action] += 1
        self._waiting.clear()
        self._settled.set()
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[..., _R], *given: Any) -> _R:
        """Work in a thread that nobody else uses: a screen that is slow holds no record up."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)

    # -- the task ------------------------------------------------------------------------------

    async def _write_on(self) -> None:
        while True:
            stopping = self._closing.is_set()
            self._woken.clear()
            batch = [self._waiting[n] for n in range(min(_AT_ONCE, len(self._waiting)))]
            written = await self._in_thread(self._write, batch, self._clock())
            self._note(written)
            if stopping and (written.problem or not self._waiting):
                return
            await self._rest()

    def _note(self, written: _Written) -> None:
        for _ in range(written.done):
            self._waiting.popleft()
        for action in written.refused:
            self.lost[action] += 1
        self._failures = self._failures + 1 if written.problem else 0
        self.healthy = not written.problem
        self.problem = written.problem or self.problem
        if written.problem or not self._waiting:
            self._settled.set()

    async def _rest(self) -> None:
        """Wait for more to write; after a failure for a while that doubles."""
        awaited = self._closing if self._failures else self._woken
        seconds = _TICK_SECONDS
        if self._failures:
            seconds = min(_LONGEST_WAIT, self._retry_seconds * 2 ** min(self._failures - 1, 10))
        elif self._waiting:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(awaited.wait(), seconds)

    # -- in a thread ---------------------------------------------------------------------------

    def _write(self, batch: list[Exchange], now: float) -> _Written:
        """Write exchanges to their folders, commit what is due, end what is of days before."""
        found = _Written()
        for exchange in batch:
            try:
                kept = self._kept[exchange.tenant]
                traffic = self._traffic(day_of(exchange.at), exchange.tenant, kept)
                new = rows(exchange, kept.content, self._key, self._redact)
            except Exception as error:  # whatever it is, the exchanges behind it are written
                found.refused.append(exchange.action)
                self.problem = f"an exchange could not be made a row: {type(error).__name__}"
                found.done += 1
                continue
            try:
                traffic.add(new, now)
            except Exception as error:
                found.problem = _said(error)
                break
            found.done += 1
        for traffic in self._folders.values():
            try:
                traffic.commit_if_due(now)
            except Exception as error:
                found.problem = _said(error)
        return _Written(found.done, found.refused, self._end(now) or found.problem)

    def _traffic(self, day: str, tenant: str, kept: Kept) -> Traffic:
        there = self._folders.get((day, tenant))
        if there is None:
            there = Traffic.of(self._folder, day, tenant, self._replica, kept)
            self._folders[day, tenant] = there
        return there

    def _end(self, now: float | None) -> str:
        """End the folders of days before, or all; give what went wrong."""
        problem = ""
        today = None if now is None else day_of(now - _LATE_SECONDS)
        for (day, tenant), traffic in list(self._folders.items()):
            if today is None or day < today:
                try:
                    traffic.end()
                    del self._folders[day, tenant]
                except Exception as error:
                    problem = _said(error)
        return problem

    def _end_old_ones(self) -> None:
        now = self._clock()
        for back in range(_DAYS_BACK + 1):
            for tenant in self._kept:
                place = place_of(self._folder, day_of(now - back * 86_400), tenant, self._replica)
                try:
                    end_if_open(place)
                except Exception as error:  # what is there stays there
                    self.problem = _said(error)


def _said(error: Exception) -> str:
    """What went wrong. An error that is not ours may quote what could not be written."""
    return str(error) if isinstance(error, EvenhandError) else type(error).__name__
