"""A folder offers the few file operations that a run needs, each safe against a crash at any
moment."""

import contextlib
import errno
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from evenhand.core.errors import CorruptRun, DiskFull, RunLocked, StoreError, UserError
from evenhand.runs.store import plain_files

try:
    import fcntl
except ImportError:  # Windows: the first run folder says so, and help works
    fcntl = None  # type: ignore[assignment]

_LONGEST_NAME = 100  # our choice: two such names and a date fit into the 255 bytes of a disk
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Appender(Protocol):
    """An appender takes whole lines for the end of one file. After a `StoreError` it takes no
    more."""

    def write(self, data: bytes) -> None: ...

    def flush(self) -> None:
        """Make sure that what was written so far survives the death of this process, and on a disk
        that of the machine."""
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

    def remove(self, *names: str) -> None:
        """Remove files, which may be gone already."""
        ...

    def lock(self, *, steal_lock: bool = False) -> Lock:
        """Hold the folder; `RunLocked` if another process does and is not to be taken over."""
        ...


def as_file_name(name: str) -> str:
    """Give a name that stays within its folder and fits every disk: no other sign, no dot first,
    and the end of a long one is told by its checksum."""
    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", name).lstrip(".") or "-"
    if len(plain) <= _LONGEST_NAME:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain[:_LONGEST_NAME]}-{digest[:12]}"


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
    from evenhand.runs.store.object_folder import ObjectFolder  # noqa: PLC0415

    return ObjectFolder(location)


class LocalFolder:
    """A run folder on a local disk."""

    def __init__(self, root: Path) -> None:
        if fcntl is None:
            raise UserError(
                "evenhand keeps runs by POSIX file locks and links, which Windows does not have: "
                "use it on Linux or macOS, or on Windows inside WSL 2"
            )
        self.root = str(root)
        self._path = root.absolute()  # another process may stand in another folder

    def read(self, name: str) -> bytes:
        return plain_files.read_plain(self._at(name))

    def exists(self, name: str) -> bool:
        return os.path.lexists(self._at(name))

    def names(self, folder: str) -> list[str]:
        try:
            with os.scandir(self._at(f"{folder}/*").parent) as entries:
                filenames = [entry.name for entry in entries if not entry.name.startswith(".")]
        except FileNotFoundError:
            return []
        return [f"{folder}/{name}" for name in sorted(filenames)]

    def create(self, name: str, data: bytes) -> None:
        """Write the bytes to a hidden name, have them reach the disk, and link them to the real
        name: a link never replaces, so of two writers of one name exactly one wins."""
        with self._hidden(name, data) as (hidden, path):
            plain_files.link_new(hidden, path)
            hidden.unlink()
            plain_files.sync_folder(path.parent)

    def replace(self, name: str, data: bytes) -> None:
        with self._hidden(name, data) as (hidden, path):
            os.replace(hidden, path)

    def appender(self, name: str) -> "LocalAppender":
        path = self._at(name)
        try:
            with _disk_errors(name):
                plain_files.make_folder(path.parent, self._path)
                return LocalAppender(path)
        except FileExistsError:  # no two writers have the same name for one
            raise CorruptRun(f"{path} is there before its time: move it elsewhere") from None

    def remove(self, *names: str) -> None:
        for name in names:
            self._at(name).unlink(missing_ok=True)

    def lock(self, *, steal_lock: bool = False) -> "LocalLock":
        """Hold the folder until the process ends; the kernel lets go even after kill -9.

        A take-over puts a lock of its own in the place of the one that is held.
        """
        lock_path = self._at("lock")
        with _disk_errors("lock"):
            plain_files.make_folder(self._path, self._path)
            ours = plain_files.hidden_beside(lock_path) if steal_lock else lock_path
            descriptor = plain_files.open_plain(ours, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 100, 0).decode("utf-8", "replace").strip() or "a process"
            os.close(descriptor)
            raise locked(self.root, holder) from None
        try:
            with _disk_errors("lock"):
                if steal_lock:
                    os.replace(ours, lock_path)
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        except StoreError:
            os.close(descriptor)
            raise
        return LocalLock(descriptor)

    def _at(self, name: str) -> Path:
        return plain_files.within(self._path, name)

    @contextlib.contextmanager
    def _hidden(self, name: str, data: bytes) -> Iterator[tuple[Path, Path]]:
        """Write a file under a hidden name, which is gone afterwards; give it and the real one."""
        path = self._at(name)
        hidden = plain_files.hidden_beside(path)
        with _disk_errors(name):
            plain_files.make_folder(path.parent, self._path)
            try:
                plain_files.write_new(hidden, data)
                yield hidden, path
            finally:
                hidden.unlink(missing_ok=True)


class LocalAppender:
    """An appender to a new file. What it wrote survives the death of this process at once, and that
    of the machine after a `flush`."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor = plain_files.open_plain(path, flags)
        self._folder = path.parent

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
        with _disk_errors("journal"):
            os.fsync(self._descriptor)
            plain_files.sync_folder(self._folder)

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
        "the run over with --steal-lock; the other one can then write nothing more"
    )


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


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock a local file that several processes read and add to; other processes wait for it."""
    with path.open("rb") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
