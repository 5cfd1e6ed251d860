"""The kernel beside bare aiohttp: what do method, store and trace cost on top of the calls?

A: StarDTox through `runners.run` into a run folder on disk. B: the same calls by aiohttp alone,
with the bytes that A sent, in the same order of dependence, the answers read and thrown away.
Rounds alternate (A B A B …) and the ratio is taken within a pair, so that a noisy machine hits both
sides alike. With `--peers` the same calls also go through the openai SDK and Inspect AI, if they
are installed.

One process is one core, so a ratio means something else on each side of a line: an item keeps 1.5
calls under way, and where in flight × 1.5 / latency is more than the kernel's calls/s at 0 ms, both
sides wait for their own CPU and not for the endpoint. `--latency-ms` and `--concurrency` look
there.

`--against COMMIT` compares the kernel with that of another commit instead of with bare aiohttp:
    python bench/kernel.py --against HEAD^ --latency-ms 0 --items 500 --rounds 5
"""

import argparse
import asyncio
import gc
import importlib.util
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self
from unittest import mock

import aiohttp
import orjson

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose ray.py would hide Ray

import evenhand
from bench.upstream import MODEL, ROUGH_ITEM, Upstream
from evenhand.agents import Cast
from evenhand.methods import StarDTox
from evenhand.models import Endpoint, wire
from evenhand.runs.runners import JsonlFile, Progress, RunPlan, StopSignal, run

ROOT = Path(__file__).parents[1]
ROUGH_EVERY = 4  # every fourth item is revised once: 3.75 calls an item
HEADERS = {"content-type": "application/json", "accept": "application/json"}  # as Endpoint's

Stages = list[list[bytes]]  # what one item asks: stages one after the other, each side by side
Call = Callable[[bytes], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    latency_ms: int
    concurrency: int
    items: int
    bar: float


SETTINGS: tuple[Setting, ...] = (
    Setting("kernel_0ms", latency_ms=0, concurrency=64, items=3_000, bar=0.5),
    Setting("kernel_50ms", latency_ms=50, concurrency=500, items=4_000, bar=0.95),
)


@dataclass(frozen=True, slots=True)
class Round:
    """One side's work, measured."""

    items: int
    calls: int
    wall: float
    cpu: float
    upstream_cpu: float

    @property
    def items_per_second(self) -> float:
        return self.items / self.wall

    def show(self, name: str) -> str:
        return (
            f"{name:8} {self.items_per_second:7.0f} items/s {self.calls / self.wall:7.0f} calls/s "
            f"{self.cpu / self.calls * 1e6:6.0f} us CPU/call  busy {self.cpu / self.wall:4.0%}, "
            f"upstream {self.upstream_cpu / self.wall:4.0%}"
        )


def write_items(path: Path, items: int) -> None:
    with path.open("wb") as file:
        for number in range(items):
            voice = f" {ROUGH_ITEM}" if number % ROUGH_EVERY == 0 else ""
            prompt = (
                f"Continue the story number {number}{voice}: it was raining when the new nurse and "
                "the engineer from the third floor met at the lift, and neither had an umbrella."
            )
            row = {"id": f"story-{number}", "prompt": prompt, "tags": {"topic": "work"}}
            file.write(orjson.dumps(row) + b"\n")


# -- A: the kernel ---------------------------------------------------------------------------------


async def through_kernel(items: Path, url: str, concurrency: int, out: Path) -> int:
    """Gives the number of calls."""
    model = Endpoint(url, model=MODEL)
    plan = RunPlan(
        method=StarDTox(),
        cast=Cast(model),
        source=JsonlFile(items),
        seed=1,
        concurrency=concurrency,
    )
    progress = Progress()
    try:
        await run(plan, out, progress=progress, stop=StopSignal())
    finally:
        await plan.cast.close()
    assert progress.answered == progress.planned, progress
    assert progress.changed == -(-progress.planned // ROUGH_EVERY), progress
    return progress.calls


def record_stages(items: Path, url: str) -> list[Stages]:
    """What the kernel sends for each item: bytes of a real run, by stage."""
    sent: dict[int, list[bytes]] = {}
    encode = wire.encode

    def listen(request: Any, *rest: Any) -> bytes:
        body = encode(request, *rest)
        sent.setdefault(request.position, []).append(body)
        return body

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(wire, "encode", listen):
        asyncio.run(through_kernel(items, url, 16, Path(folder) / "run"))
    return [_by_stage(sent[position]) for position in sorted(sent)]


def _by_stage(bodies: list[bytes]) -> Stages:
    """Generate, then both evaluators at once; for a rough item revise, then both again."""
    assert len(bodies) in (3, 6), len(bodies)
    return [
        stage
        for draft in range(0, len(bodies), 3)
        for stage in (bodies[draft : draft + 1], bodies[draft + 1 : draft + 3])
    ]


# -- B: the same calls without us ------------------------------------------------------------------


async def through_calls(items: list[Stages], concurrency: int, call: Call) -> int:
    """`call` for every body of every item, in its order of dependence."""
    waiting = iter(items)
    calls = 0

    async def work() -> None:
        nonlocal calls
        for stages in waiting:
            for stage in stages:
                calls += len(stage)
                if len(stage) == 1:
                    await call(stage[0])
                else:
                    await asyncio.gather(*map(call, stage))

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return calls


async def through_aiohttp(items: list[Stages], url: str, concurrency: int) -> int:
    url += "/chat/completions"
    async with aiohttp.ClientSession(
        headers=HEADERS,
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:

        async def call(body: bytes) -> None:
            async with session.post(url, data=body, allow_redirects=False) as response:
                await response.read()

        return await through_calls(items, concurrency, call)


# -- peers -----------------------------------------------------------------------------------------


async def through_openai(items: list[Stages], url: str, concurrency: int) -> int:
    import openai

    bodies = {body: orjson.loads(body) for stages in items for stage in stages for body in stage}
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=8) as client:

        async def call(body: bytes) -> None:
            await client.chat.completions.create(**bodies[body])

        return await through_calls(items, concurrency, call)


def through_inspect(items: list[Stages], url: str, concurrency: int) -> int:
    """A task whose solver asks what the kernel asked, one sample an item, with Inspect's log."""
    import inspect_ai
    import inspect_ai.dataset
    import inspect_ai.model
    import inspect_ai.solver

    model = inspect_ai.model.get_model(
        "openai/" + MODEL,
        base_url=url,
        api_key="none",
        config=inspect_ai.model.GenerateConfig(max_connections=2 * concurrency),
    )

    async def call(body: bytes) -> None:
        asked = orjson.loads(body)
        schema = asked.get("response_format", {}).get("json_schema")
        config = inspect_ai.model.GenerateConfig(
            max_tokens=asked["max_tokens"],
            seed=asked["seed"],
            temperature=asked.get("temperature"),
            response_schema=inspect_ai.model.ResponseSchema(
                name=schema["name"], json_schema=schema["schema"], strict=True
            )
            if schema
            else None,
        )
        kinds = {
            "system": inspect_ai.model.ChatMessageSystem,
            "user": inspect_ai.model.ChatMessageUser,
        }
        messages = [kinds[m["role"]](content=m["content"]) for m in asked["messages"]]
        await model.generate(messages, config=config)

    @inspect_ai.solver.solver
    def replay() -> Any:
        async def solve(state: Any, generate: Any) -> Any:  # noqa: ARG001
            await through_calls([items[int(state.sample_id)]], 1, call)
            return state

        return solve

    samples = [inspect_ai.dataset.Sample(id=n, input=str(n)) for n in range(len(items))]
    with tempfile.TemporaryDirectory() as logs:
        (log,) = inspect_ai.eval(
            inspect_ai.Task(dataset=samples, solver=replay()),
            model=model,
            max_samples=concurrency,
            log_dir=logs,
            display="none",
        )
    assert log.status == "success", log.error
    return sum(len(stage) for stages in items for stage in stages)


# -- measuring -------------------------------------------------------------------------------------


def measured(work: Callable[[], int], items: int, upstream: Upstream) -> Round:
    """`work` gives its number of calls. CPU is that of the whole process, threads included."""
    gc.collect()
    there = upstream.cpu_seconds()
    wall, cpu = time.perf_counter(), time.process_time()
    calls = work()
    return Round(
        items=items,
        calls=calls,
        wall=time.perf_counter() - wall,
        cpu=time.process_time() - cpu,
        upstream_cpu=upstream.cpu_seconds() - there,
    )


class Bench:
    """One setting: its items, what the kernel sends for them, and the sides to compare."""

    def __init__(self, setting: Setting, upstream: Upstream, folder: Path) -> None:
        self._setting = setting
        self._upstream = upstream
        self._url = upstream.url(setting.latency_ms)
        self._folder = folder
        self._items = folder / "items.jsonl"
        write_items(self._items, setting.items)
        self._stages = record_stages(self._items, upstream.url())

    def kernel(self) -> Round:
        with tempfile.TemporaryDirectory(dir=self._folder) as out:

            def work() -> int:
                goes = through_kernel(
                    self._items, self._url, self._setting.concurrency, Path(out) / "run"
                )
                return asyncio.run(goes)

            return measured(work, self._setting.items, self._upstream)

    def bare(self) -> Round:
        return self._calls(lambda *args: asyncio.run(through_aiohttp(*args)), self._setting.items)

    def openai(self) -> Round:
        return self._calls(lambda *args: asyncio.run(through_openai(*args)), 1_000)

    def inspect(self) -> Round:
        return self._calls(through_inspect, 200)

    def _calls(self, through: Callable[[list[Stages], str, int], int], items: int) -> Round:
        stages = self._stages[:items]
        return measured(
            partial(through, stages, self._url, self._setting.concurrency),
            len(stages),
            self._upstream,
        )


def compare(setting: Setting, upstream: Upstream, rounds: int, peers: bool) -> float:
    """The median over the rounds of kernel items/s by bare items/s."""
    print(
        f"\n{setting.name}: {setting.latency_ms} ms latency, {setting.concurrency} items at once, "
        f"{setting.items} items of 3.75 calls"
    )
    pairs: list[tuple[Round, Round]] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(setting, upstream, Path(folder))
        others = {"openai": bench.openai, "inspect_ai": bench.inspect} if peers else {}
        for number in range(1, rounds + 1):
            pairs.append((bench.kernel(), bench.bare()))
            for name, side in zip(("kernel", "bare"), pairs[-1], strict=True):
                print(f"  {number} {side.show(name)}")
            print(f"    ratio {_ratio(*pairs[-1]):.2f}, by CPU {_cpu_ratio(*pairs[-1]):.2f}")
            for name, work in others.items():
                if importlib.util.find_spec(name):
                    print(f"  {number} {work().show(name[:7])}", flush=True)
    ratio = statistics.median(_ratio(*pair) for pair in pairs)
    by_cpu = statistics.median(_cpu_ratio(*pair) for pair in pairs)
    verdict = "met" if ratio >= setting.bar else "MISSED"
    print(f"  median ratio {ratio:.2f} (bar {setting.bar}: {verdict}), by CPU {by_cpu:.2f}")
    return ratio


def _ratio(kernel: Round, bare: Round) -> float:
    return kernel.items_per_second / bare.items_per_second


def _cpu_ratio(kernel: Round, bare: Round) -> float:
    return (bare.cpu / bare.calls) / (kernel.cpu / kernel.calls)


# -- against another commit ------------------------------------------------------------------------


def play_rounds(url: str, items: int, concurrency: int) -> None:
    """Run the kernel once for each line of the input, and print what it took: the child process of
    `--against`."""
    print(evenhand.__file__, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "items.jsonl"
        write_items(file, items)
        for number, _ in enumerate(sys.stdin):
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            out = Path(folder) / f"run-{number}"
            calls = asyncio.run(through_kernel(file, url, concurrency, out))
            took = time.perf_counter() - wall, time.process_time() - cpu
            print(calls, *took, flush=True)


class Source:
    """The kernel of one source tree, in a process of its own."""

    def __init__(self, src: Path, setting: Setting, upstream: Upstream) -> None:
        self._src = src
        self._setting = setting
        self._upstream = upstream

    def __enter__(self) -> Self:
        setting = self._setting
        self._child = subprocess.Popen(
            [sys.executable, __file__, "--play-rounds", self._upstream.url(setting.latency_ms),
             "--items", str(setting.items), "--concurrency", str(setting.concurrency)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(self._src)},
        )  # fmt: skip
        loaded = self._line()
        assert Path(loaded).is_relative_to(self._src), f"{loaded} is not of {self._src}"
        self.round()  # the first one warms up
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate()

    def round(self) -> Round:
        assert self._child.stdin is not None
        there = self._upstream.cpu_seconds()
        self._child.stdin.write("\n")
        self._child.stdin.flush()
        calls, wall, cpu = self._line().split()
        return Round(
            items=self._setting.items,
            calls=int(calls),
            wall=float(wall),
            cpu=float(cpu),
            upstream_cpu=self._upstream.cpu_seconds() - there,
        )

    def _line(self) -> str:
        assert self._child.stdout is not None
        line = self._child.stdout.readline().strip()
        assert line, "the process has ended"
        return line


def compare_commit(commit: str, setting: Setting, upstream: Upstream, rounds: int) -> float:
    """The median over the rounds of items/s here by items/s at a commit. Which goes first changes
    from round to round."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "src"]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    print(f"\n{setting.name}: here and {commit}, {setting.items} items of 3.75 calls")
    pairs: list[tuple[Round, Round]] = []
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        with (
            Source(ROOT / "src", setting, upstream) as here,
            Source(Path(folder) / "src", setting, upstream) as there,
        ):
            for number in range(1, rounds + 1):
                if number % 2:
                    pair = here.round(), there.round()
                else:
                    pair = (there.round(), here.round())[::-1]
                pairs.append(pair)
                for name, side in zip(("here", "there"), pair, strict=True):
                    print(f"  {number} {side.show(name)}")
                print(f"    ratio {_ratio(*pair):.2f}, by CPU {_cpu_ratio(*pair):.2f}", flush=True)
    ratio = statistics.median(_ratio(*pair) for pair in pairs)
    by_cpu = statistics.median(_cpu_ratio(*pair) for pair in pairs)
    print(f"  median ratio {ratio:.2f}, by CPU {by_cpu:.2f} (above 1: faster than {commit})")
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="pairs per setting, at least 5")
    parser.add_argument("--peers", action="store_true", help="also openai SDK and Inspect AI")
    parser.add_argument("--latency-ms", type=int, help="one setting of your own, with the next two")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--items", type=int, default=3_000)
    parser.add_argument("--against", metavar="COMMIT", help="compare with this commit's kernel")
    parser.add_argument("--play-rounds", metavar="URL", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.play_rounds:
        play_rounds(chosen.play_rounds, chosen.items, chosen.concurrency)
        return
    settings = SETTINGS
    if chosen.latency_ms is not None:
        name = f"kernel_{chosen.latency_ms}ms"
        settings = (Setting(name, chosen.latency_ms, chosen.concurrency, chosen.items, bar=0.0),)
    with Upstream() as upstream:
        ratios = {
            s.name: compare_commit(chosen.against, s, upstream, chosen.rounds)
            if chosen.against
            else compare(s, upstream, chosen.rounds, chosen.peers)
            for s in settings
        }
    print("RESULT", *(f"{name}={ratio:.2f}" for name, ratio in ratios.items()))


if __name__ == "__main__":
    main()
