"""A ledger in an object store is compacted by single PUTs and one removal of many."""

import threading
from pathlib import Path
from typing import Any

import pytest

from evenhand.runs.store import ledger
from evenhand.runs.store.ledger import LedgerWriter
from evenhand.runs.store.object_folder import ObjectFolder
from tests.runs.test_compaction import (
    SIZE,
    Dies,
    WatchedStore,
    after,
    as_set,
    compact,
    compacting_by,
    dies,
    fill,
    when_done,
)

from .conftest import BUCKET


@pytest.fixture
def folder(tmp_path: Path) -> WatchedStore:
    made = WatchedStore(f"s3://{BUCKET}/{tmp_path.name}")
    made.create("run.json", b"{}")
    return made


def test_a_process_that_dies_after_any_change_of_the_store_has_changed_nothing(
    folder: WatchedStore,
) -> None:
    said = fill(folder, [4, 4])
    for changes in range(4):  # each begins where the one before it died
        folder.before = after(changes, dies)
        with pytest.raises(Dies):
            compact(folder)
        assert list(ledger.entries(folder)) == said
    folder.before = lambda: None
    compact(folder)
    assert set(folder.names("ledger")) == when_done(said)
    assert list(ledger.entries(folder)) == said


def test_compactions_and_readers_at_once_change_nothing_and_see_the_same(
    folder: WatchedStore,
) -> None:
    said = fill(folder, [9, 6])
    together, seen = threading.Barrier(4), []

    def work(act: Any) -> None:
        other = ObjectFolder(folder.root)
        other.exists("run.json")
        together.wait()
        seen.append(act(other))

    acts = [as_set, as_set, *[lambda other: list(ledger.entries(other))] * 2]
    threads = [threading.Thread(target=work, args=(act,)) for act in acts]
    with compacting_by(SIZE):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [one for one in seen if one is not None] == [said, said]
    assert len(seen) == 4
    compact(folder)
    assert set(folder.names("ledger")) == when_done(said)
    assert list(ledger.entries(folder)) == said


def test_a_thousand_entries_are_removed_in_two_requests(
    folder: WatchedStore, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One each would take minutes in a store that is far away."""
    place = ObjectFolder(folder.root)
    names = [ledger.entry_name(slot) for slot in range(1024)]
    root = folder.root.removeprefix("s3://")
    store.pipe({f"{root}/{name}": b"x" for name in names[::100]})  # the others are gone
    made: list[int] = []
    whole = type(store)._bulk_delete

    async def counted(self: Any, paths: list[str], **how: Any) -> Any:
        made.append(len(paths))
        return await whole(self, paths, **how)

    monkeypatch.setattr(type(store), "_bulk_delete", counted)
    place.remove(*names)
    assert made == [1000, 24]
    assert place.names("ledger") == []


def test_a_long_ledger_of_before_is_compacted_when_it_is_opened(folder: WatchedStore) -> None:
    said = fill(folder, [9])
    with compacting_by(4):
        LedgerWriter(folder, 10, "the next")
    assert len(ledger.names(folder)) == 5
    assert list(ledger.entries(folder))[:-1] == said
