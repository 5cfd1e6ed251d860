"""Logs of Inspect (`.eval`): a ZIP archive with a header, a list of all samples, and each whole.

The list is enough, and a hundredth of the size: it has of each sample what it was about, its
options and what the scorer read as its answer. Of an older Inspect it lacks the options; they are
then read from the samples. Members may be compressed by zstd, which Python reads from 3.14 on only.
What a member claims to be and what comes out are held to a limit: a log is data of others.
"""

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
import pyarrow as pa

from evenhand.core.errors import UserError
from evenhand.interop.log import Log, LoggedAnswer, Origin, made_by, sha256_of

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


_HEADER, _LIST = "header.json", "summaries.json"
# They read which option was taken, and say it as a letter: Inspect's own scorer, and evenhand's.
SCORERS = ("choice", "bias")


def is_inspect(file: Path) -> bool:
    """Say whether a file is a log of Inspect; one in its older form, JSON, is not."""
    return file.suffix == ".eval" or zipfile.is_zipfile(file)


def read_inspect(file: Path) -> Log:
    """Read a log. Of several epochs the first is taken: our choice, which is made before anybody
    looks at an answer."""
    with Archive(file) as archive:
        header, samples = archive.json(_HEADER), archive.json(_LIST)
        try:
            evaluation = header["eval"]
            if not isinstance(samples, list):
                raise TypeError
            first = [sample for sample in samples if sample["epoch"] == 1]
            answers = tuple(_answered(sample, archive) for sample in first)
            tool, version = made_by(evaluation.get("metadata") or {}) or (
                "inspect_ai", str(evaluation.get("packages", {}).get("inspect_ai", ""))
            )  # fmt: skip
            origin = Origin(
                tool=tool,
                version=version,
                task=str(evaluation["task"]),
                model=str(evaluation["model"]),
                created=str(evaluation["created"]),
                file=file.name,
                sha256=sha256_of(file),
            )
            notes = tuple(_notes(header, samples, first))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise UserError(f"{file} is not a log as Inspect writes it: evenhand reads those of "
                            "its format 2, such as of inspect_ai 0.3") from None  # fmt: skip
    return Log(origin=origin, answers=answers, notes=notes)


def _answered(sample: Mapping[str, Any], archive: Archive) -> LoggedAnswer:
    options = sample.get("choices")
    if options is None:
        options = archive.json(f"samples/{sample['id']}_epoch_{sample['epoch']}.json").get(
            "choices"
        )
    options = tuple(map(str, options or ()))
    about = {"id": sample["id"], **(sample.get("metadata") or {})}
    return LoggedAnswer(about=about, options=options, answer=_answer(sample, len(options)))


def _answer(sample: Mapping[str, Any], options: int) -> int | None:
    """The place of the option that was taken; None without one, with several, or after an error."""
    score = _score(sample)
    return None if score is None or sample.get("error") else place_of(score.get("answer"), options)


def _score(sample: Mapping[str, Any]) -> Mapping[str, Any] | None:
    scores: Mapping[str, Any] = sample.get("scores") or {}
    return next((scores[name] for name in SCORERS if name in scores), None)


def place_of(letter: Any, options: int) -> int | None:
    """Return the position of the option that a letter names; None for any other value."""
    if not isinstance(letter, str) or len(letter) != 1:
        return None
    index = ord(letter.upper()) - ord("A")
    return index if 0 <= index < options else None


def _notes(
    header: Mapping[str, Any], samples: list[Any], first: list[Mapping[str, Any]]
) -> Iterator[str]:
    metadata = header["eval"].get("metadata") or {}
    if made_by(metadata):
        yield (
            f"The log was exported from a run of the method {str(metadata['method'])[:40]!r}, "
            f"which changed {int(metadata['changed']):,} answers: the last ones are scored."
        )
    if header["status"] != "success":
        yield f"Inspect says of this log: {str(header['status'])[:40]}."
    if header.get("invalidated"):
        yield "Inspect says of this log that samples of it were invalidated; they are scored here."
    planned = header["eval"]["dataset"].get("samples")
    if isinstance(planned, int) and planned > len(first):
        yield (
            f"The log has {len(first):,} of {planned:,} samples: what is absent was not asked, or "
            "left out."
        )
    if len(samples) > len(first):
        yield f"Of {len(samples):,} answers those of the first epoch are scored: {len(first):,}."
    unscored = sum(_score(sample) is None for sample in first)
    if unscored:
        yield f"{unscored:,} samples have no score of Inspect's {SCORERS[0]!r}, and so no answer."
