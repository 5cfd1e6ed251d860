"""The kernel: items through a method in one process, thousands of calls in flight.

`answer_all` is the stream, `run` is the stream with a run folder behind it.
"""

import asyncio
import contextlib
import gc
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from evenhand.agents import Conversation
from evenhand.domain import Answered, Event, Failed, Item, Turn
from evenhand.errors import DeadlinePassed, EvenhandError, ModelError, StoreError, UnreadableReply
from evenhand.models.replay import ReplayModel
from evenhand.runners.plan import Plan
from evenhand.store import RunWriter

_BACKLOG = 256  # events that may wait for the store before the workers have to


class StopSignal:
    """Asks a run to end. Once: no new items, those at work are finished. Twice: stop now; their
    recorded turns are in the journal, so a resumed run does not pay for them again."""

    def __init__(self) -> None:
        self.soft = False
        self._hard = asyncio.Event()

    def __call__(self) -> None:
        if self.soft:
            self._hard.set()
        self.soft = True

    async def wait_hard(self) -> None:
        await self._hard.wait()


@dataclass(slots=True)
class Progress:
    """Counters a display may look at while a run goes on."""

    planned: int = 0
    resumed: int = 0  # items that an earlier process had finished
    answered: int = 0
    failed: int = 0
    changed: int = 0
    calls: int = 0
    tokens: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def count(self, event: Event) -> None:
        self.calls += event.calls
        self.tokens += (event.prompt_tokens or 0) + (event.completion_tokens or 0)
        if isinstance(event, Answered):
            self.answered += 1
            self.changed += event.answer.changed
        else:
            self.failed += 1
            self.reasons[event.reason] = self.reasons.get(event.reason, 0) + 1


async def answer_all(
    plan: Plan,
    items: Iterable[tuple[int, Item]],
    record: Callable[[Turn], None],
    stop: StopSignal,
) -> AsyncGenerator[Event, None]:
    """Answer items, `plan.in_flight` at a time, and give each one's end as it comes.

    A slow reader holds the workers back: at most `_BACKLOG` events wait.
    """
    waiting: Iterator[tuple[int, Item]] = iter(items)
    events: asyncio.Queue[Event | None] = asyncio.Queue(_BACKLOG)

    async def work() -> None:
        while not stop.soft:
            following = next(waiting, None)
            if following is None:
                return
            await events.put(await answer_one(plan, *following, record))

    async def work_all() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(plan.in_flight):
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
    """Raise what broke the run, unless it was told to break."""
    try:
        await crew
    except asyncio.CancelledError:
        if not stop.soft:
            raise
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


async def answer_one(
    plan: Plan, position: int, item: Item, record: Callable[[Turn], None]
) -> Event:
    """One item from start to end. What goes wrong with it is its end, not the run's."""
    talk = Conversation(
        plan.cast,
        record,
        limits=plan.limits,
        seed=plan.seed,
        position=position,
        item_id=item.id,
    )
    try:
        try:
            async with asyncio.timeout_at(
                talk.deadline + 0.05
            ):  # the backstop behind each call's own
                answer = await plan.method.answer(item, talk)
        except TimeoutError:
            raise DeadlinePassed(f"the item's {plan.limits.seconds:g} s are used up") from None
    except (ModelError, UnreadableReply) as error:
        return Failed(position, item, _reason(error), str(error), *talk.budget.spent())
    return Answered(position, item, answer, *talk.budget.spent())


def _reason(error: EvenhandError) -> str:
    return f"{error.reason}:{error.kind}" if isinstance(error, UnreadableReply) else error.reason


async def run(
    plan: Plan,
    out: Path,
    *,
    progress: Progress,
    stop: StopSignal,
    take_over: bool = False,
) -> None:
    """Run a plan into a folder, from where an earlier process left it."""
    with _rare_collections():
        await _run(plan, out, progress, stop, take_over)


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Python looks for garbage cycles after every 700 new objects. A call makes hundreds of objects
    and hardly a cycle, so that looking is a tenth of the time; here it looks less often."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def _run(
    plan: Plan, out: Path, progress: Progress, stop: StopSignal, take_over: bool
) -> None:
    record = plan.record()
    writer = RunWriter.open(out, record, take_over=take_over)
    try:
        progress.planned = len(plan.source)
        progress.resumed = writer.committed
        if writer.tape:
            cast = plan.cast.through(lambda model: ReplayModel.before(model, writer.tape))
            plan = replace(plan, cast=cast)
        left = ((p, item) for p, item in enumerate(plan.source) if p not in writer.done)
        async with aclosing(answer_all(plan, left, writer.record_turn, stop)) as events:
            async for event in events:
                writer.finish(event)
                progress.count(event)
                await writer.commit_if_full()
    except StoreError:
        await writer.abandon()  # it could not write: the journal has what there is
        raise
    except BaseException:
        await writer.close()
        raise
    await writer.close()
