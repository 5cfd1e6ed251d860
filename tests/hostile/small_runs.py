"""Runs of a few items in this process, and a tree outside them that nobody may touch."""

import asyncio
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.agents import Cast
from evenhand.core import Item
from evenhand.methods.build import build_method
from evenhand.models import ScriptedModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run

MARK = "CANARY-9f2c"


def plan(items: int = 4, word: str = "kind") -> RunPlan:
    return RunPlan(
        method=build_method("default", ()),
        cast=Cast(ScriptedModel(lambda _: f"A nurse is {word}.", name="scripted")),
        source=ItemList([Item(id=f"i{n}", prompt=f"Describe {n}.") for n in range(items)]),
        concurrency=2,
    )


def ran(out: Path, planned: RunPlan | None = None, **how: Any) -> None:
    planned = planned or plan()
    asyncio.run(run(planned, out, progress=Progress(), stop=StopSignal(), **how))


class Canary:
    """A tree beside the run folders: what is in it stays as it is and is never opened."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._opened: list[str] = []
        (root / "docs").mkdir(parents=True)
        for name in ("keys", "00-notes.txt", "0000-taxes.pdf", "#draft", "00000000-000000.log"):
            (root / "docs" / name).write_text(f"{MARK} {name}\n")
        (root / "keys").write_text(f"{MARK}\n")
        os.mkfifo(root / "pipe")
        self._before = self._seen()

    def _seen(self) -> dict[str, Any]:
        found = {}
        for path in sorted(self.root.rglob("*")):
            data = path.read_bytes() if path.is_file() else b""
            seen = path.lstat()
            known = (seen.st_mode, seen.st_mtime_ns, seen.st_ino)
            found[str(path)] = (hashlib.sha256(data).hexdigest(), *known)
        return found

    def check(self) -> None:
        assert self._opened == []
        assert self._seen() == self._before

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note every file of the tree that Python opens, by whatever name."""
        _WATCHING.append(self)
        try:
            yield
        finally:
            _WATCHING.remove(self)

    def note(self, path: str, flags: int) -> None:
        # A link that the kernel is told not to follow is not opened.
        folder, name = os.path.split(path)
        real = os.path.join(os.path.realpath(folder), name)
        real = real if flags & os.O_NOFOLLOW else os.path.realpath(path)
        if real.startswith(str(self.root)):
            self._opened.append(real)


_WATCHING: list[Canary] = []


def _audit(event: str, given: tuple[Any, ...]) -> None:
    if event == "open" and _WATCHING and isinstance(given[0], str | bytes | os.PathLike):
        for canary in list(_WATCHING):
            canary.note(os.fsdecode(given[0]), given[2] or 0)


sys.addaudithook(_audit)  # it cannot be taken away again, so it looks whether anybody watches
