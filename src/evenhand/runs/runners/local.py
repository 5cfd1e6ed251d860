"""The kernel takes items through a method in one process, with thousands of calls in flight.

`answer_all` is the stream, `run` is the stream with a run folder behind it. A pilot answers a few
items, spread evenly over the source, into the real run's folder: the run itself finds them done.
"""

import asyncio
import contextlib
import gc
import math
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Required, TypedDict, Unpack

from evenhand.agents import Cast, Conversation
from evenhand.agents.dialogue import answer_turns
from evenhand.core import Answered, Event, Failed, Item, Turn
from evenhand.core.errors import (
    DeadlinePassed,
    EvenhandError,
    ModelError,
    NoAnswer,
    UnreadableReply,
    Unsuited,
    UserError,
)
from evenhand.models.batch import BatchQueue
from evenhand.models.endpoint import RemoteModel
from evenhand.models.replay import ReplayModel
from evenhand.runs.runners.plan import RunPlan
from evenhand.runs.runners.progress import Progress, local_gauges, status_file
from evenhand.runs.runners.purse import SpendingCap
from evenhand.runs.runners.replay import reusing
from evenhand.runs.runners.source import Source, read_gaps
from evenhand.runs.store import RunReader, RunWriter
from evenhand.runs.store.journal import JournalTape
from evenhand.runs.store.ledger import Positions, ranges

_BACKLOG = 256  # events that may wait for the store before the workers have to
_AT_ONCE = 10_000  # our choice: items at work in a run by batches; each takes some 80 kB
_BATCH_SECONDS = 90 * 86_400.0  # our choice: no batch of any provider lives so long


class StopSignal:
    """The signal that asks a run to end. Sent once: no new items begin, those at work are finished.
    Sent twice: the run stops now; recorded turns are in the journal, so a resumed run does not pay
    for them again."""

    def __init__(self) -> None:
        self.soft = False
        self._hard = asyncio.Event()

    def __call__(self) -> None:
        if self.soft:
            self._hard.set()
        self.soft = True

    @property
    def level(self) -> int:
        return self.soft + self._hard.is_set()

    async def wait_hard(self) -> None:
        await self._hard.wait()


async def answer_all(
    plan: RunPlan,
    items: Iterable[tuple[int, Item]],
    record: Callable[[Turn], None],
    stop: StopSignal,
    places: asyncio.Semaphore | None = None,
) -> AsyncGenerator[Event, None]:
    """Answer items concurrently, and yield each one's end as it comes.

    A slow reader holds the workers back: at most `_BACKLOG` events wait.

    Args:
        plan: Method, models and limits. `plan.concurrency` items are answered at a time.
        items: Position and item.
        record: Called with each model call.
        stop: Signal to finish open items, or to quit at once.
        places: Shared by several streams to keep `concurrency` over all of them. None: this stream
            alone.

    Yields:
        An answer or a failure per item.
    """
    waiting: Iterator[tuple[int, Item]] = iter(items)
    events: asyncio.Queue[Event | None] = asyncio.Queue(_BACKLOG)
    places = places or asyncio.Semaphore(plan.concurrency)

    async def work() -> None:
        while True:
            async with places:
                following = None if stop.soft else next(waiting, None)
                if following is None:
                    return
                event = await answer_one(plan, *following, record)
            await events.put(event)

    async def work_all() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(plan.concurrency):
                    group.create_task(work())
        finally:
            if read_on:
                await events.put(None)

    read_on = True
    crew = asyncio.create_task(work_all())
    quitter = asyncio.create_task(_quit(stop, crew))
    try:
        while (event := await events.get()) is not None:
            yield event
        await _outcome(crew, stop)
    finally:
        read_on = False  # nobody makes room in the queue any more
        quitter.cancel()
        crew.cancel()
        await asyncio.gather(quitter, crew, return_exceptions=True)


async def _quit(stop: StopSignal, crew: asyncio.Task[None]) -> None:
    await stop.wait_hard()
    crew.cancel()


async def _outcome(crew: asyncio.Task[None], stop: StopSignal) -> None:
    """Raise what broke the run, unless the run was told to break off."""
    try:
        await crew
    except asyncio.CancelledError:
        if not stop.soft:
            raise
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


async def answer_one(
    plan: RunPlan, position: int, item: Item, record: Callable[[Turn], None]
) -> Event:
    """Answer one item. Its errors end the item, not the run.

    Args:
        plan: Method, models and limits.
        position: Position of the item in its source.
        item: The item.
        record: Called with each model call.

    Returns:
        The answer, or the reason of the failure; of a dialogue with the last turn that was asked.

    Raises:
        UserError: The method does not suit the first item, and hence hardly any.
    """
    if not item.prompt:  # one bad row of a table must not stop a job of hours
        return Failed(position, item, "empty_prompt", "there is nothing to answer", 0, 0, 0)
    talk = Conversation(
        plan.cast,
        record,
        limits=plan.limits,
        seed=plan.seed,
        position=position,
        item=item,
        declared=plan.declared,
    )
    try:
        try:
            async with asyncio.timeout_at(
                talk.deadline + 0.05
            ):  # the backstop behind each call's own
                answer = await answer_turns(plan.method, item, talk)
        except TimeoutError:
            raise DeadlinePassed(f"the item's {plan.limits.seconds:g} s are used up") from None
    except (ModelError, NoAnswer, UnreadableReply, Unsuited) as error:
        if isinstance(error, Unsuited) and position == 0:  # the others are hardly of another kind
            raise UserError(str(error)) from None
        spent = (*talk.budget.spent(), talk.tags_taken_off)
        return Failed(position, talk.item or item, _reason(error), str(error), *spent)
    return Answered(position, talk.item or item, answer, *talk.budget.spent(), talk.tags_taken_off)


def _reason(error: EvenhandError) -> str:
    return f"{error.reason}:{error.kind}" if isinstance(error, UnreadableReply) else error.reason


class HowToRun(TypedDict, total=False):
    """What every runner is told in addition to its plan: counters, the stop signal, and a cap."""

    progress: Required[Progress]
    stop: Required[StopSignal]
    steal_lock: bool
    purse: SpendingCap | None


async def run(
    plan: RunPlan,
    out: str | Path,
    *,
    progress: Progress,
    stop: StopSignal,
    steal_lock: bool = False,
    purse: SpendingCap | None = None,
    only: Collection[int] | None = None,
) -> None:
    """Run a plan into a run folder, resuming where an earlier process stopped.

    Args:
        plan: Items, method, models and limits.
        out: Run folder, as a path or URL.
        progress: Counters to update.
        stop: Signal to finish open items, or to quit at once.
        steal_lock: Take over the lock of another process.
        purse: Stops the run before it spends more than its cap. None: no cap.
        only: Positions to answer. None: all.

    Raises:
        UserError: The directory holds a run of another plan.
    """
    with rare_collections():
        async with RunWriter.holding(out, plan.record(), steal_lock=steal_lock) as writer:
            queue = _queue(plan, writer, progress)
            progress.planned = len(plan.source)
            progress.state = "running"  # a run in blocks comes here once for each
            progress.resumed = writer.committed - progress.answered - progress.failed
            progress.look = local_gauges(plan.cast, purse, queue)
            if writer.committed:
                _recall(plan.cast, RunReader(out))
            if queue is not None:
                plan = _patient(plan, purse, queue)
            cast = reusing(_guarded(plan.cast, purse, stop), plan)
            plan = replace(plan, cast=_recorded(cast, writer.tape))
            items = progress.starting(left(plan.source, writer.done, only))
            async with (
                status_file(writer.folder, progress),
                queue or contextlib.nullcontext(),
                aclosing(answer_all(plan, items, writer.record_turn, stop)) as events,
            ):
                async for event in events:
                    writer.finish(event)
                    progress.count(event)
                    await writer.commit_if_full()


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage less often. Python looks for cycles after every 700 new objects; a call makes
    hundreds of objects and hardly a cycle, so looking takes a tenth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _queue(plan: RunPlan, writer: RunWriter, progress: Progress) -> BatchQueue | None:
    """Make the queue of a run whose models are asked in batches."""
    if plan.batch is None:
        return None
    return BatchQueue(
        writer.folder,
        items_at_work=lambda: progress.in_flight,
        is_left=lambda position: position not in writer.done,
        refuse_if_fenced=writer.refuse_if_fenced,
        timing=plan.batch,
    )


def _patient(plan: RunPlan, purse: SpendingCap | None, queue: BatchQueue) -> RunPlan:
    """Ask in batches: many items at once, since one batch takes what all of them ask; and no time
    limit of an item, since a batch takes its time."""
    if purse is not None:
        purse.patience = math.inf
    return replace(
        plan,
        cast=plan.cast.through(queue.through),
        concurrency=max(plan.concurrency, min(len(plan.source), _AT_ONCE)),
        limits=replace(plan.limits, seconds=_BATCH_SECONDS),
    )


def _recall(cast: Cast, run: RunReader) -> None:
    """Tell the models what earlier processes of this run learned of their endpoints."""
    adapted = run.totals().adapted
    for model in cast.models():
        if isinstance(model, RemoteModel) and model.name in adapted:
            model.know(adapted[model.name])


def _guarded(cast: Cast, purse: SpendingCap | None, stop: StopSignal) -> Cast:
    """Send every call through the spending cap."""
    if purse is None:
        return cast

    def stop_now() -> None:
        stop()
        stop()

    purse.on_exhausted = stop_now
    return cast.through(purse.guard)


def _recorded(cast: Cast, tape: JournalTape) -> Cast:
    """Take what an earlier process of this run was answered from its journal: it is paid for."""
    return cast.through(lambda model: ReplayModel.before(model, tape)) if tape else cast


def left(
    source: Source, done: Positions, only: Collection[int] | None = None
) -> Iterator[tuple[int, Item]]:
    """Yield the items that are not done yet.

    Args:
        source: All items.
        done: Positions that the run folder has.
        only: Positions to consider. None: all.

    Yields:
        Position and item.
    """
    for start, stop in source.chunks() if only is None else ranges(only):
        yield from read_gaps(source, list(done.missing(start, stop)))


PILOT_ITEMS = 50  # our choice: a mean with a spread of 50% is known to 14%


def pilot_positions(items: int, size: int = PILOT_ITEMS) -> tuple[int, ...]:
    """Take the middle of each of `size` equal stretches; all positions where there are no more than
    that."""
    if items <= size:
        return tuple(range(items))
    return tuple((2 * stretch + 1) * items // (2 * size) for stretch in range(size))


async def run_pilot(
    plan: RunPlan, out: str, *, size: int = PILOT_ITEMS, **how: Unpack[HowToRun]
) -> tuple[int, ...]:
    """Answer the items of a pilot.

    Args:
        plan: The plan of the whole run.
        out: Run folder, as a path or URL.
        size: Number of items.
        **how: As in `run`.

    Returns:
        The positions of the pilot's items.
    """
    positions = pilot_positions(len(plan.source), size)
    await run(plan, out, only=frozenset(positions), **how)
    return positions
