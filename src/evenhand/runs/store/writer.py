"""A writer writes a run folder from one process: it opens or resumes it, records turns, commits
parts."""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from evenhand.core import Event, Result, Turn
from evenhand.core.errors import StoreError
from evenhand.runs.store import tables
from evenhand.runs.store.folder import Folder
from evenhand.runs.store.journal import Journal, JournalTape, Recovered, Turns
from evenhand.runs.store.ledger import Positions
from evenhand.runs.store.opened import OpenedRun
from evenhand.runs.store.parts import Pending, write_part
from evenhand.runs.store.run_record import RunRecord

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
        for journal in spent_journals:
            with contextlib.suppress(StoreError):  # one that stays does no harm
                self._run.folder.remove(journal)

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
