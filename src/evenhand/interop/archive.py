"""A ZIP archive whose members may be compressed by zstd, which Python reads from 3.14 on only.

What a member claims to be and what comes out are held to a limit: a log is data of others.
"""

import json
import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
import pyarrow as pa

from evenhand.core.errors import UserError

_ZSTD = 93
_LARGEST = 1 << 28  # our choice: bytes of one member; the list of BBQ's 58,492 answers has 90 MB
# Our choices, of one member: an empty list takes 2 bytes of JSON and 56 of memory.
_MOST_CONTAINERS = 4_000_000
_MOST_COMMAS = 16_000_000
# Among them what is no JSON, no zstd, encrypted, or compressed in a way that nobody here reads.
_BROKEN = (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
_LOCAL_HEADER = struct.Struct("<4s22xHH")


class Archive:
    """A ZIP archive of JSON files."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
        except (OSError, zipfile.BadZipFile) as error:
            raise UserError(f"{file} cannot be read: {error}") from None
        self.names = frozenset(self._zip.namelist())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._zip.close()

    def json(self, name: str) -> Any:
        """Read a member; refused where it is absent, broken, too large or no JSON."""
        try:
            data = self._bytes(self._zip.getinfo(name))
            if _unfolds(data):
                raise UserError(f"{self._file}: {name} would take gigabytes of memory")
            return _parsed(data)
        except KeyError:
            raise UserError(f"{self._file} has no {name} in it: is it whole?") from None
        except _BROKEN as error:
            raise UserError(f"{self._file}: {name} cannot be read: {str(error)[:200]}") from None

    def _bytes(self, member: zipfile.ZipInfo) -> bytes:
        if member.file_size > _LARGEST:
            raise UserError(f"{self._file}: {member.filename} has {member.file_size:,} bytes")
        if member.compress_type != _ZSTD:
            return self._zip.read(member)  # which checks size and checksum
        with pa.CompressedInputStream(pa.BufferReader(self._raw(member)), "zstd") as stream:
            data = stream.read(member.file_size + 1)
        if len(data) != member.file_size or zlib.crc32(data) != member.CRC:
            raise zipfile.BadZipFile("its bytes are not those that were written")
        return bytes(data)

    def _raw(self, member: zipfile.ZipInfo) -> bytes:
        """The compressed bytes, which stand behind a header of the member's own."""
        with self._file.open("rb") as opened:
            opened.seek(member.header_offset)
            header = opened.read(_LOCAL_HEADER.size)
            if len(header) < _LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
                raise zipfile.BadZipFile("it does not begin where the list of the archive says")
            _, name, extra = _LOCAL_HEADER.unpack(header)
            opened.seek(name + extra, 1)
            return opened.read(member.compress_size)


def _unfolds(data: bytes) -> bool:
    """Whether JSON could take far more memory than it has bytes."""
    containers = data.count(b"[") + data.count(b"{")
    return containers > _MOST_CONTAINERS or data.count(b",") > _MOST_COMMAS


def _parsed(data: bytes) -> Any:
    """Inspect writes the value of a sample that was not scored as NaN, which is no JSON: Python's
    own reader takes it, at ten times the time."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)
