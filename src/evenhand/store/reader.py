"""Reads a run folder. Bytes that do not match their checksum are refused, never half loaded."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evenhand.domain import Turn
from evenhand.errors import CorruptRun, UserError
from evenhand.store import ledger, tables
from evenhand.store.folder import Folder
from evenhand.store.run_record import RunRecord


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the ledger."""

    answered: int
    failed: dict[str, int]
    changed: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    tokens_unknown: int

    @property
    def items(self) -> int:
        return self.answered + sum(self.failed.values())


class RunReader:
    """A committed run, or the committed part of one that is under way.

    >>> run = RunReader(Path("runs/first"))
    >>> run.results().filter(pl.col("changed")).collect()
    """

    def __init__(self, path: Path) -> None:
        self._folder = Folder(path)
        self.path = path
        if not self._folder.exists("run.json"):
            raise UserError(f"{path} is not a run folder: it has no run.json")
        self.record = RunRecord.from_bytes(self._folder.read("run.json"), path)
        next(ledger.entries(self._folder), None)  # the first one vouches for run.json

    def totals(self) -> Totals:
        failed: Counter[str] = Counter()
        sums: Counter[str] = Counter()
        names = ("answered", "changed", "calls", "prompt_tokens", "completion_tokens")
        for part in ledger.parts(self._folder):
            failed.update(part.failed)
            for name in (*names, "tokens_unknown"):
                sums[name] += getattr(part, name)
        return Totals(
            failed=dict(sorted(failed.items())),
            tokens_unknown=sums["tokens_unknown"],
            **{name: sums[name] for name in names},
        )

    def results(self) -> pl.LazyFrame:
        """One row per item, in plan order."""
        return self._scan("results").sort("position")

    def turns(self) -> pl.LazyFrame:
        """One row per call, in plan order."""
        return self._scan("turns").sort("position", "index")

    def verify(self) -> int:
        """Check every committed byte; gives the number of parts."""
        count = 0
        for part in ledger.parts(self._folder):
            for file in (part.results, part.turns):
                self.read_checked(file)
            count += 1
        return count

    def turn_batches(self) -> Iterator[Iterator[Turn]]:
        """The turns, one batch per committed part."""
        for part in ledger.parts(self._folder):
            yield tables.turns_of(self.read_checked(part.turns))

    def read_checked(self, file: ledger.File) -> bytes:
        try:
            data = self._folder.read(file.name)
        except FileNotFoundError:
            raise CorruptRun(f"{self.path / file.name} is missing") from None
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise CorruptRun(
                f"{self.path / file.name} does not match its checksum: restore it from a copy, "
                "or run again into a new folder"
            )
        return data

    def _scan(self, kind: str) -> pl.LazyFrame:
        files = []
        for part in ledger.parts(self._folder):
            file = part.results if kind == "results" else part.turns
            self.read_checked(file)
            files.append(self.path / file.name)
        if not files:
            schema = tables.RESULTS if kind == "results" else tables.TURNS
            empty = pl.from_arrow(schema.empty_table())
            assert isinstance(empty, pl.DataFrame)
            return empty.lazy()
        return pl.scan_parquet(files)


class RunTape:
    """A run's turns as a tape.

    Parts are read in the order they were committed, and items are asked in nearly that order, so
    only a window of the run is in memory: a turn leaves it when it is played.
    """

    def __init__(self, run: RunReader) -> None:
        self._batches = run.turn_batches()
        self._window: dict[tuple[int, str, int], Turn] = {}

    def take(self, position: int, request: str, occurrence: int) -> Turn | None:
        key = (position, request, occurrence)
        while key not in self._window:
            batch = next(self._batches, None)
            if batch is None:
                return None
            self._window.update({(t.position, t.request, t.occurrence): t for t in batch})
        return self._window.pop(key)
