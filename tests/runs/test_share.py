"""Shares of a run: done by workers that die, are thought dead, or come back with other sizes.

What is in a folder is read by `crash.checker`, and calls are counted by the scripted model.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from evenhand.agents import Cast
from evenhand.core.errors import Fenced, ModelError
from evenhand.methods import StarDTox
from evenhand.models import ModelReply, ModelRequest, ScriptedModel
from evenhand.models.replay import ReplayModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.runners.local import answer_all
from evenhand.runs.store.writer import (
    OpenedRun,
    Receipt,
    ShareWriter,
    adopt_journals,
    commit,
    remove_journals,
)
from tests.runs.crash.checker import Committed, check_whole, committed, visible
from tests.runs.crash.worker import items, script

ITEMS = 60


class Bill:
    """Every call that was made, and a word to stop after so many."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[int, str, int]] = Counter()
        self._stop: StopSignal | None = None
        self._left = 0

    def stop_after(self, calls: int) -> StopSignal:
        self._stop, self._left = StopSignal(), calls
        return self._stop

    async def pay(self, request: ModelRequest) -> None:
        if self._stop is not None and self._stop.level == 2:
            await asyncio.Event().wait()  # it never gets out
        self.calls[request.position, request.sha256, request.occurrence] += 1
        self._left -= 1
        if self._stop is not None and self._left == 0:
            self._stop()
            self._stop()

    def go_on(self) -> None:
        self._stop = None

    def plan(self) -> RunPlan:
        source = ItemList(items(ITEMS))
        return RunPlan(method=StarDTox(), cast=Cast(Billed(self)), source=source, seed=7)


class Billed(ScriptedModel):
    def __init__(self, bill: Bill) -> None:
        super().__init__(_say)
        self._bill = bill

    async def complete(self, request: ModelRequest) -> ModelReply:
        await self._bill.pay(request)
        return await super().complete(request)


def _say(request: ModelRequest) -> str | ModelError:
    words = "\n".join(message.content for message in request.messages)
    return script(words, request.schema.name if request.schema else None)


@dataclass(frozen=True)
class Unbroken:
    whole: Committed
    calls: Counter[tuple[int, str, int]]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    """A run in one process that nothing happened to."""
    out, bill = tmp_path_factory.mktemp("unbroken") / "run", Bill()
    asyncio.run(run(bill.plan(), out, progress=Progress(), stop=StopSignal()))
    whole = check_whole(out, ITEMS)
    assert set(bill.calls.values()) == {1}
    return Unbroken(whole, bill.calls)


@pytest.fixture
def bill() -> Bill:
    return Bill()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def opened(out: Path, bill: Bill) -> Iterator[OpenedRun]:
    run = OpenedRun.open(out, bill.plan().record())
    yield run
    run.release()


def reopened(run: OpenedRun, bill: Bill) -> OpenedRun:
    """As the next process opens it."""
    run.release()
    after = OpenedRun.open(Path(run.folder.root), bill.plan().record())
    adopt_journals(after)
    return after


async def answer(
    writer: ShareWriter, bill: Bill, positions: list[int], stop: StopSignal | None = None
) -> None:
    """What a worker of the cluster does with a share, up to its sealing."""
    plan = bill.plan()
    tape = writer.tape
    plan = replace(plan, cast=plan.cast.through(lambda model: ReplayModel.before(model, tape)))
    all_items = items(ITEMS)
    left = [(p, all_items[p]) for p in positions if p not in writer.finished]
    events = answer_all(plan, left, writer.record_turn, stop or StopSignal())
    async with aclosing(events):
        async for event in events:
            writer.finish(event)


async def share(run: OpenedRun, bill: Bill, first: int, stop: int) -> Receipt:
    writer = ShareWriter(run.folder, run.token, first, stop)
    await answer(writer, bill, list(range(first, stop)))
    return writer.seal()


async def cut_off(
    run: OpenedRun, bill: Bill, first: int, stop: int, calls: int, *, sealed: bool = False
) -> Receipt | None:
    """A share whose worker is stopped at once after so many calls; dead, or in order."""
    writer = ShareWriter(run.folder, run.token, first, stop)
    await answer(writer, bill, list(range(first, stop)), bill.stop_after(calls))
    bill.go_on()
    if sealed:
        return writer.seal()
    writer.close()
    return None


async def finish(run: OpenedRun, bill: Bill, size: int) -> None:
    """All that is missing, cut into shares as the runner does it, and handed in."""
    left = [p for gap in run.done.missing(0, ITEMS) for p in range(*gap)]
    for at in range(0, len(left), size):
        positions = left[at : at + size]
        writer = ShareWriter(run.folder, run.token, positions[0], positions[-1] + 1, positions)
        await answer(writer, bill, positions)
        assert commit(run, writer.seal())


def journals(out: Path) -> list[str]:
    return [path.name for path in visible(out / "journal")]


@pytest.mark.parametrize("calls", [2, 17, 100, 190])
async def test_a_share_that_was_cut_off_is_taken_up_and_nothing_of_it_is_paid_again(
    calls: int, opened: OpenedRun, bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    await cut_off(opened, bill, 0, ITEMS, calls)
    assert sum(bill.calls.values()) == calls
    second = ShareWriter(opened.folder, opened.token, 0, ITEMS)
    if calls >= 100:
        assert second.finished, "some were finished"
    assert second.tape, "and some were begun"
    await answer(second, bill, list(range(ITEMS)))
    assert commit(opened, second.seal())
    check_whole(out, ITEMS, unbroken.whole)
    assert bill.calls == unbroken.calls
    assert journals(out) == []


@pytest.mark.parametrize("slow_first", [False, True])
async def test_of_two_workers_that_hand_in_one_share_the_first_counts_and_nothing_is_doubled(
    slow_first: bool, opened: OpenedRun, bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    """One was thought dead, and was only slow."""
    slow = ShareWriter(opened.folder, opened.token, 0, ITEMS)
    await answer(slow, bill, list(range(ITEMS // 2)))
    other = await share(opened, bill, 0, ITEMS)
    await answer(slow, bill, list(range(ITEMS // 2, ITEMS)))
    first, second = (slow.seal(), other) if slow_first else (other, slow.seal())
    assert commit(opened, first)
    before = committed(out).files
    assert not commit(opened, second)
    assert committed(out).files == before
    check_whole(out, ITEMS, unbroken.whole)
    assert journals(out) == []


async def test_a_receipt_for_a_share_of_which_one_item_is_in_already_is_refused_whole(
    opened: OpenedRun, bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    overlapping = await cut_off(opened, bill, 20, 50, calls=80, sealed=True)
    assert overlapping is not None
    assert overlapping.part is not None
    (first, _), *others = overlapping.part.positions
    assert others, "it is of several ranges, and only one of them is in already"
    assert commit(opened, await share(opened, bill, first, first + 1))
    assert not commit(opened, overlapping)
    assert committed(out).positions() == Counter([first])
    assert opened.committed == 1
    assert len(journals(out)) == 1, "what it was paid for is still there"
    after = reopened(opened, bill)
    await finish(after, bill, 60)
    check_whole(out, ITEMS, unbroken.whole)
    assert bill.calls == unbroken.calls
    after.release()


@pytest.mark.parametrize("size", [1, 7, 16, 60])
async def test_journals_of_shares_of_another_size_are_found(
    size: int, opened: OpenedRun, bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    """Shares of 23 were cut off: the next job has more actors, and cuts its own."""
    for first in range(0, ITEMS, 23):
        await cut_off(opened, bill, first, min(first + 23, ITEMS), calls=40)
    after = reopened(opened, bill)
    await finish(after, bill, size)
    check_whole(out, ITEMS, unbroken.whole)
    assert bill.calls == unbroken.calls
    remove_journals(after)
    assert journals(out) == []
    after.release()


@pytest.mark.parametrize("size", [5, 60])
@pytest.mark.parametrize("calls", [60, 120, 180])
async def test_a_share_that_was_stopped_and_handed_in_half_done_is_finished_by_the_next_job(
    calls: int, size: int, opened: OpenedRun, bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    """What it finished lies between what it did not, and is in its journal as well as in a part:
    it must not get into a second part, which would be refused."""
    receipt = await cut_off(opened, bill, 0, ITEMS, calls, sealed=True)
    assert receipt is not None
    assert commit(opened, receipt)
    gaps = list(opened.done.missing(0, ITEMS))
    assert len(gaps) > 1
    assert len(journals(out)) == 1
    after = reopened(opened, bill)
    await finish(after, bill, size)
    check_whole(out, ITEMS, unbroken.whole)
    assert bill.calls == unbroken.calls
    after.release()


async def test_what_is_entered_from_one_journal_is_not_taken_from_another_again(
    opened: OpenedRun, bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    """Two workers were at 10 to 20 at the same time, and of the share of one a part is committed:
    entering the rest of it makes the other's journal one of a half committed share as well."""
    small = ShareWriter(opened.folder, opened.token, 10, 20)
    large = ShareWriter(opened.folder, opened.token, 0, 30)
    await answer(small, bill, list(range(10, 20)))
    await answer(large, bill, list(range(0, 30, 2)))
    small.close()
    large.close()
    assert commit(opened, await share(opened, bill, 0, 5))
    after = reopened(opened, bill)
    await finish(after, bill, 60)
    check_whole(out, ITEMS, unbroken.whole)
    assert bill.calls.keys() == unbroken.calls.keys()
    after.release()


async def test_a_journal_goes_when_all_of_its_range_is_committed_and_not_before(
    opened: OpenedRun, bill: Bill, out: Path
) -> None:
    await cut_off(opened, bill, 0, 20, calls=30)
    (old,) = journals(out)
    halves = [await share(opened, bill, 0, 12), await share(opened, bill, 12, 20)]
    whole = await share(opened, bill, 0, 20)
    assert len(journals(out)) == 4
    assert old in [Path(name).name for name in whole.journals]
    assert all(old not in name for half in halves for name in half.journals)
    assert commit(opened, halves[0])
    assert len(journals(out)) == 3
    # Refused, and 12 to 20 are not committed: what was paid for them is in the old journal only.
    assert not commit(opened, whole)
    assert old in journals(out)
    assert len(journals(out)) == 3
    assert commit(opened, halves[1])
    assert not commit(opened, whole)
    assert journals(out) == []


async def test_a_worker_that_finished_nothing_hands_in_no_part_and_leaves_its_journal(
    opened: OpenedRun, bill: Bill, out: Path
) -> None:
    receipt = await cut_off(opened, bill, 1, 20, calls=1, sealed=True)
    assert receipt is not None
    assert receipt.part is None
    assert not commit(opened, receipt)
    assert len(journals(out)) == 1
    assert committed(out).positions() == Counter()


@pytest.mark.parametrize("calls", [1, 90, 150])
async def test_what_a_run_in_one_process_left_is_found_by_shares(
    calls: int, bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    await run(bill.plan(), out, progress=Progress(), stop=bill.stop_after(calls))
    bill.go_on()
    opened = OpenedRun.open(out, bill.plan().record())
    adopt_journals(opened)
    assert all("-s0" in name for name in journals(out)), "each says what range it is of"
    await finish(opened, bill, 9)
    check_whole(out, ITEMS, unbroken.whole)
    assert bill.calls == unbroken.calls
    opened.release()


async def test_adopting_twice_changes_nothing_more(
    bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    await run(bill.plan(), out, progress=Progress(), stop=bill.stop_after(90))
    bill.go_on()
    opened = OpenedRun.open(out, bill.plan().record())
    for _ in range(3):
        adopt_journals(opened)
        opened = reopened(opened, bill)
    await finish(opened, bill, 60)
    check_whole(out, ITEMS, unbroken.whole)
    assert bill.calls == unbroken.calls
    opened.release()


@pytest.mark.parametrize("sealed", [False, True])
async def test_a_run_in_one_process_takes_up_what_shares_left(
    sealed: bool, opened: OpenedRun, bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    assert commit(opened, await share(opened, bill, 10, 20))
    receipt = await cut_off(opened, bill, 20, 50, 60, sealed=sealed)
    if receipt is not None:
        assert commit(opened, receipt)
    opened.release()
    # And again in the middle of that, so that it goes from one to the other and back.
    await run(bill.plan(), out, progress=Progress(), stop=bill.stop_after(40))
    bill.go_on()
    after = OpenedRun.open(out, bill.plan().record())
    adopt_journals(after)
    left = [p for gap in after.done.missing(0, ITEMS) for p in range(*gap)][:10]
    writer = ShareWriter(after.folder, after.token, left[0], left[-1] + 1, left)
    await answer(writer, bill, left, bill.stop_after(10))
    bill.go_on()
    writer.close()
    after.release()
    await run(bill.plan(), out, progress=Progress(), stop=StopSignal())
    check_whole(out, ITEMS, unbroken.whole)
    assert bill.calls == unbroken.calls


async def test_a_runner_that_was_taken_over_neither_enters_a_part_nor_removes_a_journal(
    opened: OpenedRun, bill: Bill, out: Path, unbroken: Unbroken
) -> None:
    receipt = await share(opened, bill, 0, 20)
    newer = OpenedRun.open(out, bill.plan().record(), steal_lock=True)
    before = journals(out)
    with pytest.raises(Fenced):
        commit(opened, receipt)
    with pytest.raises(Fenced):
        adopt_journals(opened)
    with pytest.raises(Fenced):
        remove_journals(opened)
    assert journals(out) == before
    asked = bill.calls.total()
    assert commit(newer, await share(newer, bill, 0, 20))
    assert bill.calls.total() == asked, "the journal that it left is used by the newer one"
    newer.release()
