"""This module opens the files of a table, on disk or behind an fsspec URL, in one way.

They keep nothing but the folder's name, so that they can be sent to another process.
"""

import importlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa

from evenhand.core.errors import UserError

Found = TypeVar("Found")
Shards = list[tuple[str, int]]  # the name and the size of each file, in order


class Files(Protocol):
    at_once: ClassVar[int]  # how many to ask for side by side

    def path(self, name: str) -> str:
        """A file's full name, as messages give it."""
        ...

    def read(self, name: str, start: int, stop: int) -> bytes: ...

    def open(self, name: str) -> Any:
        """A file that pyarrow can read from, to be closed by `with`."""
        ...


def find(location: str) -> tuple[Files, str, Shards]:
    """Find the files at a location, its own name without the way there, and those files that hold
    rows."""
    return _find_remote(location) if "://" in location else _find_local(location)


@dataclass(frozen=True, slots=True)
class LocalFiles:
    at_once: ClassVar[int] = 1
    folder: str

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def read(self, name: str, start: int, stop: int) -> bytes:
        with open(self.path(name), "rb") as file:
            file.seek(start)
            return file.read(stop - start)

    def open(self, name: str) -> Any:
        return pa.OSFile(self.path(name))


def _find_local(location: str) -> tuple[Files, str, Shards]:
    full_path = os.path.abspath(location)  # another process may stand in another folder
    parent, name = os.path.split(full_path)
    if not os.path.isdir(full_path):
        status = os.stat(full_path)
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{full_path} is no file: a pipe or a device cannot be read twice")
        return LocalFiles(parent), name, [(name, status.st_size)]
    shards = _with_rows(
        {name: os.lstat(f"{full_path}/{name}") for name in os.listdir(full_path)}, full_path
    )
    for shard, status in shards:
        # Its rows go to a model, so a folder from a stranger must not name a file of yours.
        if not stat.S_ISREG(status.st_mode):
            raise UserError(
                f"{full_path}/{shard} is a link or no file, and a folder of shards holds files "
                "only: copy what it leads to (cp -L), or name that file itself"
            )
    return LocalFiles(full_path), name, [(shard, status.st_size) for shard, status in shards]


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    at_once: ClassVar[int] = 32  # a request waits for the network, not for this machine
    folder: str

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def read(self, name: str, start: int, stop: int) -> bytes:
        system, path = _system(self.path(name))
        data: bytes = system.cat_file(path, start=start, end=stop)
        return data

    def open(self, name: str) -> Any:
        system, path = _system(self.path(name))
        # Columns are read in turn: what a cache read ahead in one, the next would throw away.
        return system.open(path, "rb", cache_type="none")


def _find_remote(location: str) -> tuple[Files, str, Shards]:
    parts = urlsplit(location)
    if parts.password is not None or parts.query:
        raise UserError(
            "a table's URL is shown and its end is stored, so it must hold no secret: leave out "
            "what is before @ and after ?, and give keys by the environment"
        )
    url = location.rstrip("/")
    parent, _, name = url.rpartition("/")
    system, path = _system(url)
    system.invalidate_cache()  # a listing from earlier in this process may be out of date
    info = system.info(path)
    if info["type"] != "directory":
        return RemoteFiles(parent), name, [(name, info["size"])]
    entries = [entry for entry in system.ls(path, detail=True) if entry["type"] == "file"]
    sizes = {entry["name"].rpartition("/")[2]: entry["size"] for entry in entries}
    return RemoteFiles(url), name, _with_rows(sizes, url)


def _system(url: str) -> tuple[Any, str]:
    """Give fsspec's file system for a URL, which fsspec keeps and we do not, and the path in it."""
    try:
        system, path = importlib.import_module("fsspec.core").url_to_fs(url)
    except ImportError as missing:
        raise UserError(
            f"{url} cannot be read: {missing}. A table that is not on disk needs fsspec and its "
            "package for that place, such as s3fs, gcsfs or adlfs"
        ) from None
    return system, path


def _with_rows(files: Mapping[str, Found], where: str) -> list[tuple[str, Found]]:
    """Keep those files of a folder that are shards: Spark and its like add files with a `_`."""
    shards = [
        (name, files[name])
        for name in sorted(files)
        if name.endswith(".parquet") and not name.startswith((".", "_"))
    ]
    if not shards:
        raise UserError(
            f"{where} holds no *.parquet files. Folders inside it are not looked into: "
            "name the one with the shards"
        )
    return shards


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Add the file's name to any error, because each of fsspec's kinds raises its client's own
    errors."""
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"{where} is not there") from None
    except Exception as error:
        raise UserError(f"{where} cannot be read: {error}") from error
