"""The ledger is a log of numbered files, each created once, that says what is committed.

    ledger/00000000.json                          one entry
    ledger/compact-00000000-00001023.jsonl        the bytes of many, a line each

A writer knows its next number. If that number is taken, somebody else has become the writer and
this one is fenced off; no moment passes between checking and writing, because creating the file
is the check. The number of a writer's opening entry is its fencing token.

Every so many entries are put together in one file, so that a long ledger is read in seconds. A
compact file is whole before the first small file goes that it holds, it is never changed or
removed, and it counts before the small ones. So a ledger says the same at every moment of its
compaction, also to who lists it meanwhile. An opening entry keeps its own file all the same: its
number is the one that the writer before it would write next, and must find taken for ever.
"""

import contextlib
import hashlib
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.core.errors import CorruptRun, Fenced, StoreError
from evenhand.runs.store.folder import Folder

_FOLDER = "ledger"
_FORM = re.compile(rf"{_FOLDER}/(?:(\d{{8}})\.json|compact-(\d{{8}})-(\d{{8}})\.jsonl)")
_AT_ONCE = 16  # our choice, in files: an object store lets wait for each, and is glad of many


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """A stretch is the file of the entries from `first` to `last`, both included."""

    name: str
    first: int
    last: int

    @property
    def is_single(self) -> bool:
        return self.name == entry_name(self.first)

    def holds(self, slot: int) -> bool:
        return self.first <= slot <= self.last


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing says which files hold the ledger, in order, and which hold what these hold too."""

    chosen: list[LedgerRange]
    covered: list[LedgerRange]

    def closed(self, size: int) -> list[list[LedgerRange]]:
        """Give the small files that can be put together, so many at a time. Where a stretch begins
        does not depend on who looks, so that two processes make the same one."""
        groups: dict[int, list[LedgerRange]] = {}
        for stretch in self.chosen:
            if stretch.is_single:
                groups.setdefault(stretch.first // size, []).append(stretch)
        return [singles for singles in groups.values() if len(singles) == size]


def entry_name(slot: int) -> str:
    return f"{_FOLDER}/{slot:08d}.json"


def listing(folder: Folder) -> Listing:
    """List the ledger. A disk may leave out of a listing what is made or removed during it, so a
    gap is one only if it is still there in the next."""
    missing = None
    while True:
        ordered, gap = _in_order(folder.root, folder.names(_FOLDER))
        if gap is None:
            return ordered
        if gap == missing:
            raise _missing(folder, gap)
        missing = gap


def lines(folder: Folder) -> Iterator[tuple[int, str, bytes]]:
    """Yield the number, the file and the bytes of every entry, in order. A small file that is gone
    since it was listed is in a compact one by now."""
    slot, gone = 0, ""
    while True:
        left = [stretch for stretch in listing(folder).chosen if stretch.last >= slot]
        for stretch, data in read_files(folder, left):
            if data is None:
                break
            for number, line in enumerate(_split(folder, stretch, data), stretch.first):
                if number >= slot:
                    yield number, stretch.name, line
            slot = stretch.last + 1
        else:
            return
        if stretch.name == gone:
            raise _missing(folder, stretch.first)
        gone = stretch.name


def read_files(
    folder: Folder, stretches: Sequence[LedgerRange]
) -> Iterator[tuple[LedgerRange, bytes | None]]:
    """Yield each file with its bytes, or None if it is gone: the first by itself, as many a reader
    wants no more, the others some at once."""

    def found(stretch: LedgerRange) -> bytes | None:
        try:
            return folder.read(stretch.name)
        except FileNotFoundError:
            return None

    for stretch in stretches[:1]:
        yield stretch, found(stretch)
    if len(stretches) > 1:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for start in range(1, len(stretches), _AT_ONCE):
                some = stretches[start : start + _AT_ONCE]
                yield from zip(some, pool.map(found, some), strict=True)


def put_together(folder: Folder, singles: Sequence[tuple[LedgerRange, bytes]]) -> bool:
    """Write one file with the entries of these. False if there is another in its place, which only
    a process finds that was taken over long ago."""
    first, last = singles[0][0].first, singles[-1][0].last
    name = f"{_FOLDER}/compact-{first:08d}-{last:08d}.jsonl"
    content = b"\n".join(data for _, data in singles)
    try:
        folder.create(name, content)
    except FileExistsError:
        return folder.read(name) == content
    return True


def _in_order(root: str, names: Sequence[str]) -> tuple[Listing, int | None]:
    """Lay the files end to end, and give the first number that is missing before others."""
    ordered = Listing([], [])
    slot = 0
    stretches = [_stretch(root, name) for name in names]
    for stretch in sorted(
        stretches, key=lambda candidate: (candidate.first, -candidate.last, candidate.is_single)
    ):
        if stretch.first == slot:
            ordered.chosen.append(stretch)
            slot = stretch.last + 1
        elif stretch.last < slot:
            ordered.covered.append(stretch)
        else:
            return ordered, slot
    return ordered, None


def _stretch(root: str, name: str) -> LedgerRange:
    form = _FORM.fullmatch(name)
    if form is None:
        raise CorruptRun(f"{root}: {name} is missing or out of place in a ledger")
    first, last = int(form[1] or form[2]), int(form[1] or form[3])
    if last < first:
        raise CorruptRun(f"{root}: {name} ends before it begins")
    return LedgerRange(name, first, last)


def _split(folder: Folder, stretch: LedgerRange, data: bytes) -> list[bytes]:
    if stretch.is_single:
        return [data]
    entries = data.split(b"\n")
    if len(entries) != stretch.last - stretch.first + 1:
        raise CorruptRun(f"{folder.root}/{stretch.name} does not hold the entries that it names")
    return entries


def _missing(folder: Folder, slot: int) -> CorruptRun:
    return CorruptRun(f"{folder.root}: ledger entry {slot} is missing or out of place")


COMPACTED = 1024  # our choice, in entries: 98 thousand are 96 files, and at most so many more
_STRIDE = 512  # bytes


class PartFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Field(pattern=r"^(results|turns)/part-[0-9A-Za-z_-]+\.parquet$")]
    sha256: str
    bytes: int
    rows: int


class CommittedPart(BaseModel):
    """An entry of the ledger says what one committed part holds. Its sums spare a reader the part
    files themselves."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    results: PartFile
    turns: PartFile
    positions: tuple[tuple[int, int], ...]  # half-open ranges of plan positions
    answered: int
    failed: dict[str, int]  # reason -> items
    changed: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    tokens_unknown: int  # items whose endpoint did not count tokens
    tags_taken_off: int = 0  # from what models said; older runs do not have it
    outcomes: dict[str, int] = {}  # outcome -> items; empty where no draft was judged
    adapted: dict[str, dict[str, int]] = {}  # model -> what it did not accept -> calls
    thinking_tokens: int = 0  # of the completion tokens, where endpoints count them


class LedgerEntry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    slot: int
    token: int
    opened_by: str | None = None
    run_sha256: str | None = None  # of run.json, in an opening entry
    part: CommittedPart | None = None
    ended: bool | None = None  # the writer of an open-ended run let go of it with nothing left


class Positions:
    """A set of plan positions, one bit each: 12.5 MB for 10⁸ items."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def __contains__(self, position: int) -> bool:
        byte = position >> 3
        return byte < len(self._bits) and bool(self._bits[byte] >> (position & 7) & 1)

    def add_range(self, start: int, stop: int) -> None:
        if stop > len(self._bits) * 8:
            self._bits.extend(bytes(stop // 8 + 1 - len(self._bits)))
        first, last = -(-start // 8) * 8, stop // 8 * 8  # whole bytes at once, edges bit by bit
        if first < last:
            self._bits[first >> 3 : last >> 3] = b"\xff" * ((last - first) >> 3)
        for position in (*range(start, min(first, stop)), *range(max(last, start), stop)):
            self._bits[position >> 3] |= 1 << (position & 7)

    def overlaps(self, start: int, stop: int) -> bool:
        return self._first(start, stop, present=True) < stop

    def missing(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the half-open ranges of positions from start to stop that are not in the set."""
        while start < stop:
            start = self._first(start, stop, present=False)
            end = self._first(start, stop, present=True)
            if start < end:
                yield start, end
            start = end

    def _first(self, position: int, stop: int, *, present: bool) -> int:
        """Find the first position that is in the set, or is not; `stop` if there is none."""
        passed = 0x00 if present else 0xFF  # a byte of this holds nothing that is looked for
        end = min(stop, len(self._bits) * 8)
        while position < end:
            if position & 7 == 0 and self._bits[position >> 3] == passed:
                position = self._past(position >> 3, end >> 3, passed) * 8
            elif (position in self) == present:
                return position
            else:
                position += 1
        return min(position, stop) if not present else stop

    def _past(self, byte: int, end: int, passed: int) -> int:
        """Find a later byte with nothing but `passed` before it, in strides while all agree."""
        byte += 1
        stride = bytes([passed]) * _STRIDE
        while byte < end and self._bits.startswith(stride, byte):
            byte += _STRIDE
        return byte


def ranges(positions: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Give sorted half-open ranges that cover exactly these positions."""
    spans: list[tuple[int, int]] = []
    for position in sorted(positions):
        if spans and spans[-1][1] == position:
            spans[-1] = (spans[-1][0], position + 1)
        else:
            spans.append((position, position + 1))
    return tuple(spans)


def entries(folder: Folder) -> Iterator[LedgerEntry]:
    """Yield every entry in order, each checked against its own checksum and its place in the
    log."""
    for number, name, line in lines(folder):
        entry = _entry(folder, number, name, line)
        if entry.run_sha256 is not None and entry.run_sha256 != _run_sha256(folder):
            raise CorruptRun(
                f"{folder.root}/run.json is not the one that the run began with: restore it from "
                "a copy, or run again into a new folder"
            )
        yield entry


def names(folder: Folder) -> list[str]:
    """Name the files that the ledger is read from."""
    return [stretch.name for stretch in listing(folder).chosen]


def parts(folder: Folder) -> Iterator[CommittedPart]:
    """Yield what is committed. Who names a file or an item twice would have it counted twice; for
    items that is known when all has been read."""
    names: set[str] = set()
    spans: list[tuple[int, int]] = []
    for part in (entry.part for entry in entries(folder) if entry.part is not None):
        for file in (part.results, part.turns):
            if file.name in names:
                raise CorruptRun(f"{folder.root}: the ledger names {file.name} twice")
            names.add(file.name)
        spans.extend(part.positions)
        yield part
    spans.sort()
    for (_, stop), (start, _) in pairwise(spans):
        if start < stop:
            raise CorruptRun(f"{folder.root}: the ledger names the item at {start} twice")


def has_ended(folder: Folder) -> bool:
    """Whether the last word of the ledger is that its writer ended the run. Whoever opens the run
    again writes an entry after it, so it is open again."""
    last = deque(entries(folder), maxlen=1)
    return bool(last and last[0].ended)


def compact(folder: Folder, listed: Listing) -> None:
    """Put closed stretches of entries together, and remove the small files that hold the same. A
    process that dies at any point of it, or a second one that does it too, changes nothing; what
    was left undone is done the next time."""
    _remove_but_openings(folder, read_files(folder, listed.covered))
    for singles in listed.closed(COMPACTED):
        held = [
            (stretch, data) for stretch, data in read_files(folder, singles) if data is not None
        ]
        if len(held) < len(singles):  # another process has done it meanwhile
            return
        for stretch, data in held:
            _entry(folder, stretch.first, stretch.name, data)
        if not put_together(folder, held):
            return
        _remove_but_openings(folder, held)


class LedgerWriter:
    """A ledger writer has the right to append, taken by writing the opening entry."""

    def __init__(self, folder: Folder, next_slot: int, opened_by: str) -> None:
        self._folder = folder
        self._slot = next_slot
        self._appending = threading.Lock()
        self.token = next_slot
        run_sha256 = _run_sha256(folder)
        self._append(
            LedgerEntry(slot=next_slot, token=next_slot, opened_by=opened_by, run_sha256=run_sha256)
        )
        listed = listing(folder)
        # Its number may have been taken, compacted and removed since the ledger was read.
        if any(stretch.holds(next_slot) and not stretch.is_single for stretch in listed.chosen):
            raise self._fenced()
        compact(folder, listed)

    def commit(self, part: CommittedPart) -> None:
        self._append(LedgerEntry(slot=self._slot, token=self.token, part=part))
        if self._slot % COMPACTED == 0:
            compact(self._folder, listing(self._folder))

    def end(self) -> None:
        self._append(LedgerEntry(slot=self._slot, token=self.token, ended=True))

    def refuse_if_fenced(self) -> None:
        """Refuse to go on after a newer writer. It does not look while another thread appends: that
        one looks itself, and its own new entry must not be taken for a stranger's."""
        if self._appending.acquire(blocking=False):
            try:
                if self._folder.exists(entry_name(self._slot)):
                    raise self._fenced()
            finally:
                self._appending.release()

    def _append(self, entry: LedgerEntry) -> None:
        with self._appending:
            try:
                self._folder.create(entry_name(entry.slot), _encode(entry))
            except FileExistsError:
                raise self._fenced() from None
            self._slot += 1

    def _fenced(self) -> Fenced:
        return Fenced(f"{self._folder.root} was taken over by another process; this one stops")


def _run_sha256(folder: Folder) -> str:
    return hashlib.sha256(folder.read("run.json")).hexdigest()


def _remove_but_openings(folder: Folder, held: Iterable[tuple[LedgerRange, bytes | None]]) -> None:
    spent = [
        stretch.name for stretch, data in held if data is not None and _is_spent(data, stretch.name)
    ]
    if spent:
        with contextlib.suppress(StoreError):  # they hold nothing new, and go the next time
            folder.remove(*spent)


def _is_spent(data: bytes, name: str) -> bool:
    """Say whether a small file may go that a compact one holds. What cannot be read stays: its name
    may be what fences a writer off."""
    try:
        return _decode(data, name).opened_by is None
    except CorruptRun:
        return False


def _entry(folder: Folder, number: int, name: str, data: bytes) -> LedgerEntry:
    entry = _decode(data, name)
    if entry.slot != number:
        raise CorruptRun(f"{folder.root}: ledger entry {number} is missing or out of place")
    return entry


def _encode(entry: LedgerEntry) -> bytes:
    body: dict[str, Any] = entry.model_dump(exclude_none=True)
    body["check"] = _check(body)
    return orjson.dumps(body)


def _decode(data: bytes, name: str) -> LedgerEntry:
    try:
        body = orjson.loads(data)
        check = body.pop("check")
        entry = LedgerEntry.model_validate(body)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValidationError):
        raise CorruptRun(f"{name} is not a ledger entry") from None
    if check != _check(body):
        raise CorruptRun(f"{name} does not match its checksum")
    return entry


def _check(body: dict[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
