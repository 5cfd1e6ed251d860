"""These are the file operations under a run folder on disk.

A run folder may come from a stranger, so none of them goes through a link, waits at a pipe or opens
a device. What they make is for its owner alone: a run holds prompts and answers.
"""

import errno
import os
import secrets
import stat
from pathlib import Path

from evenhand.core.errors import CorruptRun, StoreError

_OWNER_ONLY = 0o600
_OWNER_ONLY_FOLDER = 0o700
_NO_PLAIN_FILE = {errno.ELOOP, errno.ENXIO, errno.EMLINK}  # a link, a pipe; a link on FreeBSD
_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}


def within(root: Path, name: str) -> Path:
    """Give the path of a name in a folder, after a look that no link is on the way to it. The
    folder itself is looked at too: it may be a run inside another run."""
    steps = Path(name).parts
    if name.startswith("/") or ".." in steps:
        raise CorruptRun(f"{root}: {name!r} is not a path inside the run folder")
    folder = root
    for step in steps:
        try:
            kind = os.lstat(folder).st_mode
        except OSError:  # nothing is there yet
            break
        if stat.S_ISLNK(kind):
            raise CorruptRun(
                f"{folder} is a link, and a run is not read or written through one: give the place "
                f"that it leads to ({folder.resolve()}), if you trust it"
            )
        if folder != root and not stat.S_ISDIR(kind):
            raise CorruptRun(f"{folder} is not a folder, as it must be in a run")
        folder /= step
    return root / name


def open_plain(path: Path, flags: int) -> int:
    """Open a regular file. One that is to be written must have no second name, which could be that
    of any file of this disk."""
    try:
        # Not blocking: a pipe without a reader is told apart, not waited for.
        safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags | safe, _OWNER_ONLY)
    except NotADirectoryError:  # what should be the run folder is a file
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
    except OSError as error:
        if error.errno in _NO_PLAIN_FILE:
            raise _no_plain_file(path) from None
        raise
    status = os.fstat(descriptor)
    writes = flags & (os.O_WRONLY | os.O_RDWR)
    if not stat.S_ISREG(status.st_mode) or (writes and status.st_nlink > 1):
        os.close(descriptor)
        raise _no_plain_file(path)
    return descriptor


def read_plain(path: Path) -> bytes:
    with open(open_plain(path, os.O_RDONLY), "rb") as file:
        return file.read()


def write_new(path: Path, data: bytes) -> None:
    """Write a file that was not there, and have its bytes reach the disk."""
    descriptor = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def link_new(hidden: Path, path: Path) -> None:
    """Give a file its real name; `FileExistsError` if it is taken."""
    try:
        os.link(hidden, path)
    except OSError as error:
        if error.errno in _NO_HARD_LINKS:
            raise StoreError(
                f"{path.parent} is on a file system without hard links, as exFAT, FAT and many SMB "
                "mounts are. Put the run on a local disk (ext4, XFS, Btrfs, APFS) or in an object "
                "store"
            ) from None
        raise


def make_folder(path: Path, root: Path) -> None:
    """Make a folder at or below `root`, for its owner alone, in a way that outlives a power cut.
    Those above `root` are made as the user's other folders are."""
    if path.is_dir():
        return
    if path == root:
        path.parent.mkdir(parents=True, exist_ok=True)
    else:
        make_folder(path.parent, root)
    try:
        path.mkdir(_OWNER_ONLY_FOLDER, exist_ok=True)
    except FileExistsError:
        raise StoreError(f"{path} exists and is not a folder: give another name") from None
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Have the names in a folder reach the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hidden_beside(path: Path) -> Path:
    """Make a name that nobody else writes under; a process's number may be another's, in
    containers."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def _no_plain_file(path: Path) -> CorruptRun:
    return CorruptRun(
        f"{path} is a link, a pipe, a device, a folder or has a second name; a run holds plain "
        "files only. If you made it so, put a copy of the file in its place"
    )
