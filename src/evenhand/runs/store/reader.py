"""A reader reads a run folder. Bytes that do not match their checksum are refused, never half
loaded."""

import hashlib
import io
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from evenhand.core import Turn
from evenhand.core.errors import CorruptRun, UserError
from evenhand.runs.store import ledger, tables
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.run_record import RunRecord

_AT_ONCE = 4  # our choice, in parts: while one is read from the disk, others are looked through
_NO_TOOLS = pl.ScanCastOptions(missing_struct_fields="insert")  # in the messages of most parts
_BATCH = 65_536  # our choice, in rows: large enough that polars, not Python, does the work


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums over the ledger."""

    answered: int
    failed: dict[str, int]
    changed: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    tokens_unknown: int
    tags_taken_off: int
    outcomes: dict[str, int]
    thinking_tokens: int = 0
    # model -> what it did not accept -> calls
    adapted: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def items(self) -> int:
        return self.answered + sum(self.failed.values())


class RunReader:
    """A reader of a committed run, or of the committed part of one that is under way.

    >>> run = RunReader(Path("runs/first"))
    >>> run.results().filter(pl.col("changed")).collect()
    """

    def __init__(self, location: str | Path) -> None:
        self._folder = open_folder(location)
        self.path = location
        if not self._folder.exists("run.json"):
            raise UserError(f"{location} is not a run folder: it has no run.json")
        self.record = RunRecord.from_bytes(self._folder.read("run.json"), self._folder.root)
        if not self.record.is_whole:
            raise CorruptRun(f"{location}/run.json names no method, no model or no number of items")
        next(ledger.entries(self._folder), None)  # the first one vouches for run.json

    def totals(self) -> Totals:
        failed: Counter[str] = Counter()
        sums: Counter[str] = Counter()
        outcomes: Counter[str] = Counter()
        adapted: dict[str, Counter[str]] = {}
        counted = ("failed", "outcomes", "adapted")
        names = [entry.name for entry in fields(Totals) if entry.name not in counted]
        for part in ledger.parts(self._folder):
            failed.update(part.failed)
            outcomes.update(part.outcomes)
            for model, words in part.adapted.items():
                adapted.setdefault(model, Counter()).update(words)
            for name in names:
                sums[name] += getattr(part, name)
        return Totals(
            failed=dict(sorted(failed.items())),
            outcomes=dict(sorted(outcomes.items())),
            adapted={model: dict(sorted(adapted[model].items())) for model in sorted(adapted)},
            **{name: sums[name] for name in names},
        )

    @property
    def planned(self) -> int:
        """How many items the run is about: those of its plan, or of one without a number all that
        are committed."""
        planned = self.record.planned
        return self.totals().items if planned is None else planned

    @property
    def open(self) -> bool:
        """Whether this is a run without a number of items, as of live traffic, that its writer has
        not ended: it writes, or it died, and in both cases more may come."""
        return self.record.planned is None and not ledger.has_ended(self._folder)

    def require_texts(self) -> None:
        """Refuse a run that was kept without its texts: a hash is not what somebody said."""
        if not self.record.keeps_texts:
            raise UserError(
                f"{self.path} holds no texts: the policy of its gateway was not to keep content"
            )

    def positions(self) -> list[tuple[int, int]]:
        """Give the half-open ranges of plan positions that are committed, in their order."""
        return sorted(span for part in ledger.parts(self._folder) for span in part.positions)

    def picked(
        self, columns: Sequence[str], pick: Callable[[pl.DataFrame], pl.DataFrame]
    ) -> pl.DataFrame:
        """Give what `pick` takes from these columns of each part, position among it, in plan order.
        Several parts are read at once."""

        def from_one(part: ledger.CommittedPart) -> pl.DataFrame:
            return pick(self._table(part.results, columns))

        empty = pl.DataFrame(schema=_schema("results"))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            frames = list(pool.map(from_one, ledger.parts(self._folder)))
        return pl.concat([pick(empty.select(columns)), *frames]).sort("position")

    def results(self) -> pl.LazyFrame:
        """Give one row per item, in plan order."""
        return self._scan("results").sort("position")

    def results_at(self, positions: Sequence[int]) -> pl.LazyFrame:
        """Give the items at these positions: only the parts that hold them are read."""
        return self._scan("results", sorted(positions)).sort("position")

    def turns(self) -> pl.LazyFrame:
        """Give one row per call, in plan order."""
        return self._scan("turns").sort("position", "index")

    def turns_at(self, positions: Sequence[int]) -> pl.LazyFrame:
        """Give the calls for the items at these positions, in the same way."""
        return self._scan("turns", sorted(positions)).sort("position", "index")

    def result_batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the results in the order of their commits, some ten thousand rows at a time. A part
        is checked and read in one go, so that memory does not grow with the run."""
        held: list[pl.DataFrame] = []
        for part in ledger.parts(self._folder):
            held.append(self._table(part.results, columns))
            if sum(map(len, held)) >= _BATCH:
                yield pl.concat(held)
                held = []
        if held:
            yield pl.concat(held)

    def seconds_by_item(self) -> Iterator[pl.DataFrame]:
        """Yield columns position and seconds: the model's time of each item, one batch per part."""
        for part in ledger.parts(self._folder):
            turns = self._table(part.turns, ["position", "seconds"])
            yield turns.group_by("position").agg(pl.col("seconds").sum())

    def verify(self) -> int:
        """Check every committed byte and give the number of parts."""
        count = 0
        for part in ledger.parts(self._folder):
            for file in (part.results, part.turns):
                self.read_checked(file)
            count += 1
        return count

    def digests(self) -> dict[str, str]:
        """Give the SHA-256 of run.json, and one over those of all committed parts in their order:
        where both are alike, two folders hold the same answers to the last byte."""
        parts = [f.sha256 for p in ledger.parts(self._folder) for f in (p.results, p.turns)]
        return {
            "run.json": hashlib.sha256(self._folder.read("run.json")).hexdigest(),
            "answers": hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        }

    def turn_batches(self) -> Iterator[Iterator[Turn]]:
        """Yield the turns, one batch per committed part."""
        for part in ledger.parts(self._folder):
            yield self.turns_in(part.turns)

    def parts(self) -> Iterator[ledger.CommittedPart]:
        """Yield what the ledger says of each committed part."""
        return ledger.parts(self._folder)

    def read_checked(self, file: ledger.PartFile) -> bytes:
        try:
            data = self._folder.read(file.name)
        except FileNotFoundError:
            raise CorruptRun(f"{self._folder.root}/{file.name} is missing") from None
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise CorruptRun(
                f"{self._folder.root}/{file.name} does not match its checksum: restore it from a "
                "copy, or run again into a new folder"
            )
        return data

    def turns_in(self, file: ledger.PartFile) -> Iterator[Turn]:
        """Yield the turns of one part."""
        data = self.read_checked(file)
        with self._readable(file):
            yield from tables.turns_of(data)

    def _table(self, file: ledger.PartFile, columns: Sequence[str]) -> pl.DataFrame:
        """Read columns of a part. One that was not written is null in it."""
        schema = _schema(file.name.partition("/")[0])
        data = io.BytesIO(self.read_checked(file))
        with self._readable(file):
            part = pl.scan_parquet(
                data, schema=schema, missing_columns="insert", cast_options=_NO_TOOLS
            )
            return part.select(columns).collect()

    @contextmanager
    def _readable(self, file: ledger.PartFile) -> Iterator[None]:
        """A checksum says who wrote the bytes of a stranger's run, not that they are a table. What
        polars did not foresee in them is a panic, which is no `Exception`."""
        try:
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException):
            raise CorruptRun(f"{self._folder.root}/{file.name} is not a table of a run") from None

    def _scan(self, kind: str, at: Sequence[int] | None = None) -> pl.LazyFrame:
        """Scan one part at a time, read when the frame is collected. The bytes that were checked
        are the bytes that are read; a path would be expanded where a folder has [ ] * ? in its
        name. Bytes that do not match raise then."""
        parts = (part for part in ledger.parts(self._folder) if at is None or _holds(part, at))
        files = [part.results if kind == "results" else part.turns for part in parts]
        schema = _schema(kind)

        def rows_of(
            columns: list[str] | None,
            predicate: pl.Expr | None,
            n_rows: int | None,
            _batch_size: int | None,
        ) -> Iterator[pl.DataFrame]:
            for file in files:
                rows = self._table(file, columns or list(schema))
                if n_rows is not None:
                    rows = rows.head(n_rows)
                    n_rows -= len(rows)
                yield rows if predicate is None else rows.filter(predicate)
                if n_rows == 0:
                    return

        rows = register_io_source(rows_of, schema=schema)
        return rows if at is None else rows.filter(pl.col("position").is_in(at))


@cache  # asked for once per part, and as dear as a small part itself
def _schema(kind: str) -> pl.Schema:
    return pl.Schema(tables.RESULTS if kind == "results" else tables.TURNS)


def _holds(part: ledger.CommittedPart, ordered: Sequence[int]) -> bool:
    """Whether a part has an item at one of these positions."""
    spans = (
        (bisect_left(ordered, start), bisect_left(ordered, stop)) for start, stop in part.positions
    )
    return any(first < past for first, past in spans)


class RunTape:
    """The recorded turns of a run, found by the item and the hash of the request.

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


class EqualCalls:
    """The successful calls of a finished or stopped run that one model answered, for a run that
    asks it the same. A reply taken from here has no attempts: nothing was sent for it.

    Items are asked in nearly the order of the parts, so only the parts last read are in memory.
    """

    def __init__(self, run: RunReader, described: Mapping[str, Any]) -> None:
        """Take the calls whose model was described like this one.

        Args:
            run: The run with the recorded calls.
            described: What the model of the new run says of itself.
        """
        identity, cast = _asked_alike(described), run.record.cast.items()
        self._roles = {role for role, model in cast if _asked_alike(model) == identity}
        spans = [(*span, part) for part in run.parts() for span in part.positions]
        self._spans = sorted(spans, key=lambda span: span[0])
        self._starts = [start for start, _, _ in self._spans]
        self._load = lru_cache(_PARTS_KEPT)(partial(_successes, run))

    def take(self, position: int, request: str, occurrence: int) -> Turn | None:
        at = bisect_right(self._starts, position) - 1
        if not self._roles or at < 0 or position >= self._spans[at][1]:
            return None
        turn = self._load(self._spans[at][2].turns).get((position, request, occurrence))
        return turn if turn is not None and turn.role in self._roles else None


_PARTS_KEPT = 8  # our choice: of up to 4,096 items each, while some hundred are at work


def _successes(run: RunReader, file: ledger.PartFile) -> dict[tuple[int, str, int], Turn]:
    turns = (replace(turn, attempts=0) for turn in run.turns_in(file) if turn.error is None)
    return {(turn.position, turn.request, turn.occurrence): turn for turn in turns}


def _asked_alike(described: Mapping[str, Any]) -> dict[str, Any]:
    """Give what decides a reply; a system prompt is part of what is asked."""
    aside = ("system", "asked_once")
    return {name: value for name, value in described.items() if name not in aside}
