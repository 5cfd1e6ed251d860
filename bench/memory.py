"""Does a job on Ray keep its memory, and its speed, however many rows it has?

10 thousand, 100 thousand and 1 million rows of a Parquet table through `run_on_ray`, each size with
a driver and a cluster of its own. The method is the plain prompt (one call a row) and the model a
scripted one: so a million rows take minutes, and all that grows with the rows is there: shares,
part files, ledger, turns. Their number per row does not matter to what is asked here. With
`--conversations` a row is a conversation of six turns, a system prompt and a tool call among them.

Memory is looked at from outside, twice a second. Ray maps its object store, which is shared, into
each process; `private` is what is left without shared pages, and the growth is taken from it. Time
is that of the stream: from the moment that the first row is seen answered to the end of the job,
over the rows that were left at that moment, so that starting Ray and its actors is not in it. CPU
time, of the whole cluster from that moment on, tells whether a busy machine has spoilt the clock.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose ray.py would hide Ray

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bench.processes import TreeCpu, family
from evenhand.agents import Cast
from evenhand.methods import DefaultPrompt
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import Progress, RunPlan, StopSignal
from evenhand.runs.runners.prompt_files import ParquetTable

SIZES = (10_000, 100_000, 1_000_000)
RSS_BAR, TIME_BAR = 0.15, 0.10
_SHARD_ROWS = 50_000
_LOOK_SECONDS = 0.5
_STARTED = "started"  # a file: the first row was answered
_TEXT = "The engineer and the nurse shared an umbrella and talked about the heating."


@dataclass(slots=True)
class Seen:
    """Of one process or of several: bytes, the most and the last."""

    most: int = 0
    last: int = 0
    most_private: int = 0
    last_private: int = 0

    def add(self, rss: int, private: int) -> None:
        if not rss:  # not there yet, or not any more
            return
        self.last, self.last_private = rss, private
        self.most, self.most_private = max(self.most, rss), max(self.most_private, private)

    def show(self) -> str:
        return (
            f"private {self.most_private / 2**20:5.0f} MB at most, "
            f"{self.last_private / 2**20:5.0f} at the end; "
            f"RSS {self.most / 2**20:5.0f} and {self.last / 2**20:5.0f}"
        )


@dataclass(frozen=True, slots=True)
class Run:
    rows: int
    driver: Seen
    actor: Seen  # at each moment the largest one
    seconds: float
    startup: float
    seconds_per_row: float
    cpu_per_row: float

    def show(self) -> str:
        return (
            f"{self.rows:9,} rows in {self.seconds:.0f} s, the first after {self.startup:.1f} s, "
            f"then {self.seconds_per_row * 1e6:.0f} us a row, {self.cpu_per_row * 1e6:.0f} us CPU\n"
            f"          driver {self.driver.show()}\n          actor  {self.actor.show()}"
        )


# -- the driver, in a process of its own -----------------------------------------------------------


def drive(folder: Path, actors: int, *, conversations: bool) -> None:
    """Prints its times."""
    import ray

    ray.init(
        address="local",  # not a cluster that somebody else has up on this machine
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    times = asyncio.run(_run(folder, actors, conversations=conversations))
    print(json.dumps(times))


async def _run(folder: Path, actors: int, *, conversations: bool) -> dict[str, float]:
    from evenhand.runs.runners.ray import run_on_ray

    columns = {"messages_column": "messages"} if conversations else {"prompt_column": "prompt"}
    plan = RunPlan(
        method=DefaultPrompt(),
        cast=Cast(ScriptedModel(_script)),
        source=ParquetTable(str(folder / "table"), id_column="id", **columns),
        seed=1,
    )
    progress, started = Progress(), time.perf_counter()
    job = asyncio.create_task(
        run_on_ray(plan, folder / "run", progress=progress, stop=StopSignal(), actors=actors)
    )
    while not progress.answered and not job.done():
        await asyncio.sleep(0.05)
    first, answered = time.perf_counter(), progress.answered
    (folder / _STARTED).touch()
    await job
    end = time.perf_counter()
    assert progress.answered == len(plan.source), progress
    return {
        "seconds": end - started,
        "startup": first - started,
        "stream": end - first,
        "streamed": progress.answered - answered,
    }


def _script(request: ModelRequest) -> str:  # noqa: ARG001
    return _TEXT


# -- outside ---------------------------------------------------------------------------------------


def measure(rows: int, actors: int, *, conversations: bool) -> Run:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_table(folder / "table", rows, conversations=conversations)
        command = [sys.executable, __file__, "--drive", name, "--actors", str(actors)]
        command += ["--conversations"] if conversations else []
        seen, actor, startup_cpu = Seen(), Seen(), 0.0
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver,
            TreeCpu(driver.pid) as cpu,
        ):
            while driver.poll() is None:
                _look(driver.pid, seen, actor)
                if not (folder / _STARTED).exists():
                    startup_cpu = cpu.seconds
                time.sleep(_LOOK_SECONDS)
            assert driver.stdout is not None
            said = driver.stdout.read()
        assert driver.returncode == 0, said
        times = json.loads(said.splitlines()[-1])
        return Run(
            rows=rows,
            driver=seen,
            actor=actor,
            seconds=times["seconds"],
            startup=times["startup"],
            seconds_per_row=times["stream"] / times["streamed"],
            cpu_per_row=(cpu.seconds - startup_cpu) / times["streamed"],
        )


def _look(pid: int, driver: Seen, actor: Seen) -> None:
    actors = [(0, 0)]
    for process in family(pid):
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):  # it has just ended
            memory = process.memory_info()
            private = memory.rss - memory.shared
            if process.pid == pid:
                driver.add(memory.rss, private)
            elif "MapWorker" in process.cmdline()[0]:
                actors.append((memory.rss, private))
    actor.add(*max(actors, key=lambda size: size[1]))


def _conversation(number: int) -> list[dict[str, Any]]:
    """Six turns, of which the last is to be answered."""
    call = {"id": "c1", "type": "function",
            "function": {"name": "stories", "arguments": f'{{"number": {number}}}'}}  # fmt: skip
    return [
        {"role": "system", "content": "You write stories. Use the tool to look one up."},
        {"role": "user", "content": f"What was story {number} about?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "It was raining at the lift.", "tool_call_id": "c1"},
        {"role": "assistant", "content": f"Story {number} is about rain. {_TEXT}"},
        {"role": "user", "content": f"Continue story {number}: it was raining at the lift."},
    ]


def _write_table(folder: Path, rows: int, *, conversations: bool) -> None:
    folder.mkdir()
    for start in range(0, rows, _SHARD_ROWS):
        numbers = range(start, min(start + _SHARD_ROWS, rows))
        shard: dict[str, list[Any]] = {"id": [f"story-{number}" for number in numbers]}
        if conversations:
            shard["messages"] = list(map(_conversation, numbers))
        else:
            shard["prompt"] = [f"Continue story {n}: it was raining at the lift." for n in numbers]
        pq.write_table(pa.table(shard), folder / f"{start:09}.parquet")


def growth(runs: list[Run]) -> tuple[float, float]:
    """From the second largest size to the largest: of memory (driver or actor, whichever grows
    more) and of the time a row takes."""
    before, after = runs[-2:]
    memory = max(
        after.driver.most_private / before.driver.most_private,
        after.actor.most_private / before.actor.most_private,
    )
    return memory - 1, after.seconds_per_row / before.seconds_per_row - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--actors", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--conversations", action="store_true", help="rows of six turns")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.drive:
        drive(chosen.drive, chosen.actors, conversations=chosen.conversations)
        return
    runs: list[Run] = []
    for rows in sorted(chosen.sizes):
        runs.append(measure(rows, chosen.actors, conversations=chosen.conversations))
        load = psutil.getloadavg()[0]
        print(f"{runs[-1].show()}\n          load average {load:.1f}", flush=True)
    memory, seconds = growth(runs)
    by_cpu = runs[-1].cpu_per_row / runs[-2].cpu_per_row - 1
    driver = runs[-1].driver.most / runs[-2].driver.most - 1
    actor = runs[-1].actor.most / runs[-2].actor.most - 1
    for name, grown, bar in (("memory", memory, RSS_BAR), ("time a row", seconds, TIME_BAR)):
        print(f"{name}: {grown:+.1%} (bar {bar:.0%}: {'met' if grown <= bar else 'MISSED'})")
    print(
        f"CPU a row: {by_cpu:+.1%}; RSS with shared pages: driver {driver:+.1%}, actor {actor:+.1%}"
    )
    print(f"RESULT rss_growth={memory:.3f} time_growth={seconds:.3f}")


if __name__ == "__main__":
    main()
