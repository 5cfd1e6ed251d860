"""What a process and all it started use, looked at from a thread."""

import collections
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import psutil

_EVERY_SECONDS = 0.25


def family(pid: int | None = None) -> Iterator[psutil.Process]:
    """A process (this one) and everything below it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        yield first
        yield from first.children(recursive=True)


class TreeCpu:
    """CPU seconds of a process (this one) and all below it, but for one.

    Ray's workers come and go, and nobody adds up what those that went have used, so it is read
    again and again; the last quarter of a second of a worker may be missing.
    """

    def __init__(self, pid: int | None = None, *, leave_out: int | None = None) -> None:
        self._pid = pid
        self._leave_out = leave_out
        self._seen: dict[tuple[int, float], float] = {}
        self._before: dict[tuple[int, float], float] = {}
        self._names: dict[tuple[int, float], str] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._before = dict(self._seen)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    @property
    def seconds(self) -> float:
        return sum(list(self._seen.values())) - sum(self._before.values())

    def by_name(self) -> dict[str, float]:
        """The seconds of processes of the same name together, the greatest first."""
        used: collections.Counter[str] = collections.Counter()
        for key, seconds in self._seen.items():
            used[self._names[key]] += round((seconds - self._before.get(key, 0)) * 1000)
        return {name: milliseconds / 1000 for name, milliseconds in used.most_common()}

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        for process in family(self._pid):
            if process.pid != self._leave_out:
                with contextlib.suppress(psutil.NoSuchProcess, IndexError):  # it has just ended
                    times, key = process.cpu_times(), (process.pid, process.create_time())
                    self._names[key] = Path(process.cmdline()[0]).name
                    self._seen[key] = times.user + times.system
