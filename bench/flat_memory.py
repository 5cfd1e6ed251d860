"""Does a long run keep its memory? All of BBQ's 58,492 items through the kernel, no network.

The items are open questions to StarDTox, every fourth is revised once (3.75 calls an item, 219,345
turns in all), and everything is stored: journal, turns, results, ledger. The measure is the most
resident memory seen after 10 thousand items, by that at 10 thousand.
"""

import argparse
import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import psutil

from evenhand.agents import Cast
from evenhand.domain import Event
from evenhand.methods import StarDTox
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runners import JsonlFile, Plan, Progress, StopSignal, run

ITEMS = 58_492  # BBQ, all categories
WARM_AT = 10_000
BAR = 0.10

_MARK = "as everybody knows"
_TEXT = "The engineer and the nurse shared an umbrella and talked about the heating. " * 3


def measure(
    items: int = ITEMS, *, every: int = 5_000, in_flight: int = 64
) -> list[tuple[int, float]]:
    """(items finished, resident megabytes), at every so many items and at the end."""
    watch = _Watch(every=every)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "items.jsonl"
        _write_items(source, items)
        plan = Plan(
            method=StarDTox(),
            cast=Cast(ScriptedModel(_script)),
            source=JsonlFile(source),
            seed=1,
            in_flight=in_flight,
        )
        asyncio.run(_go(plan, Path(folder) / "run", watch))
    assert watch.answered == items, watch
    return watch.seen


def growth(seen: list[tuple[int, float]], warm_at: int = WARM_AT) -> float:
    """The most memory after `warm_at` items by that at `warm_at`, minus 1."""
    warm = next(megabytes for done, megabytes in seen if done >= warm_at)
    return max(megabytes for done, megabytes in seen if done >= warm_at) / warm - 1


@dataclass(slots=True)
class _Watch(Progress):
    """Counters of a run that look at the process's memory as they pass."""

    every: int = 5_000
    seen: list[tuple[int, float]] = field(default_factory=list)

    def count(self, event: Event) -> None:
        Progress.count(self, event)
        done = self.answered + self.failed
        if done % self.every == 0 or done == self.planned:
            self.seen.append((done, psutil.Process().memory_info().rss / 2**20))


async def _go(plan: Plan, out: Path, watch: _Watch) -> None:
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
    chosen = parser.parse_args()
    wall, cpu = time.perf_counter(), time.process_time()
    seen = measure(chosen.items)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for done, megabytes in seen:
        print(f"{done:7} items {megabytes:8.1f} MB")
    print(f"{chosen.items / wall:.0f} items/s, {cpu / chosen.items * 1e6:.0f} us CPU an item")
    print(f"RESULT rss_growth={growth(seen):.3f}")


if __name__ == "__main__":
    main()
