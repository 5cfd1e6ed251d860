"""The zip file of a pack: the same bytes for the same files, and nothing of a hostile one is
unpacked."""

import io
import random
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.core.errors import CorruptArchive, UserError
from evenhand.runs.store import archive
from tests.errors import raises_naming

FILE = (stat.S_IFREG | 0o644) << 16
Entry = tuple[zipfile.ZipInfo, bytes]


def _entry(name: str, mode: int = FILE) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, mode
    return entry


def _zip(*entries: Entry, compress: int = zipfile.ZIP_STORED, comment: bytes = b"") -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as made:
        for entry, data in entries:
            made.writestr(entry, data, compress_type=compress)
        made.comment = comment
    return held.getvalue()


def _sizes_of(data: bytes, size: int) -> bytes:
    """The same zip file whose list says another size of its one file."""
    place = data.rindex(b"PK\x01\x02") + 20
    return data[:place] + struct.pack("<2L", size, size) + data[place + 8 :]


def _overlapping() -> bytes:
    """Two names for the same bytes, so that little looks like much."""
    data = _zip((_entry("a"), b"x" * 5000), (_entry("b"), b""))
    place = data.rindex(b"PK\x01\x02")  # of b, which is made to lie where a does
    crc, offset = struct.pack("<L", zlib.crc32(b"x" * 5000)), struct.pack("<L", 0)
    sizes = struct.pack("<2L", 5000, 5000)
    listed = data[place : place + 16] + crc + sizes + data[place + 28 : place + 42] + offset
    return data[:place] + listed + data[place + 46 :]


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a way out": lambda: _zip((_entry("../x"), b"")),
    "a way out in the middle": lambda: _zip((_entry("runs/../../x"), b"")),
    "an absolute name": lambda: _zip((_entry("/tmp/x"), b"")),
    "a name of Windows": lambda: _zip((_entry("C:x"), b"")),
    "a backslash": lambda: _zip((_entry("a\\..\\x"), b"")),
    "a sign that cannot be seen": lambda: _zip((_entry("a\u202eb"), b"")),
    "a NUL in a name": lambda: _zip((_entry("aXb"), b"")).replace(b"aXb", b"a\0b"),
    "a long name": lambda: _zip((_entry("a" * 300), b"")),
    "the same name twice": lambda: _zip((_entry("aX"), b"1"), (_entry("aY"), b"2")).replace(
        b"aY", b"aX"
    ),
    "names that differ by case": lambda: _zip((_entry("a"), b""), (_entry("A"), b"")),
    "a file within a file": lambda: _zip((_entry("a"), b""), (_entry("a/b"), b"")),
    "a link": lambda: _zip((_entry("a", (stat.S_IFLNK | 0o777) << 16), b"/etc/passwd")),
    "a device": lambda: _zip((_entry("a", (stat.S_IFCHR | 0o600) << 16), b"")),
    "a folder": lambda: _zip((_entry("a/", (stat.S_IFDIR | 0o755) << 16), b"")),
    "a bomb": lambda: _zip((_entry("a"), bytes(10**7)), compress=zipfile.ZIP_DEFLATED),
    "a compressed file": lambda: _zip((_entry("a"), b"ab" * 40), compress=zipfile.ZIP_DEFLATED),
    "a size that is not there": lambda: _sizes_of(_zip((_entry("a"), b"abc")), 2**31),
    "the same bytes under two names": _overlapping,
    "a place before the beginning": lambda: (
        _zip((_entry("a"), b"abc"))[:-6] + struct.pack("<LH", 1000, 0)
    ),
    "a comment": lambda: _zip((_entry("a"), b""), comment=b"hello"),
    "a flag of encryption": lambda: _zip((_entry("a"), b"abc")).replace(
        b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\1\0"
    ),
    "too many files": lambda: (
        _zip((_entry("a"), b""))[:-14] + struct.pack("<2H2LH", 65_535, 65_535, 47, 31, 0)
    ),
    "a list without an end": lambda: (
        _zip((_entry("a"), b""))[:-14] + struct.pack("<2H2LH", 1, 1, 2**31, 31, 0)
    ),
    "nothing": lambda: b"",
    "no zip file": lambda: b"\x89PNG" * 100,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_of_a_hostile_zip_file_is_unpacked(kind: str, tmp_path: Path) -> None:
    path, into = tmp_path / "hostile.zip", tmp_path / "into"
    path.write_bytes(HOSTILE[kind]())
    into.mkdir()
    with pytest.raises(CorruptArchive):
        archive.unpack(path, into)
    assert sorted(tmp_path.rglob("*")) == [path, into]


def test_the_hostile_files_differ_from_a_good_one_only_in_what_is_hostile(tmp_path: Path) -> None:
    path = tmp_path / "good.zip"
    path.write_bytes(_zip((_entry("a"), b"abc"), (_entry("b/c"), b"")))
    (tmp_path / "into").mkdir()
    archive.unpack(path, tmp_path / "into")
    assert archive.names_in(tmp_path / "into") == ["a", "b/c"]
    assert (tmp_path / "into/a").read_bytes() == b"abc"


def test_the_same_files_are_the_same_bytes_whenever_they_were_written(tmp_path: Path) -> None:
    for number in range(2):
        folder = tmp_path / str(number)
        (folder / "b").mkdir(parents=True)
        names = ["b/run.sh", "a.json"]
        for name in names if number else reversed(names):
            (folder / name).write_bytes(name.encode())
            (folder / name).chmod(0o600 if number else 0o644)
        archive.write(tmp_path / f"{number}.zip", folder)
    assert (tmp_path / "0.zip").read_bytes() == (tmp_path / "1.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "0.zip") as made:
        modes = {one.filename: one.external_attr >> 16 & 0o777 for one in made.infolist()}
    assert modes == {"a.json": 0o644, "b/run.sh": 0o755}


def test_what_could_not_be_unpacked_is_not_written(tmp_path: Path) -> None:
    folder, path = tmp_path / "folder", tmp_path / "x.zip"
    for names in (("Notes.txt", "notes.txt"), ("A", "a/b"), ("a b",)):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"")
        with raises_naming(UserError, "no pack"):
            archive.write(path, folder)
        shutil.rmtree(folder)
    assert list(tmp_path.iterdir()) == []


def test_any_flipped_bit_is_refused_in_words_or_seen(tmp_path: Path) -> None:
    """Whatever bit of the file is flipped: in a name, a header, the list, the end."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a.json", "b.json"):
        (folder / name).write_bytes(name.encode() * 3)
    good = tmp_path / "good.zip"
    archive.write(good, folder)
    whole, draw = good.read_bytes(), random.Random(0)
    bits = draw.sample(range(8 * len(whole)), 300)
    for number, bit in enumerate(bits):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        bad, into = tmp_path / "bad.zip", tmp_path / str(number)
        bad.write_bytes(changed)
        into.mkdir()
        try:
            archive.unpack(bad, into)
        except CorruptArchive:
            continue
        same = [(into / name.name).exists() and (into / name.name).read_bytes() == name.read_bytes()
                for name in folder.iterdir()]  # fmt: skip
        assert not (all(same) and archive.is_as_written(bad, into)), bit
