"""Items through the real kernel into a run folder, with the end of each item timed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from evenhand.agents import Ask, Cast, Conversation, Limits
from evenhand.core import Answer, Item
from evenhand.methods import StarDTox
from evenhand.models import ChatModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader

from .gauges import Lateness


@dataclass(frozen=True, kw_only=True)
class TimedStarDTox(StarDTox):
    """StarDTox, with a note of when each item was to end and when it ended."""

    @cached_property
    def ends(self) -> list[tuple[float, float]]:
        return []

    async def answer(self, item: Item, ask: Ask) -> Answer:
        assert isinstance(ask, Conversation)
        try:
            return await super().answer(item, ask)
        finally:
            self.ends.append((ask.deadline, asyncio.get_running_loop().time()))


@dataclass(frozen=True)
class Ran:
    """A finished run, read back from its folder."""

    path: Path
    results: pl.DataFrame
    turns: pl.DataFrame
    overshoot: list[float]  # how long after (before: < 0) its deadline each item ended

    @property
    def answered(self) -> int:
        return len(self.results.filter(pl.col("status") == "answered"))

    @property
    def reasons(self) -> list[str]:
        """Why items failed, in plan order."""
        return self.results.filter(pl.col("status") == "failed")["reason"].to_list()


def texts(count: int) -> list[Item]:
    return [Item(id=f"item-{n:04d}", prompt=f"Describe neighbour {n:04d}.") for n in range(count)]


async def run_items(
    model: ChatModel,
    items: Sequence[Item],
    out: Path,
    *,
    limits: Limits | None = None,
    concurrency: int = 64,
    method: TimedStarDTox | None = None,
) -> Ran:
    """Run, close the model, and read the folder back with every checksum checked."""
    method = method or TimedStarDTox()
    plan = RunPlan(
        method=method,
        cast=Cast(model),
        source=ItemList(items),
        limits=limits or Limits(),
        seed=7,
        concurrency=concurrency,
    )
    try:
        async with Lateness() as lateness:
            await run(plan, out, progress=Progress(), stop=StopSignal())
    finally:
        await model.close()
    reader = RunReader(out)
    reader.verify()
    overshoot = [lateness.of(due, ended) for due, ended in method.ends]
    return Ran(out, reader.results().collect(), reader.turns().collect(), overshoot)
