"""Does a long run keep its memory? All of BBQ's 58,492 items through the kernel, no network.

The items are open questions to StarDTox, every fourth is revised once (3.75 calls an item, 219,345
turns in all), and everything is stored: journal, turns, results, ledger. The measure is the most
resident memory that the process ever had, by the most it had in its first 20 thousand items. Peaks,
as the kernel keeps them: a part takes 20 MB while it is written, so that readings of the moment say
when they were taken. One heap for all threads: where each may open its own, memory takes a step of
40 MB at a random moment, once, which says nothing of what is kept.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from evenhand.agents import Cast
from evenhand.core import Event
from evenhand.methods import StarDTox
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import JsonlFile, Progress, RunPlan, StopSignal, run

ITEMS = 58_492  # BBQ, all categories
EARLY = 20_000
ONE_HEAP = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}

_MARK = "as everybody knows"
_TEXT = "The engineer and the nurse shared an umbrella and talked about the heating. " * 3


def measure(
    items: int = ITEMS, *, every: int = 2_500, concurrency: int = 64
) -> list[tuple[int, float]]:
    """(items finished, most resident megabytes so far), every so many items and at the end."""
    watch = _Watch(every=every)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "items.jsonl"
        _write_items(source, items)
        plan = RunPlan(
            method=StarDTox(),
            cast=Cast(ScriptedModel(_script)),
            source=JsonlFile(source),
            seed=1,
            concurrency=concurrency,
        )
        asyncio.run(_go(plan, Path(folder) / "run", watch))
    assert watch.answered == items, watch
    return watch.seen


def growth(seen: list[tuple[int, float]], early: int = EARLY) -> float:
    """The most memory of all by the most during the early items, minus 1."""
    before = next(megabytes for done, megabytes in seen if done >= early)
    return seen[-1][1] / before - 1


@dataclass(slots=True)
class _Watch(Progress):
    """Counters of a run that look at the process's memory as they pass."""

    every: int = 2_500
    seen: list[tuple[int, float]] = field(default_factory=list)

    def count(self, event: Event) -> None:
        Progress.count(self, event)
        done = self.answered + self.failed
        if done % self.every == 0 or done == self.planned:
            self.seen.append((done, _most_resident()))


def _most_resident() -> float:
    """Of this process alone: `ru_maxrss` begins with what its parent had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [kilobytes] = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kilobytes) / 1024


async def _go(plan: RunPlan, out: Path, watch: _Watch) -> None:
    await run(plan, out, progress=watch, stop=StopSignal())


def _script(request: ModelRequest) -> str:
    words = request.messages[-1].content
    match request.schema.name if request.schema else "":
        case "harm":
            return f'{{"reason": "As the text says.", "harm": {62 if _MARK in words else 2}}}'
        case "quality":
            return '{"reason": "None.", "fluency": 93, "coherence": 91, "relevance": 88}'
        case _:
            rough = "blunt" in words and _MARK not in words
            return f"{_TEXT} {_MARK}" if rough else _TEXT


def _write_items(path: Path, items: int) -> None:
    with path.open("wb") as file:
        for number in range(items):
            voice = "blunt" if number % 4 == 0 else "warm"
            prompt = f"Continue story {number} in a {voice} voice: it was raining at the lift."
            file.write(orjson.dumps({"id": f"story-{number}", "prompt": prompt}) + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--early", type=int, default=EARLY)
    chosen = parser.parse_args()
    if not ONE_HEAP.items() <= os.environ.items():  # read when a process starts
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_HEAP})
    wall, cpu = time.perf_counter(), time.process_time()
    seen = measure(chosen.items)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for done, megabytes in seen:
        print(f"{done:7} items {megabytes:8.1f} MB at most")
    print(f"{chosen.items / wall:.0f} items/s, {cpu / chosen.items * 1e6:.0f} us CPU an item")
    print(f"RESULT rss_growth={growth(seen, chosen.early):.3f}")


if __name__ == "__main__":
    main()
