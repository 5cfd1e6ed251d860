"""A ledger that is compacted while the run goes on: kills, stalls and take-overs in the middle."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from .checker import Bill, check_whole, committed, visible
from .conftest import FIGURES, Runner, Unbroken
from .worker import Job, Point

COMPACT = "ledger/compact-"
SMALL = "ledger/0"
POINTS = [
    pytest.param(Point(op="create", name=COMPACT), id="before-the-compact-file"),
    pytest.param(Point(op="link", name=COMPACT, nth=2), id="with-its-bytes-and-without-its-name"),
    pytest.param(Point(op="link", name=COMPACT, when="after"), id="with-its-name"),
    pytest.param(Point(op="unlink", name=SMALL), id="before-a-small-file-goes"),
    pytest.param(Point(op="unlink", name=SMALL, nth=2), id="between-small-files"),
    pytest.param(Point(op="unlink", name=SMALL, nth=7, when="after"), id="after-the-last-goes"),
]


@pytest.fixture
def compacting(job: Job) -> Job:
    """The same run in 30 parts and more, of which every four entries are put together."""
    return replace(job, part_items=5, compacted=4)


def compact_files(out: Path) -> int:
    return sum(path.name.startswith("compact-") for path in visible(out / "ledger"))


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_within_a_compaction_and_again_in_the_next_loses_nothing_and_it_is_finished(
    point: Point, compacting: Job, unbroken: Unbroken
) -> None:
    out, bill = Path(compacting.out), Bill(Path(compacting.log))
    for killed in (replace(point), replace(point, nth=1)):
        assert Runner(replace(compacting, points=(killed,))).wait() == -signal.SIGKILL
        bill.note_kill(out)
    Runner(compacting).finish()
    found = check_whole(out, compacting.items, unbroken.whole)
    bill.check(unbroken.calls)
    FIGURES.update({"kills": 2, "kills within a compaction": 2})

    entries = sum(name.startswith("results/") for name in found.files) + len(found.tokens)
    left = {path.name for path in visible(out / "ledger")}
    openings = {f"{token:08d}.json" for token in found.tokens}
    tail = {f"{slot:08d}.json" for slot in range(entries // 4 * 4, entries)}
    compact = {f"compact-{a:08d}-{a + 3:08d}.jsonl" for a in range(0, entries // 4 * 4, 4)}
    assert left == openings | tail | compact


@pytest.mark.parametrize("point", [POINTS[0], POINTS[4]])
def test_a_process_that_stalls_within_a_compaction_and_wakes_after_a_take_over_changes_nothing(
    point: Point, compacting: Job, unbroken: Unbroken
) -> None:
    stalled = Runner(replace(compacting, points=(replace(point, do="stop"),)))
    stalled.until_stopped()
    Runner(replace(compacting, steal_lock=True)).finish()
    before = check_whole(Path(compacting.out), compacting.items, unbroken.whole)
    assert compact_files(Path(compacting.out)) > 5

    stalled.signal(signal.SIGCONT)
    assert "taken over" in stalled.refused("Fenced")
    assert committed(Path(compacting.out)).files == before.files
    check_whole(Path(compacting.out), compacting.items, unbroken.whole)


def test_a_process_that_comes_for_a_number_which_was_taken_and_compacted_is_fenced_off(
    compacting: Job, unbroken: Unbroken
) -> None:
    """It has read the ledger and stalls; the other one fills the number, and removes its file."""
    out = Path(compacting.out)
    busy = Runner(replace(compacting, points=(Point(op="append", nth=150, do="stop"),)))
    busy.until_stopped()
    late = Runner(
        replace(
            compacting,
            log=f"{compacting.log}-late",
            steal_lock=True,
            points=(Point(op="create", name="ledger/", do="stop"),),
        )
    )
    late.until_stopped()
    busy.signal(signal.SIGCONT)
    busy.finish()
    before = check_whole(out, compacting.items, unbroken.whole)
    late.signal(signal.SIGCONT)
    assert "taken over" in late.refused("Fenced")
    assert check_whole(out, compacting.items, unbroken.whole).files == before.files
    files = [path for path in visible(out / "ledger") if path.suffix == ".json"]
    tokens = {json.loads(path.read_bytes())["token"] for path in files}
    assert len(tokens - set(before.tokens)) == 1, "it was free to write the number"
