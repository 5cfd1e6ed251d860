"""Real processes, and the figures of what they went through."""

import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.runs.runners import Progress, StopSignal, replay_of, run
from evenhand.runs.store import RunReader

from . import worker
from .checker import Committed, check_whole, started

FIGURES: Counter[str] = Counter()

# Forked from a process that has imported everything: a start costs 20 ms instead of a second.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["__main__", "aiohttp.web", "evenhand.runs.runners", worker.__name__])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if FIGURES:
        said = ", ".join(f"{name} {count}" for name, count in sorted(FIGURES.items()))
        terminalreporter.write_line(f"crash figures: {said}")


_STARTED: list["Runner"] = []


@pytest.fixture(autouse=True)
def no_runner_is_left() -> Iterator[None]:
    """A stopped process would keep the whole session from ending."""
    yield
    while _STARTED:
        _STARTED.pop().killed()


class Runner:
    """A worker process, forked or (`script=True`) started as a command."""

    def __init__(self, job: worker.Job, *, script: bool = False) -> None:
        self.job = job
        _STARTED.append(self)
        if script:
            path = Path(f"{job.log}.job.json")
            path.write_text(json.dumps(asdict(job)))
            self._process: Any = subprocess.Popen([sys.executable, worker.__file__, path])
        else:
            self._process = _FORKS.Process(target=worker.main, args=(job,), daemon=True)
            self._process.start()
        self.pid: int = self._process.pid

    def wait(self, timeout: float = 400.0) -> int:
        """The exit code; minus the signal if one ended it."""
        if isinstance(self._process, subprocess.Popen):
            return self._process.wait(timeout)
        self._process.join(timeout)
        code: int | None = self._process.exitcode
        if code is None:
            self.signal(signal.SIGKILL)
            raise AssertionError(f"process {self.pid} did not end within {timeout} s")
        return code

    def finish(self) -> dict[str, Any]:
        """How it ended, which must be well."""
        code = self.wait()
        assert code == 0, f"exit code {code}: {self.end()}"
        assert self.stderr() == ""
        return self.end()

    def refused(self, error: str) -> str:
        """The message of the error that evenhand ended it with."""
        code, end = self.wait(), self.end()
        assert (code, end.get("error")) == (worker.REFUSED, error), f"exit code {code}: {end}"
        assert self.stderr() == ""
        return str(end["message"])

    def end(self) -> dict[str, Any]:
        path = Path(f"{self.job.log}.{self.pid}.end")
        end: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return end

    def stderr(self) -> str:
        path = Path(f"{self.job.log}.{self.pid}.err")
        return path.read_text() if path.exists() else ""

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def killed(self) -> bool:
        """Kill -9; False if it had ended before."""
        self._process.kill()
        return self.wait() == -signal.SIGKILL

    def until_stopped(self) -> None:
        """Wait for a SIGSTOP to have taken effect."""
        stat = Path(f"/proc/{self.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "it did not stop")


def until(true: Callable[[], bool], otherwise: str, seconds: float = 300.0) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, otherwise
        time.sleep(0.002)


@dataclass(frozen=True)
class Unbroken:
    """The run that nothing happened to."""

    job: worker.Job
    whole: Committed
    calls: Counter[str]


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    folder = tmp_path_factory.mktemp("unbroken")
    job = worker.Job(out=str(folder / "run"), log=str(folder / "calls"))
    Runner(job).finish()
    return Unbroken(job, check_whole(folder / "run", job.items), started(folder / "calls"))


def replayed(job: worker.Job) -> list[dict[str, Any]]:
    """The results that the run's own turns give, without any model."""
    again = Path(f"{job.out}-replayed")
    plan = replace(worker.plan(job), cast=replay_of(job.out))
    asyncio.run(run(plan, again, progress=Progress(), stop=StopSignal()))
    return RunReader(again).results().collect().to_dicts()


class SmallDisk:
    """A tmpfs of a few pages."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mount(self, size: int) -> None:
        _as_root("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(self.path))

    def enlarge(self, size: int = 64 * 1024 * 1024) -> None:
        """The same disk with more room; what was put there only to fill it goes."""
        _as_root("mount", "-o", f"remount,size={size}", str(self.path))
        (self.path / "ballast").unlink(missing_ok=True)

    def used(self) -> int:
        return shutil.disk_usage(self.path).used

    def unmount(self) -> None:
        while os.path.ismount(self.path):  # lazily: a test that failed may have left it open
            subprocess.run(["umount", "--lazy", self.path], check=True)


def _as_root(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{command[0]} is not permitted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    place = tmp_path / "disk"
    place.mkdir()
    small = SmallDisk(place)
    yield small
    small.unmount()


@pytest.fixture
def server(job: worker.Job, tmp_path: Path) -> Iterator[worker.Job]:
    """The same run against a model behind HTTP, which keeps the log of calls."""
    port = tmp_path / "port"
    process = _FORKS.Process(target=worker.serve, args=(job.log, str(port), 0.05), daemon=True)
    process.start()
    until(port.exists, "the server did not start")
    yield replace(job, url=f"http://127.0.0.1:{port.read_text()}/v1")
    process.kill()
    process.join()


@pytest.fixture
def job(tmp_path: Path, unbroken: Unbroken) -> worker.Job:
    """The same run, in a folder of its own."""
    return replace(unbroken.job, out=str(tmp_path / "run"), log=str(tmp_path / "calls"))
