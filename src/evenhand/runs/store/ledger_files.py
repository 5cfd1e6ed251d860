"""A ledger lies in files: one for each entry, and one for each closed stretch of entries.

    ledger/00000000.json                          one entry
    ledger/compact-00000000-00001023.jsonl        the bytes of many, a line each

A compact file is whole before the first small file goes that it holds, it is never changed or
removed, and it counts before the small ones. So a ledger says the same at every moment of its
compaction, also to who lists it meanwhile.
"""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from evenhand.core.errors import CorruptRun
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
        for stretch, data in read(folder, left):
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


def read(
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
