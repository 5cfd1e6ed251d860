"""Writes a run folder: opens or resumes it, records turns, commits parts."""

import asyncio
import contextlib
import hashlib
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from evenhand.domain import Event, Result, Turn
from evenhand.errors import CorruptRun, StoreError
from evenhand.store import ledger, tables
from evenhand.store.folder import Folder
from evenhand.store.journal import Journal, JournalTape, Recovered
from evenhand.store.run_record import RunRecord, refuse_other_run

PART_ITEMS = 4096
PART_BYTES = 16 * 1024 * 1024
_FENCE_CHECK_SECONDS = 1.0


@dataclass(slots=True)
class _Pending:
    """Finished items of the part to come, as journal lines."""

    results: list[bytes] = field(default_factory=list)
    turns: list[bytes] = field(default_factory=list)
    bytes: int = 0

    @property
    def full(self) -> bool:
        return len(self.results) >= PART_ITEMS or self.bytes >= PART_BYTES


class RunWriter:
    """The one process that writes a run.

    `done` holds the positions that are committed; `tape` the paid-for turns of items that an
    earlier process left unfinished.
    """

    def __init__(self, folder: Folder, record: RunRecord, lock: int) -> None:
        self._folder = folder
        self._lock: int | None = lock
        self.record = _agreed_record(folder, record)
        self.done = ledger.Positions()
        self.committed = 0
        slots = 0
        for entry in ledger.entries(folder):
            slots += 1
            if entry.part is not None:
                self._count_in(entry.part)
        self._ledger = ledger.LedgerWriter(folder, slots, f"process {os.getpid()}")
        self._parts = 0
        self._pending = _Pending()
        self._open_turns: dict[int, list[bytes]] = {}
        self._commit: asyncio.Task[None] | None = None
        self._fence_checked = time.monotonic()
        self._journal = Journal(folder, self._ledger.token)
        try:
            self.tape = self._recover()
        except StoreError:  # all that it holds is in the older ones too, which are still there
            self._journal.close()
            folder.remove(self._journal.name)
            raise

    @classmethod
    def open(cls, path: Path, record: RunRecord, *, take_over: bool = False) -> "RunWriter":
        folder = Folder(path)
        lock = folder.lock(take_over=take_over)
        try:
            return cls(folder, record, lock)
        except BaseException:
            os.close(lock)
            raise

    # -- recording, in the event loop --------------------------------------------------------

    def record_turn(self, turn: Turn) -> None:
        self._look_for_a_newer_writer()
        line = tables.encode(turn)
        self._journal.turn(line)
        self._open_turns.setdefault(turn.position, []).append(line)

    def finish(self, event: Event) -> None:
        line = tables.encode(Result.of(event))
        self._journal.result(line)
        turns = self._open_turns.pop(event.position, [])
        self._pending.results.append(line)
        self._pending.turns.extend(turns)
        self._pending.bytes += len(line) + sum(map(len, turns))

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
            self._let_go()

    async def abandon(self) -> None:
        """Let go of the folder without writing more than what is being committed just now."""
        with contextlib.suppress(StoreError):
            await self._wait_for_commit()
        self._let_go()

    def _let_go(self) -> None:
        self._journal.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _look_for_a_newer_writer(self) -> None:
        """Now and then, so that a process that was stalled does not go on paying for calls."""
        now = time.monotonic()
        if now - self._fence_checked > _FENCE_CHECK_SECONDS:
            self._fence_checked = now
            self._ledger.refuse_if_fenced()

    async def _wait_for_commit(self) -> None:
        if self._commit is not None:
            await asyncio.shield(self._commit)  # a thread cannot be cancelled, only waited for
            self._commit = None

    # -- committing, in a thread -------------------------------------------------------------

    def _swap(self) -> tuple[_Pending, list[str]]:
        """Set the finished items aside and go on in a new journal."""
        self._ledger.refuse_if_fenced()
        pending, self._pending = self._pending, _Pending()
        carried = (line for lines in self._open_turns.values() for line in lines)
        return pending, [self._journal.rotate(carried)]

    def _write_part(self, pending: _Pending, spent_journals: list[str]) -> None:
        name = f"part-{self._ledger.token:08d}-{self._parts:06d}.parquet"
        self._parts += 1
        turns_file, _ = self._write(f"turns/{name}", pending.turns, tables.TURNS)
        try:
            results_file, results = self._write(f"results/{name}", pending.results, tables.RESULTS)
        except StoreError:  # a full disk should not be fuller after each attempt
            self._folder.remove(turns_file.name)
            raise
        part = _part(results_file, turns_file, results)
        self._ledger.commit(part)
        self._count_in(part)
        for journal in spent_journals:
            self._folder.remove(journal)

    def _write(
        self, name: str, lines: list[bytes], schema: pa.Schema
    ) -> tuple[ledger.File, pa.Table]:
        data, table = tables.to_parquet(lines, schema)
        self._folder.create(name, data)
        sha256 = hashlib.sha256(data).hexdigest()
        return ledger.File(name=name, sha256=sha256, bytes=len(data), rows=len(table)), table

    def _count_in(self, part: ledger.Part) -> None:
        for start, stop in part.positions:
            self.done.add_range(start, stop)
            self.committed += stop - start

    # -- resuming ----------------------------------------------------------------------------

    def _recover(self) -> JournalTape:
        """Commit what an earlier process finished; keep the turns of what it did not finish."""
        found = Recovered.read(self._folder, before=self._journal.name)
        finished = _Pending()
        unfinished: dict[int, dict[tuple[str, int], bytes]] = {}
        for position in sorted(found.positions()):
            turns = found.turns.get(position, {})
            # Where a line was damaged, a turn may be missing that nothing else tells of.
            line = found.finished(position) if not found.damaged else None
            if position in self.done:
                continue
            if line is not None:
                finished.results.append(line)
                finished.turns.extend(turns.values())
            else:
                unfinished[position] = turns
                for turn in turns.values():
                    self._journal.turn(turn)
        if finished.results:
            self._write_part(finished, found.files)
        else:
            self._ledger.refuse_if_fenced()
            for name in found.files:
                self._folder.remove(name)
        return JournalTape(unfinished)


def _agreed_record(folder: Folder, planned: RunRecord) -> RunRecord:
    """Write `run.json`, or check that the one there is of the same plan."""
    try:
        folder.create("run.json", planned.to_bytes())
        return planned
    except FileExistsError:
        found = RunRecord.from_bytes(folder.read("run.json"), folder.root)
        refuse_other_run(planned, found, folder.root)
        return found


def _part(results_file: ledger.File, turns_file: ledger.File, results: pa.Table) -> ledger.Part:
    positions = results.column("position").to_pylist()
    if len(set(positions)) != len(positions):
        raise CorruptRun(f"{results_file.name} would hold an item twice")
    reasons = Counter(reason for reason in results.column("reason").to_pylist() if reason)
    prompt_tokens = results.column("prompt_tokens")
    return ledger.Part(
        results=results_file,
        turns=turns_file,
        positions=ledger.ranges(positions),
        answered=len(positions) - sum(reasons.values()),
        failed=dict(sorted(reasons.items())),
        changed=sum(1 for changed in results.column("changed").to_pylist() if changed),
        calls=_total(results.column("calls")),
        prompt_tokens=_total(prompt_tokens),
        completion_tokens=_total(results.column("completion_tokens")),
        tokens_unknown=prompt_tokens.null_count,
    )


def _total(column: pa.ChunkedArray) -> int:
    return sum(value for value in column.to_pylist() if value is not None)
