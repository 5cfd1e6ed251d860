"""Whoever writes a run folder: one process that holds it, or workers of a cluster, a share each.

An opened run has the right to write: it has the lock, the record, the ledger and what is committed.
A `RunWriter` records turns and commits parts in the process that holds the run. A share is a range
of items that one worker does and writes by itself. The worker writes the part files; only the
process that holds the run enters them in the ledger. So a worker that dies, or one that was thought
dead and is not, can spoil nothing: what it wrote counts once, or never. Its journal carries the
share's range in its name, by which the next worker of the share finds what was paid for already.
"""

import asyncio
import contextlib
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict

from evenhand.core import Event, Result, Turn
from evenhand.core.errors import CorruptRun, StoreError
from evenhand.runs.store import journal, ledger, tables
from evenhand.runs.store.folder import Folder, Lock, open_folder
from evenhand.runs.store.journal import Journal, JournalTape, Recovered, Turns
from evenhand.runs.store.ledger import CommittedPart, Positions
from evenhand.runs.store.run_record import RunRecord, refuse_other_run
from evenhand.runs.store.tables import Pending, write_part


class OpenedRun:
    """An opened run is held by one process at a time. `token` tells its files from those of its
    predecessors."""

    def __init__(self, folder: Folder, record: RunRecord, lock: Lock) -> None:
        self.folder = folder
        self._lock = lock
        self.record = _agreed_record(folder, record)
        self._items = record.planned
        self.done = ledger.Positions()
        self.committed = 0
        self.past = 0  # the first position after all that are committed
        slots = 0
        for entry in ledger.entries(folder):
            slots += 1
            if entry.part is not None:
                self._count_in(entry.part)
        # The random word tells two processes of one number apart, as containers have them.
        opened_by = f"process {os.getpid()} ({secrets.token_hex(8)})"
        self._ledger = ledger.LedgerWriter(folder, slots, opened_by)
        self.token = self._ledger.token

    @classmethod
    def open(
        cls, location: str | Path, record: RunRecord, *, steal_lock: bool = False
    ) -> "OpenedRun":
        folder = open_folder(location)
        if folder.exists("run.json"):  # before anything of another run is touched
            _refuse_other_run(folder, record)
        lock = folder.lock(steal_lock=steal_lock)
        try:
            return cls(folder, record, lock)
        except BaseException:
            lock.release()
            raise

    def commit(self, part: ledger.CommittedPart) -> bool:
        """Enter a part. It gives False, and nothing is entered, if one of its items is in already:
        two workers may have done the same share, and the first one counts."""
        if any(self.done.overlaps(start, stop) for start, stop in part.positions):
            return False
        self._ledger.commit(part)
        self._count_in(part)
        return True

    def end(self) -> None:
        """Say that nothing is left to be committed, until somebody opens the run again."""
        self._ledger.end()

    def refuse_if_fenced(self) -> None:
        self._ledger.refuse_if_fenced()

    def is_left(self, position: int) -> bool:
        """Say whether a position is of the plan and not committed yet."""
        return (self._items is None or position < self._items) and position not in self.done

    def release(self) -> None:
        self._lock.release()

    def _count_in(self, part: ledger.CommittedPart) -> None:
        for start, stop in part.positions:
            most = stop if self._items is None else self._items
            if not 0 <= start <= stop <= most:
                raise CorruptRun(
                    f"{self.folder.root}: its ledger has the positions from {start:,} to {stop:,}, "
                    f"and the run has {most:,} items"
                )
            self.done.add_range(start, stop)
            self.committed += stop - start
            self.past = max(self.past, stop)


def _agreed_record(folder: Folder, planned: RunRecord) -> RunRecord:
    """Write `run.json`, or check that the one that is there has the same plan."""
    try:
        folder.create("run.json", planned.to_bytes())
        return planned
    except FileExistsError:
        return _refuse_other_run(folder, planned)


def _refuse_other_run(folder: Folder, planned: RunRecord) -> RunRecord:
    existing = RunRecord.from_bytes(folder.read("run.json"), folder.root)
    refuse_other_run(planned, existing, folder.root)
    return existing


_LOOK_SECONDS = 1.0


class RunWriter:
    """A run writer is the one process that writes a run.

    `done` holds the positions that are committed; `tape` the recorded, paid-for turns of items
    that an earlier process left unfinished.
    """

    def __init__(self, run: OpenedRun) -> None:
        self._run = run
        self._parts = 0
        self._pending = Pending()
        self._open_turns: dict[int, list[bytes]] = {}
        self._unplayed: Turns = {}  # recorded and paid for, so they go into every new journal too
        self._commit: asyncio.Task[None] | None = None
        self._look: asyncio.Future[None] | None = None
        self._looked = time.monotonic()
        self._journal = Journal(run.folder, f"{run.token:08d}")
        try:
            self.tape = self._recover()
        except StoreError:  # all that it holds is in the older ones too, which are still there
            self._journal.close()
            run.folder.remove(self._journal.name)
            raise
        try:
            run.refuse_if_fenced()  # recovery may have taken long
        except StoreError:  # now the older ones are gone, so this one stays
            self._journal.close()
            raise

    @classmethod
    def open(
        cls, location: str | Path, record: RunRecord, *, steal_lock: bool = False
    ) -> "RunWriter":
        run = OpenedRun.open(location, record, steal_lock=steal_lock)
        try:
            return cls(run)
        except BaseException:
            run.release()
            raise

    @classmethod
    @contextlib.asynccontextmanager
    async def holding(
        cls, location: str | Path, record: RunRecord, *, steal_lock: bool = False
    ) -> AsyncIterator["RunWriter"]:
        """Open a run for as long as it is written.

        At the end, also after an error, finished items are committed. If the store cannot be
        written, they stay in the journal.

        Args:
            location: Run folder, as a path or URL.
            record: Record of this run. An existing directory must have the same.
            steal_lock: Take over the lock of another process.

        Yields:
            The writer.

        Raises:
            UserError: The directory holds a run of another plan.
        """
        writer = cls.open(location, record, steal_lock=steal_lock)
        try:
            yield writer
        except StoreError:
            await writer.abandon()
            raise
        except BaseException:
            await writer.close()
            raise
        await writer.close()

    @property
    def folder(self) -> Folder:
        return self._run.folder

    @property
    def done(self) -> Positions:
        return self._run.done

    @property
    def committed(self) -> int:
        return self._run.committed

    def refuse_if_fenced(self) -> None:
        """Raise if another process took the run over. It may take a while."""
        self._run.refuse_if_fenced()

    # -- recording, in the event loop --------------------------------------------------------

    def record_turn(self, turn: Turn) -> None:
        self._look_for_a_newer_writer()
        line = tables.encode(turn)
        self._journal.turn(line)
        self._open_turns.setdefault(turn.position, []).append(line)
        if self._unplayed:
            self._unplayed.get(turn.position, {}).pop((turn.request, turn.occurrence), None)

    def finish(self, event: Event) -> None:
        line = tables.encode(Result.of(event))
        self._journal.result(line)
        self._pending.add(line, self._open_turns.pop(event.position, []))
        self._unplayed.pop(event.position, None)

    # -- recording items that ended elsewhere, in a thread ------------------------------------

    @property
    def past(self) -> int:
        """The first position after all that are taken."""
        return max(self._run.past, 1 + max(self._unplayed, default=-1))

    def add(self, items: Iterable[tuple[Result, Sequence[Turn]]]) -> None:
        """Take finished items with all that was said for them: all of them or none."""
        lines = [
            (tables.encode(result), [tables.encode(turn) for turn in turns])
            for result, turns in items
        ]
        self._journal.items(lines)
        for result, turns in lines:
            self._pending.add(result, turns)

    def sync(self) -> None:
        """Make all that was added so far survive the death of the machine. It may take a while."""
        self._journal.flush()

    @property
    def full(self) -> bool:
        return self._pending.full

    def commit(self) -> None:
        """Commit what is finished, and wait for it."""
        if self._pending.results:
            self._write_part(*self._swap())

    def end(self) -> None:
        """Commit what is finished and say in the ledger that this was all."""
        self.commit()
        self._run.end()

    # -- committing, from the event loop -------------------------------------------------------

    async def commit_if_full(self) -> None:
        """Start a commit when a part is full. Waits only if the one before is still under way."""
        if self._pending.full:
            await self._wait_for_commit()
            self._commit = asyncio.create_task(asyncio.to_thread(self._write_part, *self._swap()))

    async def close(self) -> None:
        """Commit what is finished. What is not stays in the journal for the next process."""
        try:
            await self._wait_for_commit()
            if self._pending.results:
                await asyncio.to_thread(self._write_part, *self._swap())
        finally:
            self.let_go()

    async def abandon(self) -> None:
        """Let go of the folder without writing more than what is being committed just now."""
        with contextlib.suppress(StoreError):
            await self._wait_for_commit()
        self.let_go()

    def let_go(self) -> None:
        """Release the folder. What is not committed stays in the journal for the next writer."""
        self._journal.close()
        self._run.release()

    def _look_for_a_newer_writer(self) -> None:
        """Look now and then, so that a process that was stalled does not go on paying for calls. It
        happens in a thread, because an object store takes its time."""
        if self._look is not None and self._look.done():
            looked, self._look = self._look, None
            looked.result()
        now = time.monotonic()
        if self._look is None and now - self._looked > _LOOK_SECONDS:
            self._looked = now
            loop = asyncio.get_running_loop()
            self._look = loop.run_in_executor(None, self._run.refuse_if_fenced)

    async def _wait_for_commit(self) -> None:
        if self._look is not None:
            look, self._look = self._look, None
            await asyncio.shield(look)
        if self._commit is not None:
            await asyncio.shield(self._commit)  # a thread cannot be cancelled, only waited for
            self._commit = None

    # -- committing, in a thread -------------------------------------------------------------

    def _swap(self) -> tuple[Pending, list[str]]:
        """Set the finished items aside and go on in a new journal."""
        self._run.refuse_if_fenced()
        pending, self._pending = self._pending, Pending()
        unplayed = (turns.values() for turns in self._unplayed.values())
        carried = chain.from_iterable((*unplayed, *self._open_turns.values()))
        return pending, [self._journal.rotate(carried)]

    def _write_part(self, pending: Pending, spent_journals: list[str]) -> None:
        name = f"part-{self._run.token:08d}-{self._parts:06d}"
        self._parts += 1
        self._run.commit(write_part(self._run.folder, name, pending))
        self._forget(spent_journals)

    def _forget(self, spent_journals: list[str]) -> None:
        self._journal.flush()  # first: it holds what was carried over from them
        for name in spent_journals:
            with contextlib.suppress(StoreError):  # one that stays does no harm
                self._run.folder.remove(name)

    # -- resuming ----------------------------------------------------------------------------

    def _recover(self) -> JournalTape:
        """Commit what an earlier process finished; keep the turns of what it did not finish."""
        # A newer journal than ours is of a process that took over.
        recovered = Recovered.read(self._run.folder, lambda name: name < self._journal.name)
        finished, unfinished = recovered.sorted_out(self._run.is_left)
        for turns in unfinished.values():
            for turn in turns.values():
                self._journal.turn(turn)
        if finished.results:
            self._write_part(finished, recovered.files)
        else:
            self._run.refuse_if_fenced()
            self._forget(recovered.files)
        self._unplayed = {position: dict(turns) for position, turns in unfinished.items()}
        return JournalTape(unfinished)


_RANGE = re.compile(r"-s(\d{12})-(\d{12})-")


class Receipt(BaseModel):
    """A receipt is what a worker hands in for a share: the part it wrote, if it finished
    anything."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    part: CommittedPart | None
    journals: tuple[str, ...]  # that hold nothing beyond this share


class ShareWriter:
    """A share writer writes one share. `finished` items need no more work; `tape` holds recorded
    turns that are paid for already."""

    def __init__(
        self,
        folder: Folder,
        token: int,
        first: int,
        stop: int,
        positions: Collection[int] | None = None,
    ) -> None:
        self._folder = folder
        self._name = _stem(token, first, stop)
        recovered = Recovered.read(folder, lambda name: _overlaps(_range(name), first, stop))
        self._recovered = tuple(
            name for name in recovered.files if _within(_range(name), first, stop)
        )
        positions = positions or range(first, stop)
        # A journal may hold more: items that a share handed in half done has committed.
        self._pending, unfinished = recovered.sorted_out(positions.__contains__)
        self.finished = frozenset(orjson.loads(line)["position"] for line in self._pending.results)
        self.tape = JournalTape(unfinished)
        self._open_turns: dict[int, list[bytes]] = {}
        self._journal = Journal(folder, self._name)

    def record_turn(self, turn: Turn) -> None:
        line = tables.encode(turn)
        self._journal.turn(line)
        self._open_turns.setdefault(turn.position, []).append(line)

    def finish(self, event: Event) -> None:
        line = tables.encode(Result.of(event))
        self._journal.result(line)
        self._pending.add(line, self._open_turns.pop(event.position, []))

    def seal(self) -> Receipt:
        """Write the part. Until it is in the ledger the journal stays."""
        self._journal.close()
        part = None
        if self._pending.results:
            part = write_part(self._folder, f"part-{self._name}", self._pending)
        return Receipt(part=part, journals=(*self._recovered, self._journal.name))

    def close(self) -> None:
        """End without a part; the journal has what there is."""
        self._journal.close()


def adopt_journals(run: OpenedRun) -> None:
    """Make what a run in one process left behind findable by share: the finished items are entered,
    the turns of the others go to a journal with a range in its name."""
    recovered = Recovered.read(run.folder, lambda name: _range(name) is None)
    finished, unfinished = recovered.sorted_out(run.is_left)
    if finished.results:
        run.commit(write_part(run.folder, f"part-{run.token:08d}-adopted", finished))
    if unfinished:
        first, stop = min(unfinished), max(unfinished) + 1
        adopted = Journal(run.folder, _stem(run.token, first, stop))
        for turns in unfinished.values():
            for turn in turns.values():
                adopted.turn(turn)
        adopted.flush()  # before those are removed that it is made from
        adopted.close()
    run.refuse_if_fenced()
    for name in recovered.files:
        run.folder.remove(name)


def commit(run: OpenedRun, receipt: Receipt) -> bool:
    """Enter a worker's part and remove the journals that it makes superfluous. False if another
    worker had handed in the share before."""
    counted = receipt.part is not None and run.commit(receipt.part)
    for name in receipt.journals:
        span = _range(name)
        if span and not any(run.done.missing(*span)):
            run.folder.remove(name)
    return counted


def remove_journals(run: OpenedRun) -> None:
    """When every item is committed, no journal is needed any more."""
    run.refuse_if_fenced()
    for name in journal.names(run.folder):
        run.folder.remove(name)


def _stem(token: int, first: int, stop: int) -> str:
    return f"{token:08d}-s{first:012d}-{stop:012d}-{secrets.token_hex(4)}"


def _range(name: str) -> tuple[int, int] | None:
    match = _RANGE.search(name)
    return (int(match[1]), int(match[2])) if match else None


def _overlaps(span: tuple[int, int] | None, first: int, stop: int) -> bool:
    return span is not None and span[0] < stop and first < span[1]


def _within(span: tuple[int, int] | None, first: int, stop: int) -> bool:
    return span is not None and first <= span[0] and span[1] <= stop
