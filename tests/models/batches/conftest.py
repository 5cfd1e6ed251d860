"""Runs by batches, the direct run that they must equal, and processes that can be killed."""

import asyncio
import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.runs.store import RunReader

from . import provider, worker
from .provider import Faults, Provider
from .worker import Job

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["__main__", "aiohttp.web", "evenhand.runs.runners", worker.__name__])
# What a batch has otherwise than a call: when it was asked, by whom, and a thought of Anthropic's.
# Of two agents that are asked again side by side, whose reply comes first is asked first.
OTHERWISE = ["index", "started_us", "seconds", "attempts", "batch", "adapted", "thinking", "seed"]


FIGURES: Counter[str] = Counter()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if FIGURES:
        said = ", ".join(f"{name} {count}" for name, count in sorted(FIGURES.items()))
        terminalreporter.write_line(f"figures of batches: {said}")


@dataclass(frozen=True)
class Rows:
    """A run, row by row, without the address that it was made at."""

    results: pl.DataFrame
    turns: pl.DataFrame
    batches: list[str]

    @classmethod
    def of(cls, out: str, url: str) -> "Rows":
        reader = RunReader(out)
        reader.verify()
        turns = reader.turns().collect()
        bare = turns.drop([name for name in OTHERWISE if name in turns.columns])
        words = pl.col("message").str.replace_all(url, "URL", literal=True)
        errors = pl.col("error_message").str.replace_all(url, "URL", literal=True)
        return cls(
            reader.results().with_columns(words).collect(),
            bare.with_columns(errors).sort("position", "request", "occurrence"),
            turns["batch"].to_list(),
        )

    def equals(self, other: "Rows") -> bool:
        return self.results.equals(other.results) and self.turns.equals(other.turns)


@dataclass(frozen=True)
class Ran:
    """A run by batches against a server in this process."""

    rows: Rows
    provider: Provider
    paid: Counter[str]


def paid(log: Path) -> Counter[str]:
    """How often each request was answered, by the provider's own log."""
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


async def ran(folder: Path, faults: Faults, job: Callable[[str, str], Job]) -> Ran:
    """Run a job against a server with these faults."""
    log = folder / "paid"
    server = Provider(str(log), faults)
    runner, url = await provider.start(server)
    try:
        made = job(str(folder / "run"), url)
        await worker.work(made)
        return Ran(Rows.of(made.out, url), server, paid(log))
    finally:
        await runner.cleanup()


@pytest.fixture(scope="session")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The same items, asked directly."""
    folder = tmp_path_factory.mktemp("direct")
    found = asyncio.run(ran(folder, Faults(), lambda out, url: Job(out=out, url=url, batch=False)))
    return found.rows


class Process:
    """A run by batches in a process of its own."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._process = _FORKS.Process(target=worker.main, args=(job,), daemon=True)
        self._process.start()

    def wait(self, seconds: float = 120.0) -> int:
        """The exit code; minus the signal if one ended it."""
        self._process.join(seconds)
        code = self._process.exitcode
        if code is None:
            self._process.kill()
            raise AssertionError(f"the run did not end within {seconds:g} s")
        return code

    def kill_after(self, seconds: float) -> bool:
        """Kill -9; False if it had ended before."""
        self._process.join(seconds)
        self._process.kill()
        self._process.join()
        return self._process.exitcode == -signal.SIGKILL

    def finish(self) -> None:
        code = self.wait()
        error = Path(f"{self._job.out}.err")
        assert code == 0, error.read_text() if error.exists() else f"code {code}"


@dataclass(frozen=True)
class Served:
    """A server in a process of its own."""

    url: str
    log: Path


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[[Faults], Served]]:
    """Start servers that outlive the runs that are killed."""
    started = []

    def start(faults: Faults) -> Served:
        log, port = tmp_path / "paid", tmp_path / "port"
        process = _FORKS.Process(
            target=provider.serve, args=(str(log), str(port), faults), daemon=True
        )
        process.start()
        started.append(process)
        for _ in range(3000):
            if port.exists():
                return Served(port.read_text(), log)
            process.join(0.01)
        raise AssertionError("the server did not start")

    yield start
    for process in started:
        process.kill()
        process.join()
