"""A disk that loses power: what a process did to it, and every state that it can be found in after.

`Recorder` notes each change of names and bytes under a folder, and each sync. `Disk` is a model of
what POSIX promises: bytes are safe after an fsync of their file, names after an fsync of their
folder, and of the rest any part may be there, bytes also torn or as zeros.
"""

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

Op = tuple[Any, ...]


class Recorder:
    """The log of all that was done under a folder, in order."""

    def __init__(self, root: Path) -> None:
        self.log: list[Op] = []
        self._root = str(root)
        self._files: dict[int, str | int] = {}  # descriptor -> a folder's path, or a file's number
        self._numbers: dict[tuple[int, int], int] = {}  # device and inode -> a file's number
        self._one_at_a_time = threading.RLock()

    def note(self, *op: Any) -> None:
        with self._one_at_a_time:
            self.log.append(op)

    @contextmanager
    def recording(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in ("open", "close", "write", "pwrite", "ftruncate", "fsync"):
                patch.setattr(os, name, self._noted(getattr(os, name), getattr(self, f"_{name}")))
            for name in ("link", "replace", "unlink", "mkdir"):
                patch.setattr(os, name, self._noted(getattr(os, name), self._named(name)))
            yield

    def _noted(self, act: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def both(*given: Any, **more: Any) -> Any:
            with self._one_at_a_time:
                found = act(*given, **more)
                note(found, *given)
                return found

        return both

    def _named(self, name: str) -> Callable[..., None]:
        def note(_: None, *given: Any) -> None:
            paths = [os.fspath(one) for one in given if not isinstance(one, int)]
            if paths[0].startswith(self._root):
                self.log.append((name, *paths))

        return note

    def _open(self, descriptor: int, path: Any, flags: int, *_: Any) -> None:
        place = os.fspath(path)
        if not place.startswith(self._root):
            return
        if os.path.isdir(place):
            self._files[descriptor] = place
            return
        found = os.fstat(descriptor)
        known = (found.st_dev, found.st_ino)
        if flags & os.O_CREAT and found.st_size == 0:
            self._numbers[known] = len(self.log)
            self.log.append(("create", place, len(self.log)))
        self._files[descriptor] = self._numbers[known]

    def _close(self, _: None, descriptor: int) -> None:
        self._files.pop(descriptor, None)

    def _write(self, written: int, descriptor: int, data: Any) -> None:
        if descriptor in self._files:
            self.log.append(("write", self._files[descriptor], bytes(data)[:written]))

    def _pwrite(self, written: int, descriptor: int, data: bytes, _offset: int) -> None:
        self._write(written, descriptor, data)

    def _ftruncate(self, _: None, descriptor: int, _length: int) -> None:
        if descriptor in self._files:
            self.log.append(("empty", self._files[descriptor]))

    def _fsync(self, _: None, descriptor: int) -> None:
        if descriptor in self._files:
            self.log.append(("sync", self._files[descriptor]))


@dataclass
class _Kept:
    """Changes in order, of which the first `safe` are on the disk for certain."""

    changes: list[Any] = field(default_factory=list)
    safe: int = 0

    def left(self, luck: random.Random, how: str) -> int:
        """How many of the changes are there after the cut."""
        if how == "least":
            return self.safe
        return len(self.changes) if how == "most" else luck.randint(self.safe, len(self.changes))


class Disk:
    """The disk after some first entries of a log."""

    def __init__(self, log: list[Op]) -> None:
        self._names: dict[str, _Kept] = {}  # folder -> (name, file or None if it went), …
        self._bytes: dict[int, _Kept] = {}
        for op in log:
            self._do(*op)

    def _do(self, kind: str, *given: Any) -> None:
        match kind:
            case "create":
                self._change(given[0], given[1])
            case "write":
                self._bytes.setdefault(given[0], _Kept()).changes.append(given[1])
            case "empty":
                self._bytes[given[0]] = _Kept()
            case "sync":
                table: dict[Any, _Kept] = self._names if isinstance(given[0], str) else self._bytes
                kept = table.setdefault(given[0], _Kept())
                kept.safe = len(kept.changes)
            case "mkdir":
                self._change(given[0], given[0])
            case "unlink":
                self._change(given[0], None)
            case "link" | "replace":
                at = self._entries(os.path.dirname(given[0]), None)[os.path.basename(given[0])]
                gone = (os.path.basename(given[0]), None) if kind == "replace" else None
                self._change(given[1], at, gone)

    def _change(self, path: str, what: Any, gone: Any = None) -> None:
        folder, name = os.path.split(path)
        change = ((name, what), gone) if gone else ((name, what),)
        self._names.setdefault(folder, _Kept()).changes.append(change)

    def _entries(self, folder: str, kept: int | None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for change in self._names.get(folder, _Kept()).changes[:kept]:
            for name, what in change:
                found[name] = what
        return {name: what for name, what in found.items() if what is not None}

    def after_a_cut(self, root: str, how: str, seed: int = 0) -> dict[str, bytes | None]:
        """One state that may be found: path below the root's parent -> bytes, None for a folder.

        `least`: nothing that was not synced. `most`: all of it. `names`: all names, of the bytes
        none, but zeros in their place. `any`: of each file and folder some, by chance, torn.
        """
        luck = random.Random(f"{how}{seed}")
        found: dict[str, bytes | None] = {}

        def look(folder: str) -> None:
            kept = self._names.get(folder, _Kept())
            entries = self._entries(folder, kept.left(luck, "most" if how == "names" else how))
            for name, what in entries.items():
                path = f"{folder}/{name}"
                if isinstance(what, str):
                    found[path] = None
                    look(path)
                else:
                    found[path] = self._content(what, how, luck)

        look(os.path.dirname(root))
        return found

    def _content(self, number: int, how: str, luck: random.Random) -> bytes:
        kept = self._bytes.get(number, _Kept())
        count = kept.left(luck, "least" if how == "names" else how)
        whole, torn = b"".join(kept.changes[:count]), b"".join(kept.changes[count : count + 1])
        if how == "names":
            return whole + bytes(len(b"".join(kept.changes[count:])))
        if how == "any":
            whole += torn[: luck.randint(0, len(torn))]
        return whole


def put(state: dict[str, bytes | None], root: Path, to: Path) -> None:
    """Make the state real at another place."""
    to.mkdir()
    for path, data in state.items():
        place = to / Path(path).relative_to(root.parent)
        if data is None:
            place.mkdir()
        else:
            place.write_bytes(data)
