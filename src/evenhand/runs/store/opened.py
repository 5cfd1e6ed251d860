"""An opened run has the right to write a run folder: its lock, its record, its ledger, and what is
committed."""

import os
import secrets
from pathlib import Path

from evenhand.core.errors import CorruptRun
from evenhand.runs.store import ledger
from evenhand.runs.store.folder import Folder, Lock, open_folder
from evenhand.runs.store.run_record import RunRecord, refuse_other_run


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
