"""A ledger says the same before, after and at every moment of its compaction."""

import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import CorruptRun, Fenced
from evenhand.runs.store import ledger
from evenhand.runs.store.folder import Folder, LocalFolder
from evenhand.runs.store.ledger import LedgerEntry, LedgerWriter
from evenhand.runs.store.object_folder import ObjectFolder
from tests.errors import raises_naming

SIZE = 4  # entries that are put together here
NEVER = 10**6
Changed = Callable[[], None]


class Watched:
    """A folder that says so before each change. Many files are removed one by one in any order, as
    a store may do it."""

    before: Changed = staticmethod(lambda: None)
    luck = random.Random(0)

    def create(self, name: str, data: bytes) -> None:
        self.before()
        super().create(name, data)  # type: ignore[misc]

    def remove(self, *names: str) -> None:
        for name in self.luck.sample(names, len(names)):
            self.before()
            super().remove(name)  # type: ignore[misc]


class WatchedDisk(Watched, LocalFolder):
    pass


class WatchedStore(Watched, ObjectFolder):
    pass


class Dies(BaseException):
    """The process is gone."""


def after(changes: int, then: Changed) -> Changed:
    """Do something once, before the change after so many."""
    left = [changes]

    def before() -> None:
        left[0] -= 1
        if left[0] == -1:
            then()

    return before


def dies() -> None:
    raise Dies


def part(number: int) -> ledger.CommittedPart:
    files = {
        kind: ledger.PartFile(
            name=f"{kind}/part-{number}.parquet", sha256=f"{number:064x}", bytes=number, rows=1
        )
        for kind in ("results", "turns")
    }
    return ledger.CommittedPart(
        **files, positions=((number, number + 1),), answered=1, failed={}, changed=0, calls=1,
        prompt_tokens=number, completion_tokens=0, tokens_unknown=0,
    )  # fmt: skip


def fill(folder: Folder, blocks: list[int]) -> list[LedgerEntry]:
    """Writers one after the other with so many parts each, and no compaction."""
    with compacting_by(NEVER):
        slot = 0
        for number, parts in enumerate(blocks):
            writer = LedgerWriter(folder, slot, f"writer {number}")
            for count in range(parts):
                writer.commit(part(slot + 1 + count))
            slot += 1 + parts
    return list(ledger.entries(folder))


@contextmanager
def compacting_by(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "COMPACTED", size)
        yield


def compact(folder: Folder) -> None:
    """Not for threads: each would put back what another has set."""
    with compacting_by(SIZE):
        as_set(folder)


def as_set(folder: Folder) -> None:
    ledger.compact(folder, ledger.listing(folder))


@contextmanager
def new_folder(kind: str) -> Iterator[WatchedDisk | WatchedStore]:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # nobody cuts the power here
        made = WatchedDisk(Path(place)) if kind == "disk" else WatchedStore(f"memory://{place}")
        made.create("run.json", b"{}")
        yield made


@pytest.fixture
def folder() -> Iterator[WatchedDisk | WatchedStore]:
    with new_folder("disk") as made:
        yield made


def when_done(said: list[LedgerEntry]) -> set[str]:
    """The files of a ledger with nothing left to compact, by their names."""
    closed = len(said) // SIZE * SIZE
    compacted = {f"compact-{a:08d}-{a + SIZE - 1:08d}.jsonl" for a in range(0, closed, SIZE)}
    small = {e.slot for e in said if e.opened_by is not None or e.slot >= closed}
    return {f"ledger/{name}" for name in compacted | {f"{slot:08d}.json" for slot in small}}


def as_read_before(folder: Folder) -> list[int] | None:
    """The numbers of the entries, by the rule of versions without compaction; None if refused."""
    names = folder.names("ledger")
    if names != [f"ledger/{number:08d}.json" for number in range(len(names))]:
        return None
    return [json.loads(folder.read(name))["slot"] for name in names]


LEDGERS = st.lists(st.integers(0, 9), min_size=1, max_size=4)
KINDS = st.sampled_from(["disk", "store"])


@given(LEDGERS, KINDS, st.integers(0, 40), st.integers(0, 40), st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_a_process_that_dies_after_any_change_has_changed_nothing_and_the_next_finishes(
    blocks: list[int], kind: str, first: int, second: int, seed: int
) -> None:
    with new_folder(kind) as folder:
        said = fill(folder, blocks)
        folder.luck = random.Random(seed)
        for changes in (first, second):
            folder.before = after(changes, dies)
            with suppress(Dies):
                compact(folder)
            assert list(ledger.entries(folder)) == said
            assert as_read_before(folder) in (None, [entry.slot for entry in said])
        folder.before = Watched.before
        compact(folder)
        assert set(folder.names("ledger")) == when_done(said)
        assert list(ledger.entries(folder)) == said


@given(LEDGERS, KINDS, st.integers(0, 40), st.integers(0, 20), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_second_compaction_within_the_first_and_a_reader_across_both_see_the_same(
    blocks: list[int], kind: str, changes: int, taken: int, seed: int
) -> None:
    with new_folder(kind) as folder:
        said = fill(folder, blocks)
        folder.luck = random.Random(seed)
        other = type(folder)(Path(folder.root) if kind == "disk" else folder.root)  # type: ignore[arg-type]
        reader = ledger.entries(other)
        read = list(islice(reader, taken))
        folder.before = after(changes, lambda: compact(other))
        compact(folder)
        assert read + list(reader) == said
        assert set(folder.names("ledger")) == when_done(said)
        assert list(ledger.entries(folder)) == said


@given(LEDGERS, KINDS, st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_every_writer_that_was_taken_over_finds_its_number_taken_for_ever(
    blocks: list[int], kind: str, seed: int
) -> None:
    with new_folder(kind) as folder, compacting_by(SIZE):
        folder.luck = random.Random(seed)
        writers, slot = [], 0
        for number, parts in enumerate([*blocks, 9]):
            writers.append(LedgerWriter(folder, slot, f"writer {number}"))
            for count in range(parts):
                writers[-1].commit(part(slot + 1 + count))
            slot += 1 + parts
        said = list(ledger.entries(folder))
        for writer in writers[:-1]:
            with pytest.raises(Fenced):
                writer.refuse_if_fenced()
            with pytest.raises(Fenced):
                writer.commit(part(NEVER))
        for late in range(slot):  # they have read the ledger when it was that long
            with pytest.raises(Fenced):
                LedgerWriter(folder, late, "late")
        assert list(ledger.entries(folder)) == said
        writers[-1].refuse_if_fenced()
        writers[-1].commit(part(NEVER))
        assert list(ledger.entries(folder))[:-1] == said


def test_a_late_opener_whose_file_is_removed_at_once_is_fenced_off_too(
    folder: WatchedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second compactor may have read the old entry of that number, and removes it by its name."""
    fill(folder, [10])
    compact(folder)
    said = list(ledger.entries(folder))
    create = folder.create

    def removed_at_once(name: str, data: bytes) -> None:
        create(name, data)
        folder.remove(name)

    monkeypatch.setattr(folder, "create", removed_at_once)
    with pytest.raises(Fenced):
        LedgerWriter(folder, 2, "late")
    monkeypatch.undo()
    assert list(ledger.entries(folder)) == said


def test_a_compact_file_holds_the_very_bytes_of_the_entries(folder: WatchedDisk) -> None:
    fill(folder, [10])
    small = [folder.read(f"ledger/{slot:08d}.json") for slot in range(11)]
    compact(folder)
    lines = [
        line
        for name in ("compact-00000000-00000003", "compact-00000004-00000007")
        for line in folder.read(f"ledger/{name}.jsonl").split(b"\n")
    ]
    assert [*lines, *(folder.read(f"ledger/{slot:08d}.json") for slot in (8, 9, 10))] == small


def test_a_writer_compacts_as_it_goes_and_no_more_small_files_are_left_than_one_holds(
    folder: WatchedDisk,
) -> None:
    with compacting_by(SIZE):
        writer = LedgerWriter(folder, 0, "one")
        for number in range(1, 50):
            writer.commit(part(number))
            assert len(folder.names("ledger")) <= number // SIZE + SIZE + 1
    assert [entry.slot for entry in ledger.entries(folder)] == list(range(50))


def test_every_flipped_bit_and_every_cut_of_a_compact_file_is_noticed(folder: WatchedDisk) -> None:
    fill(folder, [3])
    compact(folder)
    path = Path(folder.root) / "ledger/compact-00000000-00000003.jsonl"
    whole = path.read_bytes()
    harmed = [whole[:end] for end in range(0, len(whole), 7)]
    harmed += [
        whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :] for at in range(len(whole))
    ]
    lines = whole.split(b"\n")
    harmed += [b"\n".join(lines[::-1]), b"\n".join(lines[1:]), whole + b"\n", whole + whole]
    for data in harmed:
        path.write_bytes(data)
        with pytest.raises(CorruptRun):
            list(ledger.entries(folder))
    path.write_bytes(whole)
    assert len(list(ledger.entries(folder))) == 4


def test_a_compact_file_that_is_lost_half_written_or_strange_is_no_ledger(
    folder: WatchedDisk,
) -> None:
    said = fill(folder, [10])
    compact(folder)
    place = Path(folder.root) / "ledger"
    (place / ".compact-00000008-00000011.jsonl.0.tmp").write_bytes(b"half a fi")
    assert list(ledger.entries(folder)) == said, "what has no name yet is not read"
    for name in ("compact-00000011-00000008.jsonl", "compact-8-11.jsonl", "notes.txt"):
        (place / name).write_bytes(b"")
        with pytest.raises(CorruptRun):
            list(ledger.entries(folder))
        (place / name).unlink()
    (place / "compact-00000000-00000003.jsonl").unlink()
    with raises_naming(CorruptRun, "ledger entry 1"):
        list(ledger.entries(folder))


def test_a_damaged_entry_is_not_put_together_and_nothing_is_removed(folder: WatchedDisk) -> None:
    fill(folder, [7])
    path = Path(folder.root) / "ledger/00000006.json"
    path.write_bytes(path.read_bytes().replace(b'"calls":1', b'"calls":2'))
    with raises_naming(CorruptRun, "00000006.json", "checksum"):
        compact(folder)
    assert folder.exists("ledger/00000004.json")
    assert not folder.exists("ledger/compact-00000004-00000007.jsonl")


def test_the_small_files_that_a_compact_one_holds_are_not_among_those_that_a_run_rests_on(
    folder: WatchedDisk,
) -> None:
    fill(folder, [10])
    folder.before = after(2, dies)
    with pytest.raises(Dies):
        compact(folder)
    tail = [f"ledger/{slot:08d}.json" for slot in range(4, 11)]
    assert ledger.names(folder) == ["ledger/compact-00000000-00000003.jsonl", *tail]


def test_a_listing_that_missed_what_was_compacted_during_it_is_made_again(
    folder: WatchedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may show neither the small files, which went, nor the compact one, which came."""
    said = fill(folder, [10])
    compact(folder)
    whole, listings = folder.names("ledger"), []

    def names(_: str) -> list[str]:
        listings.append(whole)
        missed = "ledger/compact-00000000-00000003.jsonl" if len(listings) == 1 else ""
        return [name for name in whole if name != missed]

    monkeypatch.setattr(folder, "names", names)
    assert list(ledger.entries(folder)) == said
    assert len(listings) == 2
