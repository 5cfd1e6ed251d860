"""The few file operations a run needs, each safe against a crash at any moment."""

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from evenhand.errors import DiskFull, RunLocked, StoreError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Folder:
    """A run folder on a local disk. Names are relative, with forward slashes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def exists(self, name: str) -> bool:
        return (self.root / name).exists()

    def names(self, folder: str) -> list[str]:
        """Files of a sub-folder in order, without those still being written."""
        try:
            with os.scandir(self.root / folder) as entries:
                found = [entry.name for entry in entries if not entry.name.startswith(".")]
        except FileNotFoundError:
            return []
        return [f"{folder}/{name}" for name in sorted(found)]

    def create(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all; `FileExistsError` if the name is taken.

        The bytes go to a hidden name, reach the disk, and are then linked to the real one: a link
        never replaces, so of two writers of one name exactly one wins.
        """
        path = self.root / name
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

    def append_to(self, name: str) -> int:
        """A descriptor that appends. What it wrote survives the death of this process."""
        path = self.root / name
        with _disk_errors(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, descriptor: int, data: bytes) -> None:
        try:
            written = os.write(descriptor, data)
            if written != len(data):  # half a line would spoil the one after it
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
                raise OSError(errno.ENOSPC, "short write")
        except OSError as error:  # not `_disk_errors`: this runs once a turn
            raise _told(error, "journal") from None

    def remove(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def lock(self, *, take_over: bool = False) -> int:
        """Hold the folder until the process ends; the kernel lets go even after kill -9.

        A take-over puts a lock of its own in the place of the one that is held.
        """
        place = self.root / "lock"
        with _disk_errors("lock"):
            self.root.mkdir(parents=True, exist_ok=True)
            ours = _hidden(place) if take_over else place
            descriptor = os.open(ours, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if take_over:
                os.replace(ours, place)
        except BlockingIOError:
            holder = os.pread(descriptor, 100, 0).decode("utf-8", "replace").strip() or "a process"
            os.close(descriptor)
            raise RunLocked(
                f"{self.root} is being written by {holder}. Wait for it, or if it is stuck take "
                "the run over with --take-over; the other one can then write nothing more"
            ) from None
        try:
            with _disk_errors("lock"):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        except StoreError:
            os.close(descriptor)
            raise
        return descriptor


def _hidden(path: Path) -> Path:
    """A name that nobody else writes under; a process's number may be another's, in containers."""
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
