"""An archive is a folder as one zip file: the same files are the same bytes, and every file in it
is read as one that a stranger may have made.

Our choice: files are stored, not compressed. Nearly all of them are Parquet, which is compressed
already; the bytes then depend on no version of zlib, and an archive cannot hold more than its own
size, so that it cannot be a zip bomb.
"""

import filecmp
import os
import re
import shutil
import stat
import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from evenhand.core.errors import CorruptArchive, UserError
from evenhand.runs.store import plain_files

_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can say
_LONGEST = 240  # our choice, characters of a name: a short folder before it still fits old Windows
_MOST = 65_534  # files; one more needs the 64-bit form, which is not read here
_END = struct.Struct("<4s4H2LH")
_END_SIGN, _LOCATOR_64 = b"PK\x05\x06", b"PK\x06\x07"
_HEAD = 46  # bytes of an entry in the list at the end, without its name
_NAME = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
# What zipfile raises for bytes that are not a zip file, or one that it cannot read.
_UNREADABLE = (
    zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, struct.error, ValueError, EOFError,
)  # fmt: skip


def allowed(name: str) -> bool:
    """Say whether a file of this name may be in an archive: plain letters, within its folder."""
    steps = name.split("/")
    inside = not any(step in (".", "..") for step in steps)
    return bool(_NAME.fullmatch(name)) and inside and len(name) <= _LONGEST


def names_in(folder: Path) -> list[str]:
    """List the plain files below a folder in order, by names with forward slashes."""
    names = []
    for directory, _, files in os.walk(folder):
        names += [Path(directory, name).relative_to(folder).as_posix() for name in files]
    return sorted(names)


def write(path: Path, folder: Path) -> None:
    """Write a folder as an archive, whole or not at all."""
    hidden = plain_files.hidden_beside(path)
    try:
        with hidden.open("xb") as file:
            _write(file, folder)
        os.replace(hidden, path)
    except zipfile.LargeZipFile:
        raise UserError(
            "A bundle holds at most 4 GB and 65,534 files. Leave out the run folders with --light."
        ) from None
    finally:
        hidden.unlink(missing_ok=True)


def _write(file: BinaryIO, folder: Path) -> None:
    names = names_in(folder)
    why = next(_unfit(names), None)
    if why is not None:
        raise UserError(f"{why}; no pack was made")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name in names:
            entry = zipfile.ZipInfo(name, _TIME)
            entry.create_system = 3  # Unix, wherever it is made
            mode = 0o755 if name.endswith(".sh") else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            with (folder / name).open("rb") as source, archive.open(entry, "w") as held:
                shutil.copyfileobj(source, held)


def unpack(path: Path, into: Path) -> None:
    """Put the files of an archive into a fresh folder. Whatever could be written elsewhere, hide
    something or be larger than it looks is refused before the first byte is written. A file whose
    bytes are damaged comes out as far as it can be read: its checksum shows that."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            _look_at_the_end(file, size)
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                _look_at(entries, size)
                for entry in entries:
                    _take(archive, entry, into / entry.filename)
    except _UNREADABLE as error:
        raise CorruptArchive(f"{path} is not a readable zip file: {error}") from None


def is_as_written(path: Path, folder: Path) -> bool:
    """Say whether an archive has not one byte more or otherwise than `write` gives to the files
    that came out of it."""
    again = plain_files.hidden_beside(folder)
    try:
        write(again, folder)
        return filecmp.cmp(path, again, shallow=False)
    finally:
        again.unlink(missing_ok=True)


def _look_at_the_end(file: BinaryIO, size: int) -> None:
    """Look at the last bytes before zipfile does: they say how much it will hold in memory."""
    tail = min(size, _END.size + 20)
    file.seek(size - tail)
    last = file.read(tail)
    sign, _, _, _, count, length, _, comment = _END.unpack(last[-_END.size :])
    if sign != _END_SIGN or comment:
        raise CorruptArchive("it does not end as a zip file of evenhand does")
    if last.startswith(_LOCATOR_64) or count > _MOST or length > _MOST * (_HEAD + _LONGEST):
        raise CorruptArchive(f"it says that it holds more than {_MOST:,} files")
    file.seek(0)


def _look_at(entries: list[zipfile.ZipInfo], size: int) -> None:
    # A name as it was before zipfile cut it at a NUL.
    why = next(_unfit([entry.orig_filename for entry in entries]), None)
    for entry in entries:
        wrong = next(_wrong(entry, size), None)
        why = why or (wrong and f"the file {entry.filename!r} {wrong}")
    if why is not None:
        raise CorruptArchive(f"{why}; nothing was unpacked")
    total = sum(entry.file_size for entry in entries)
    if total > size:
        raise CorruptArchive(f"its files say that they are {total:,} bytes, it has {size:,}")


def _unfit(names: Sequence[str]) -> Iterator[str]:
    """Say which names cannot be in one archive, for writing and reading alike: on some disks two
    that differ by case are one."""
    lowered: set[str] = set()
    for name in names:
        if not allowed(name):
            yield f"the file {name!r} has a name that could lead elsewhere"
        if name.lower() in lowered:
            yield f"the file {name!r} is there twice, by the same name or one that differs by case"
        lowered.add(name.lower())
    for name in lowered:  # a file where another has its folder
        if any(str(above) in lowered for above in Path(name).parents):
            yield f"the file {name!r} is within another"


def _wrong(entry: zipfile.ZipInfo, size: int) -> Iterator[str]:
    """Say what is wrong with an entry, if anything is."""
    if stat.S_IFMT(entry.external_attr >> 16) != stat.S_IFREG:
        yield "is a link, a folder or a device"
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        yield "is compressed, which no file of a pack is: was it repacked?"
    if not 0 <= entry.header_offset < size:
        yield "is said to lie outside of the zip file"
    if entry.flag_bits:
        yield "is encrypted or of a kind that is not read here"


def _take(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> None:
    """Copy one file out, no byte more than was announced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(*_UNREADABLE), archive.open(entry) as held, path.open("xb") as file:
        shutil.copyfileobj(held, file)  # zipfile stops at the size that was looked at
