"""Every exchange is written to a run folder, in parallel to the answer or before it if required.

`FOLDER/2026-11-16/TENANT/` (with several replicas `…/TENANT/REPLICA/`) is a run like any other:
`runs show`, `report` and `train pairs from-run` read it. What could not be written is counted by
its action; nothing is lost without a number.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from evenhand.core.errors import EvenhandError, RunLocked, UserError
from evenhand.gateway.recorded import rows
from evenhand.gateway.traffic import (
    Traffic,
    TrafficRecording,
    as_text,
    day_of,
    end_if_open,
    place_of,
    runs_of,
)
from evenhand.gateway.verdicts import BROKEN_OFF, NOT_RECORDED, Action, Exchange

_R = TypeVar("_R")
WAITING = 4096  # our choice, in exchanges: a disk may pause for seconds at a thousand a second
SHORTEST_KEY = 16  # our choice, in bytes: a hash with a shorter key could be guessed after all
_AT_ONCE = 256  # our choice: exchanges that are written in one go
_TICK_SECONDS = 1.0  # our choice: how often an idle writer looks at the clock
_ADOPT_SECONDS = 60.0  # our choice: how often it looks for journals that nobody writes any more
_LATE_SECONDS = 600.0  # our choice: so long after midnight an exchange of the day before may come
_DAYS_BACK = 7  # our choice: a gateway that was away for longer leaves older folders as they are
_LONGEST_WAIT = 30.0  # our choice, in seconds: between two attempts at a disk that refuses
PATIENCE = 5.0  # our choice, in seconds: a disk that has not written for so long hangs


class EvidenceLost(EvenhandError):
    """This exchange will not be on record, and the policy asks that none goes out without one."""

    reason = "evidence_lost"


@dataclass(slots=True, eq=False)
class _PendingExchange:
    """An exchange that is not on disk yet."""

    exchange: Exchange
    rule: TrafficRecording | None = None  # None: that of its tenant at the start
    on_disk: asyncio.Future[None] | None = None  # its answer waits for this
    held_back: str = ""  # why its answer was not sent, where the exchange does not say so


@dataclass(slots=True)
class _FlushResult:
    """What came of one look at the folders."""

    done: int = 0  # exchanges that wait no more
    refused: set[int] = field(default_factory=set)  # of those, the ones that no row can hold
    safe: bool = True  # whether what was written survives the death of the machine, if required
    problem: str = ""


class EvidenceWriter:
    """The writer of the run folders of a gateway.

    `record` never waits: a task writes behind it. While a folder cannot be written, exchanges wait
    in memory, up to `waiting`, and are written when it can be again; until then `healthy` is False.

    With `require_evidence`, an answer that goes out awaits `written` first: it returns when the
    exchange is in a journal that was synced, and raises when it is not within `patience` seconds.
    The exchange is then recorded as held back.
    """

    def __init__(  # noqa: PLR0913 - it has as many settings as it has
        self,
        folder: str | Path,
        kept: Mapping[str, TrafficRecording],
        *,
        key: bytes = b"",
        replica: str = "",
        redact: Callable[[str], str] = str,
        require_evidence: bool = False,
        waiting: int = WAITING,
        retry_seconds: float = 0.5,
        patience: float = PATIENCE,
        adopted: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if len(key) < SHORTEST_KEY and any(rule.content == "hashed" for rule in kept.values()):
            raise UserError(f"hashed content needs a key of {SHORTEST_KEY} bytes or more")
        self._folder, self._kept, self._replica = as_text(folder), dict(kept), replica
        self._key, self._redact, self._require = key, redact, require_evidence
        self._most, self._retry_seconds, self._clock = waiting, retry_seconds, clock
        self._patience, self._adopted = patience, adopted
        self._ended: set[str] = set()  # run folders of days before
        self._looked: float | None = None  # when it looked for journals that others left
        self._waiting: deque[_PendingExchange] = deque()
        self._batch: list[_PendingExchange] = []  # of those, the ones that are being written
        self._began: float | None = None  # when they began to be
        self._folders: dict[tuple[str, str, str], Traffic] = {}  # by day, tenant and policy
        self._woken, self._closing, self._settled = (asyncio.Event() for _ in range(3))
        self._settled.set()
        self._failures = 0
        self._thread = ThreadPoolExecutor(1, "evidence")
        self._task: asyncio.Task[None] | None = None
        self._well, self._problem = True, ""
        self.lost: dict[Action, int] = dict.fromkeys(Action, 0)

    @property
    def healthy(self) -> bool:
        """Whether it can write just now."""
        return self._well and not self._hangs

    @property
    def problem(self) -> str:
        """Why it is not healthy, or was not last; never a text of an exchange."""
        if self._hangs:
            return f"a write has not ended within {self._patience:g} s"
        return self._problem

    @property
    def _hangs(self) -> bool:
        return self._began is not None and time.monotonic() - self._began > self._patience

    async def start(self) -> None:
        """Commit what other processes left in journals, and begin to write."""
        await self._in_thread(self._adopt, self._clock())
        self._task = asyncio.create_task(self._write_on())

    def record(self, exchange: Exchange, rule: TrafficRecording | None = None) -> None:
        """Queue an exchange to be written. If the queue is full, it is counted as lost.

        Args:
            exchange: The exchange.
            rule: What is kept of it. Default: what was said of its tenant at the start.
        """
        self._take(_PendingExchange(exchange, rule))

    async def written(self, exchange: Exchange, rule: TrafficRecording | None = None) -> None:
        """Take an exchange, and wait until it is on disk.

        Args:
            exchange: The exchange.
            rule: What is kept of it. Default: what was said of its tenant at the start.

        Raises:
            EvidenceLost: It is not, or cannot be known to be. It is recorded as held back.
        """
        if not self.healthy:
            self.record(_held_back(exchange, NOT_RECORDED), rule)
            raise EvidenceLost(self.problem)
        waiting = _PendingExchange(exchange, rule, asyncio.get_running_loop().create_future())
        if not self._take(waiting):
            raise EvidenceLost(self.problem or "the gateway is stopping")
        assert waiting.on_disk is not None
        try:
            async with asyncio.timeout(self._patience):
                await waiting.on_disk
        except asyncio.CancelledError:
            self._hold_back(waiting, BROKEN_OFF)
            raise
        except TimeoutError:
            self._hold_back(waiting, NOT_RECORDED)
            raise EvidenceLost(f"it was not written within {self._patience:g} s") from None

    def _take(self, waiting: _PendingExchange) -> bool:
        full = len(self._waiting) >= self._most
        if full:
            self._well, self._problem = False, f"{self._most:,} exchanges wait to be written"
        if full or self._closing.is_set():
            self._lose(waiting)
            return False
        self._waiting.append(waiting)
        if not self._failures:
            self._settled.clear()
        self._woken.set()
        return True

    def _lose(self, waiting: _PendingExchange) -> None:
        """Count an exchange by what its client saw: one that waits for the disk gets no answer."""
        action = waiting.exchange.action if waiting.on_disk is None else Action.BLOCKED
        self.lost[action] += 1

    def _hold_back(self, waiting: _PendingExchange, reason: str) -> None:
        """Say of an exchange that its answer was not sent: in its own rows, or where these may be
        on disk already, in one more."""
        if waiting in self._waiting and waiting not in self._batch:
            waiting.exchange = _held_back(waiting.exchange, reason)
        elif waiting in self._batch:
            waiting.held_back = reason
        else:  # it is on disk
            self.record(_held_back_after_all(waiting.exchange, reason), waiting.rule)

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
            row.exchange: row.action
            for traffic in self._folders.values()
            for row in traffic.uncommitted
        }
        for action in left.values():
            self.lost[action] += 1
        for waiting in self._waiting:
            self._lose(waiting)
        self._waiting.clear()
        self._settled.set()
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[..., _R], *args: Any) -> _R:
        """Work in a thread that nobody else uses: a screen that is slow holds no record up."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    # -- the task ------------------------------------------------------------------------------

    async def _write_on(self) -> None:
        while True:
            stopping = self._closing.is_set()
            self._woken.clear()
            self._batch = [self._waiting[n] for n in range(min(_AT_ONCE, len(self._waiting)))]
            self._began = time.monotonic()
            exchanges = [(waiting.exchange, waiting.rule) for waiting in self._batch]
            written = await self._in_thread(self._write, exchanges, self._clock())
            batch, self._batch, self._began = self._batch, [], None
            self._note(batch, written)
            if stopping and (written.problem or not self._waiting):
                return
            await self._rest()

    def _note(self, batch: list[_PendingExchange], written: _FlushResult) -> None:
        for _ in range(written.done):
            self._waiting.popleft()
        for number, waiting in enumerate(batch):
            recorded = number < written.done and number not in written.refused
            if number in written.refused:
                self._lose(waiting)
            self._answer(
                waiting, recorded=recorded, safe=recorded and written.safe, problem=written.problem
            )
        self._failures = self._failures + 1 if written.problem else 0
        self._well = not written.problem
        self._problem = written.problem or self._problem
        if written.problem or not self._waiting:
            self._settled.set()

    def _answer(
        self, waiting: _PendingExchange, *, recorded: bool, safe: bool, problem: str
    ) -> None:
        """Let the answer of an exchange go out, or hold it back and say so in the record."""
        future = waiting.on_disk
        if future is None:
            return
        if not future.done():
            if safe:
                future.set_result(None)
            else:
                waiting.held_back = NOT_RECORDED
                future.set_exception(EvidenceLost(problem or "no row could be made of it"))
        if not waiting.held_back:
            return
        if recorded:  # also where nothing else is taken any more
            more = _held_back_after_all(waiting.exchange, waiting.held_back)
            self._waiting.append(_PendingExchange(more, waiting.rule))
        else:
            waiting.exchange = _held_back(waiting.exchange, waiting.held_back)
        waiting.held_back = ""

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

    def _write(
        self, batch: list[tuple[Exchange, TrafficRecording | None]], now: float
    ) -> _FlushResult:
        """Write exchanges to their folders, commit what is due, end what is of days before."""
        written, touched = _FlushResult(), []
        for number, (exchange, current) in enumerate(batch):
            try:
                rule = current or self._kept[exchange.tenant]
                traffic = self._traffic(day_of(exchange.at), exchange.tenant, rule)
                new = rows(exchange, rule.content, self._key, self._redact)
            except Exception as error:  # whatever it is, the exchanges behind it are written
                written.refused.add(number)
                self._problem = f"an exchange could not be made a row: {type(error).__name__}"
                written.done += 1
                continue
            try:
                traffic.add(new, now)
            except Exception as error:
                written.problem = _said(error)
                break
            touched.append(traffic)
            written.done += 1
        for traffic in dict.fromkeys(touched) if self._require else ():
            try:
                traffic.sync()
            except Exception as error:
                written.safe, written.problem = False, _said(error)
        for traffic in self._folders.values():
            try:
                traffic.commit_if_due(now)
            except Exception as error:
                written.problem = _said(error)
        written.problem = self._end(now) or written.problem
        self._adopt_if_due(now)
        return written

    def _traffic(self, day: str, tenant: str, rule: TrafficRecording) -> Traffic:
        there = self._folders.get((day, tenant, rule.policy))
        if there is None:
            there = Traffic.of(self._folder, day, tenant, self._replica, rule)
            self._folders[day, tenant, rule.policy] = there
        return there

    def _end(self, now: float | None) -> str:
        """End the folders of days before, or all; give what went wrong."""
        problem = ""
        today = None if now is None else day_of(now - _LATE_SECONDS)
        for key, traffic in list(self._folders.items()):
            if today is None or key[0] < today:
                try:
                    traffic.end()
                    del self._folders[key]
                except Exception as error:
                    problem = _said(error)
        return problem

    def _adopt_if_due(self, now: float) -> None:
        if self._looked is None or not 0 <= now - self._looked < _ADOPT_SECONDS:
            self._adopt(now)

    def _adopt(self, now: float) -> None:
        """Commit the journals of processes that died. The lock of a run folder is the lease: one
        that is alive holds it, and of two that adopt one gets it."""
        self._looked = now
        today = day_of(now)
        for day in (day_of(now - back * 86_400) for back in range(_DAYS_BACK + 1)):
            for path in runs_of(self._folder, day, self._kept, self._replica):
                if path in self._ended:
                    continue
                try:
                    if end_if_open(path):
                        self._adopted(path)
                except RunLocked:
                    continue
                except Exception as error:  # what is there stays there
                    self._problem = _said(error)
                    continue
                if day < today:
                    self._ended.add(path)


def _held_back(exchange: Exchange, reason: str) -> Exchange:
    """The exchange as its client saw it: nothing of the answer was sent."""
    verdicts = tuple(
        replace(verdict, action=Action.BLOCKED, reason=reason, text="")
        for verdict in exchange.verdicts
    )
    return replace(exchange, verdicts=verdicts, action=Action.BLOCKED, reason=reason)


def _held_back_after_all(exchange: Exchange, reason: str) -> Exchange:
    """An additional row for an exchange that was recorded though its answer was not sent."""
    return replace(_held_back(exchange, reason), id=f"{exchange.id}-held", verdicts=())


def _said(error: Exception) -> str:
    """What went wrong. An error that is not ours may quote what could not be written."""
    return str(error) if isinstance(error, EvenhandError) else type(error).__name__
