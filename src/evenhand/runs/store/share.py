"""A share is a range of a run's items that one worker of a cluster does and writes by itself.

The worker writes the part files; only the process that holds the run enters them in the ledger. So
a worker that dies, or one that was thought dead and is not, can spoil nothing: what it wrote counts
once, or never. Its journal carries the share's range in its name, by which whoever gets the share
next finds what was paid for already.
"""

import re
import secrets
from collections.abc import Collection

import orjson
from pydantic import BaseModel, ConfigDict

from evenhand.core import Event, Result, Turn
from evenhand.runs.store import journal, tables
from evenhand.runs.store.folder import Folder
from evenhand.runs.store.journal import Journal, JournalTape, Recovered
from evenhand.runs.store.ledger import CommittedPart
from evenhand.runs.store.opened import OpenedRun
from evenhand.runs.store.parts import write_part

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
