"""Our job on Ray beside bare Ray Data: what do method, store and trace cost on a cluster?

A: StarDTox through `run_on_ray` into a run folder. B: Ray Data alone (`bare_ray.py`), which reads
the same table, makes the same calls with the same bytes in the same order of dependence, with as
many actors and items in flight, and writes what was sent and what came back, a row per item. Both
run on one cluster that stays up; a job's time is all of it, the start of its actors included.

Rounds alternate (A B A B …) and the ratio is taken within a pair. The endpoint has a process of its
own and takes its part of the cores, so with two cores there is one actor by default. CPU is that of
this process and all of Ray's, without the endpoint's: where a machine has fewer cores than busy
processes, it tells more than rows/s.
"""

import argparse
import asyncio
import gc
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose ray.py would hide Ray

import psutil
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
import ray

from bench import actor_profile
from bench.bare_ray import save_stages, through_ray_data
from bench.kernel import record_stages, write_items
from bench.processes import TreeCpu
from bench.upstream import MODEL, Upstream
from evenhand.agents import Cast
from evenhand.methods import StarDTox
from evenhand.models import Endpoint
from evenhand.runs.runners import Progress, RunPlan, StopSignal
from evenhand.runs.runners.prompt_files import ParquetTable
from evenhand.runs.runners.ray import run_on_ray

BARS = {0: 0.7, 50: 0.9}  # by latency in ms
_SHARDS = 8


@dataclass(frozen=True, slots=True)
class Job:
    """One side's work, measured."""

    rows: int
    wall: float
    cpu: float
    cpu_by_process: dict[str, float]
    upstream_cpu: float
    written: int
    unpacked: int

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.wall

    @property
    def cpu_per_row(self) -> float:
        return self.cpu / self.rows

    def show(self, name: str) -> str:
        parts = ", ".join(
            f"{process} {seconds / self.cpu:.0%}"
            for process, seconds in list(self.cpu_by_process.items())[:4]
        )
        return (
            f"{name:8} {self.wall:6.1f} s {self.rows_per_second:6.0f} rows/s "
            f"{self.cpu_per_row * 1e3:6.2f} ms CPU/row  busy {self.cpu / self.wall:4.0%}, "
            f"upstream {self.upstream_cpu / self.wall:4.0%}, wrote {self.written / 1e6:.1f} MB "
            f"({self.unpacked / 1e6:.1f} before zstd)\n             CPU: {parts}"
        )


@dataclass(frozen=True, slots=True)
class Input:
    """A table, and what our side sends for its rows."""

    rows: int
    table: Path
    stages: Path

    @classmethod
    def prepare(cls, rows: int, upstream: Upstream, folder: Path) -> "Input":
        folder.mkdir()
        made = cls(rows, folder / "table", folder / "stages.pickle")
        lines = folder / "items.jsonl"
        write_items(lines, rows)
        save_stages(record_stages(lines, upstream.url()), made.stages)
        items = pyarrow.json.read_json(lines).select(["id", "prompt"])
        items = items.append_column("position", pa.array(range(rows), pa.int64()))
        made.table.mkdir()
        size = -(-rows // _SHARDS)
        for number in range(_SHARDS):
            shard = items.slice(number * size, size)
            pq.write_table(shard, made.table / f"{number}.parquet")
        return made


class Sides:
    """Both sides of the comparison, at one latency."""

    def __init__(
        self, upstream: Upstream, latency_ms: int, actors: int, concurrency: int, folder: Path
    ) -> None:
        self._upstream = upstream
        self._url = upstream.url(latency_ms)
        self._actors = actors
        self._in_flight = concurrency
        self._folder = folder

    def ours(self, given: Input) -> Job:
        def work(out: Path) -> None:
            progress = Progress()
            asyncio.run(self._run(given, out, progress))
            assert progress.answered == given.rows, progress

        return self._measured(given.rows, work)

    async def _run(self, given: Input, out: Path, progress: Progress) -> None:
        plan = RunPlan(
            method=StarDTox(),
            cast=Cast(Endpoint(self._url, model=MODEL)),
            source=ParquetTable(str(given.table), prompt_column="prompt", id_column="id"),
            seed=1,
            concurrency=self._in_flight,
        )
        await run_on_ray(plan, out, progress=progress, stop=StopSignal(), actors=self._actors)

    def bare(self, given: Input) -> Job:
        def work(out: Path) -> None:
            through_ray_data(
                given.table,
                out,
                self._url,
                given.stages,
                given.rows,
                self._in_flight,
                self._actors,
            )
            written = sum(pq.read_metadata(file).num_rows for file in out.glob("*.parquet"))
            assert written == given.rows, written

        return self._measured(given.rows, work)

    def _measured(self, rows: int, work: Callable[[Path], None]) -> Job:
        gc.collect()
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            out = Path(folder) / "out"
            there = self._upstream.cpu_seconds()
            started = time.perf_counter()
            with TreeCpu(leave_out=self._upstream.pid) as cpu:
                work(out)
                wall = time.perf_counter() - started
            files = list(out.rglob("*.parquet"))
            return Job(
                rows=rows,
                wall=wall,
                cpu=cpu.seconds,
                cpu_by_process=cpu.by_name(),
                upstream_cpu=self._upstream.cpu_seconds() - there,
                written=sum(file.stat().st_size for file in files),
                unpacked=sum(map(_unpacked_bytes, files)),
            )


def _unpacked_bytes(file: Path) -> int:
    metadata = pq.read_metadata(file)
    return sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))


def compare(sides: Sides, given: Input, few: Input, rounds: int, bar: float | None) -> float:
    """The median over the rounds of our rows/s by those of Ray Data alone."""
    for _ in range(2):  # the first job of each kind also warms the cluster up
        starts = sides.ours(few).wall, sides.bare(few).wall
    pairs: list[tuple[Job, Job]] = []
    for number in range(1, rounds + 1):
        ours, bare = sides.ours(given), sides.bare(given)
        pairs.append((ours, bare))
        load = psutil.getloadavg()[0]
        print(f"  {number} {ours.show('evenhand')}\n  {number} {bare.show('bare')}")
        print(f"    ratio {_ratio(ours, bare):.2f}, load average {load:.1f}", flush=True)
    ratio = statistics.median(_ratio(*pair) for pair in pairs)
    by_cpu = statistics.median(bare.cpu_per_row / ours.cpu_per_row for ours, bare in pairs)
    verdict = "" if bar is None else f" (bar {bar}: {'met' if ratio >= bar else 'MISSED'})"
    print(f"  median ratio {ratio:.2f}{verdict}, by CPU {by_cpu:.2f}")
    whole = statistics.median(ours.wall for ours, _ in pairs)
    bare_whole = statistics.median(bare.wall for _, bare in pairs)
    print(
        f"  start-up, a job of {few.rows} rows: evenhand {starts[0]:.1f} s "
        f"({starts[0] / whole:.0%} of the whole), bare {starts[1]:.1f} s "
        f"({starts[1] / bare_whole:.0%})"
    )
    return ratio


def _ratio(ours: Job, bare: Job) -> float:
    return ours.rows_per_second / bare.rows_per_second


def _start_cluster(profiles: Path | None) -> None:
    # Ray's workers inherit it and so find `bench`.
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    ray.init(
        address="local",  # not a cluster that somebody else has up on this machine
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env=actor_profile.runtime_env(profiles) if profiles else None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="pairs per setting")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--actors", type=int, default=max(1, (os.cpu_count() or 1) - 1))
    parser.add_argument("--concurrency", type=int, default=256, help="items per actor")
    parser.add_argument("--latency-ms", type=int, nargs="*", default=list(BARS))
    parser.add_argument(
        "--profile", action="store_true", help="where the actors' CPU goes (slower, so no ratio)"
    )
    chosen = parser.parse_args()
    with Upstream() as upstream, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = Input.prepare(chosen.rows, upstream, folder / "all")
        few = Input.prepare(64, upstream, folder / "few")
        _start_cluster(folder / "profiles" if chosen.profile else None)
        ratios: dict[str, float] = {}
        for latency in chosen.latency_ms:
            print(
                f"\n{latency} ms latency, {chosen.actors} actors of {chosen.concurrency} items in "
                f"flight, {chosen.rows} rows of 3.75 calls"
            )
            sides = Sides(upstream, latency, chosen.actors, chosen.concurrency, folder)
            if chosen.profile:
                print("  " + sides.ours(given).show("evenhand"))
                print(actor_profile.summary(folder / "profiles"))
            else:
                ratios[f"ray_{latency}ms"] = compare(
                    sides, given, few, chosen.rounds, BARS.get(latency)
                )
        ray.shutdown()
    if ratios:
        print("RESULT", *(f"{name}={ratio:.2f}" for name, ratio in ratios.items()))


if __name__ == "__main__":
    main()
