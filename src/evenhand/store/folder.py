"""A folder offers the few file operations that a run needs, each safe against a crash at any
moment."""

import contextlib
import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from evenhand.errors import DiskFull, RunLocked, StoreError, UserError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Appender(Protocol):
    """An appender takes whole lines for the end of one file. After a `StoreError` it takes no
    more."""

    def write(self, data: bytes) -> None: ...

    def flush(self) -> None:
        """Make sure that what was written so far survives the death of this process."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Folder(Protocol):
    """A run folder. Names are relative, with forward slashes. It can be pickled."""

    @property
    def root(self) -> str:
        """The place of the folder, for people to read."""
        ...

    def read(self, name: str) -> bytes: ...

    def exists(self, name: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """List the files of a sub-folder in order, without those still being written."""
        ...

    def create(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all; `FileExistsError` if the name is taken."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all, in the place of the one that is there."""
        ...

    def appender(self, name: str) -> Appender: ...

    def remove(self, name: str) -> None:
        """Remove a file, which may be gone already."""
        ...

    def lock(self, *, take_over: bool = False) -> Lock:
        """Hold the folder; `RunLocked` if another process does and is not to be taken over."""
        ...


def open_folder(location: str | Path) -> Folder:
    """Open a folder on the local disk or, for a URL such as s3://bucket/runs/first, anywhere
    else."""
    if isinstance(location, Path):
        if re.match(r"[a-z][a-z0-9+.-]+:/[^/]", str(location)):
            raise UserError(f"give the URL as text: in a Path it has become {location}")
        return LocalFolder(location)
    if "://" not in location:
        return LocalFolder(Path(location))
    if location.startswith("file://"):
        return LocalFolder(Path(unquote(urlsplit(location).path)))
    from evenhand.store.object_folder import ObjectFolder  # noqa: PLC0415

    return ObjectFolder(location)


class LocalFolder:
    """A run folder on a local disk."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._path = root

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def exists(self, name: str) -> bool:
        return (self._path / name).exists()

    def names(self, folder: str) -> list[str]:
        try:
            with os.scandir(self._path / folder) as entries:
                found = [entry.name for entry in entries if not entry.name.startswith(".")]
        except FileNotFoundError:
            return []
        return [f"{folder}/{name}" for name in sorted(found)]

    def create(self, name: str, data: bytes) -> None:
        """Write the bytes to a hidden name, have them reach the disk, and link them to the real
        name: a link never replaces, so of two writers of one name exactly one wins."""
        path = self._path / name
        hidden = _hidden(path)
        with _disk_errors(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(hidden, "xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.link(hidden, path)
            finally:
                hidden.unlink(missing_ok=True)
            _sync_folder(path.parent)

    def replace(self, name: str, data: bytes) -> None:
        path = self._path / name
        hidden = _hidden(path)
        with _disk_errors(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                hidden.write_bytes(data)
                os.replace(hidden, path)
            finally:
                hidden.unlink(missing_ok=True)

    def appender(self, name: str) -> "LocalAppender":
        path = self._path / name
        with _disk_errors(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            return LocalAppender(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644))

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)

    def lock(self, *, take_over: bool = False) -> "LocalLock":
        """Hold the folder until the process ends; the kernel lets go even after kill -9.

        A take-over puts a lock of its own in the place of the one that is held.
        """
        place = self._path / "lock"
        with _disk_errors("lock"):
            self._path.mkdir(parents=True, exist_ok=True)
            ours = _hidden(place) if take_over else place
            descriptor = os.open(ours, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if take_over:
                os.replace(ours, place)
        except BlockingIOError:
            holder = os.pread(descriptor, 100, 0).decode("utf-8", "replace").strip() or "a process"
            os.close(descriptor)
            raise locked(self.root, holder) from None
        try:
            with _disk_errors("lock"):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        except StoreError:
            os.close(descriptor)
            raise
        return LocalLock(descriptor)


class LocalAppender:
    """An appender on a file descriptor. What it wrote survives the death of this process at
    once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        descriptor = self._descriptor
        try:
            written = os.write(descriptor, data)
            if written != len(data):  # half a line would spoil the one after it
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
                raise OSError(errno.ENOSPC, "short write")
        except OSError as error:  # not `_disk_errors`: this runs once a turn
            raise _told(error, "journal") from None

    def flush(self) -> None:
        pass

    def close(self) -> None:
        os.close(self._descriptor)


class LocalLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def locked(root: str, holder: str) -> RunLocked:
    return RunLocked(
        f"{root} is being written by {holder}. Wait for it, or if it is stuck take "
        "the run over with --take-over; the other one can then write nothing more"
    )


def _hidden(path: Path) -> Path:
    """Make a name that nobody else writes under; a process's number may be another's, in
    containers."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


@contextlib.contextmanager
def _disk_errors(name: str) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise _told(error, name) from None


def _told(error: OSError, name: str) -> StoreError:
    if error.errno in _NO_ROOM:
        return DiskFull(
            f"no room to write {name}. Nothing is lost: free some space and run the same "
            "command again to resume"
        )
    return StoreError(f"cannot write {name}: {error.strerror or error}")


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
