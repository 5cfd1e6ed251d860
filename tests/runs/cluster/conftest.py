"""A cluster for the whole session, drivers and servers as processes, and who is killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.runs.crash.conftest import until
from tests.runs.crash.worker import items

from . import driver, upstream
from .driver import Job
from .nodes import Nodes

ROOT = Path(__file__).parents[3]
FIGURES: Counter[str] = Counter()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if FIGURES:
        said = ", ".join(f"{name} {count}" for name, count in sorted(FIGURES.items()))
        terminalreporter.write_line(f"cluster figures: {said}")


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    # Workers import what the tests import, and so must find it.
    os.environ["PYTHONPATH"] = str(ROOT)
    with Nodes() as running:
        yield running
    del os.environ["PYTHONPATH"]


def write_items(path: Path, count: int) -> str:
    lines = []
    for item in items(count):
        row = {"id": item.id, "prompt": item.prompt, "answer": item.answer}
        lines.append(json.dumps({**row, "choices": list(item.choices)}))
    path.write_text("\n".join(lines))
    return str(path)


_STARTED: list["Driver"] = []


@pytest.fixture(autouse=True)
def no_driver_is_left() -> Iterator[None]:
    """One that a failed test has left would be in the way of the next."""
    yield
    while _STARTED:
        _STARTED.pop().close()


class Driver:
    """A run as a process."""

    def __init__(self, job: Job, log: Path) -> None:
        _STARTED.append(self)
        log.mkdir(parents=True, exist_ok=True)
        path = log / "job.json"
        path.write_text(json.dumps(asdict(job)))
        self._errors = log / "stderr"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, driver.__file__, str(path)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def end(self, timeout: float = 600.0) -> dict[str, Any]:
        said, _ = self._process.communicate(timeout=timeout)
        assert self._process.returncode in (0, 3), self._errors.read_text()[-3000:]
        told: dict[str, Any] = json.loads(said.splitlines()[-1])
        return told

    def finish(self, timeout: float = 600.0) -> dict[str, Any]:
        told = self.end(timeout)
        assert "error" not in told, told
        return told

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def close(self) -> None:
        if self.running:
            self._process.kill()
            self._process.communicate()

    def kill(self, nodes: Nodes) -> None:
        """Kill -9, and wait until its actors are gone too: Ray ends a dead driver's job."""
        self._process.kill()
        self._process.communicate()
        until(lambda: not nodes.actors(), "the actors of a dead driver live on", seconds=60)


def stop_all(nodes: Nodes) -> list[psutil.Process]:
    """Every worker, so that nothing moves: also those that start meanwhile."""
    stopped: list[psutil.Process] = []
    while new := [process for process in nodes.workers() if process not in stopped]:
        for process in new:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        stopped += new
    return stopped


def go_on(processes: list[psutil.Process]) -> None:
    for process in processes:
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            process.resume()


class Upstream:
    """The failing server, and the log of what it was paid for."""

    def __init__(self, folder: Path, seed: int, rate: float, latency: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log, port = folder / "calls", folder / "port"
        self.rate = rate
        given = [str(self.log), str(port), str(seed), str(rate), str(latency)]
        self._process = subprocess.Popen(
            [sys.executable, upstream.__file__, *given],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        until(port.exists, "the server did not start")
        self.url = f"http://127.0.0.1:{port.read_text()}/v1"

    def until_still(self) -> None:
        """Wait until it has written down all that had been sent to it: it answers a question that
        came later, and has nothing more to write for longer than any of its answers takes."""
        size = -1
        while size != (size := self.log.stat().st_size):
            urllib.request.urlopen(f"{self.url}/models", timeout=60).close()
            time.sleep(0.4)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
