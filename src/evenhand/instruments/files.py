"""The files of a benchmark: from a local folder or by download, and never an unverified byte."""

import gzip
import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson
import polars as pl
import yaml

from evenhand.agents.prompts import Prompt, parse
from evenhand.core.errors import UserError
from evenhand.core.package_data import Texts, read_text, read_toml
from evenhand.findings.display import RemarkOrText
from evenhand.findings.estimates import Cell, Section

_D = TypeVar("_D", bound=Sized)
_LARGEST = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PinnedFiles:
    """Files at one revision of a public source, each with the checksum of its plain bytes."""

    name: str
    url: str  # with {revision} and {file}
    revision: str
    sha256: dict[str, str]
    local: Path | None  # a folder that holds `<name>/<file>`, plain or gzipped
    cache: Path

    @classmethod
    def of(
        cls, name: str, pin: Mapping[str, Any], local: Path | None, cache: Path
    ) -> "PinnedFiles":
        """Locate the files that a part of a card pins by checksum.

        Args:
            name: Name of the dataset and of its folder in `local`.
            pin: Part of a card with url, revision and checksums.
            local: The user's folder of datasets. None: download.
            cache: Folder for downloads.

        Returns:
            The files, not read yet.
        """
        return cls(name, pin["url"], pin["revision"], pin["sha256"], local, cache)

    def read(self, file: str) -> bytes:
        """The plain bytes of a file: local folder, then cache, then download."""
        if self.local is not None and not self.local.is_dir():
            raise UserError(
                f"EVENHAND_DATA is {self.local}, which is not a folder. Correct it, or unset it "
                "to download the data"
            )
        for root in (self.local, self.cache):
            data = self._read_from(root / self.name, file) if root else None
            if data is not None:
                return self._checked(data, file, str(root))
        return self._download(file)

    def _read_from(self, folder: Path, file: str) -> bytes | None:
        plain, packed = folder / file, folder / f"{file}.gz"
        if plain.is_file():
            return plain.read_bytes()
        if packed.is_file():
            with gzip.open(packed) as stream:
                return stream.read(_LARGEST)
        return None

    def _checked(self, data: bytes, file: str, where: str) -> bytes:
        if hashlib.sha256(data).hexdigest() != self.sha256[file]:
            raise UserError(
                f"{self.name}/{file} in {where} differs from the file in revision "
                f"{self.revision[:8]}. Delete it, or point EVENHAND_DATA to another folder"
            )
        return data

    def _download(self, file: str) -> bytes:
        address = self.url.format(revision=self.revision, file=file)
        try:
            with urllib.request.urlopen(address, timeout=60) as reply:  # noqa: S310 a pinned https URL
                data: bytes = reply.read(_LARGEST)
        except (urllib.error.URLError, OSError) as error:
            raise UserError(
                f"{self.name}/{file} is not available locally and cannot be downloaded "
                f"({error}). {self._what_to_set(file)}"
            ) from None
        self._checked(data, file, "the download")
        self._keep(data, self.cache / self.name / file)
        return data

    def _what_to_set(self, file: str) -> str:
        expected = f"a folder that contains {self.name}/{file} (or its .gz)"
        if self.local is None:
            return f"Set EVENHAND_DATA to {expected}"
        return (
            f"EVENHAND_DATA is {self.local}, which does not contain {self.name}/{file}. Set "
            f"it to {expected}"
        )

    @staticmethod
    def _keep(data: bytes, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
            part.write(data)
        os.replace(part.name, path)


@dataclass(frozen=True, slots=True)
class InstrumentWords(Texts):
    """The texts of a benchmark's report, from `words.toml` next to its code.

    `[measures.NAME]` has the label of a measure, and its `source` and `absent` where it has them;
    `[sections.NAME]` the title, the columns and the note of a table; every other key is a sentence.
    Values are put in place of `{…}`.

    >>> words = InstrumentWords("evenhand.instruments.squad")
    >>> words.measure("exact")
    {'label': 'exact match'}
    """

    def measure(self, name: str, /, **values: Any) -> dict[str, Any]:
        """Return what is said of a measure, as arguments of `Measure`."""
        return self._of("measures", name, values)

    def section(self, name: str, /, **values: Any) -> dict[str, Any]:
        """Return what is said of a table, as arguments of `Section`."""
        return self._of("sections", name, values)

    def table(
        self,
        name: str,
        rows: Iterable[tuple[Cell, ...]],
        /,
        *,
        in_short: bool = False,
        like: str = "",
        note: RemarkOrText | None = None,
        **values: Any,
    ) -> Section:
        """Return a table with the title, the columns and the note of `[sections.NAME]`.

        Args:
            name: The name of the table.
            rows: Its rows.
            in_short: Whether it is shown without `--full` too.
            like: The name of the texts, where it is not that of the table.
            note: What stands below it in place of the note of the texts.
            values: What is put in place of `{…}`.
        """
        texts = {"columns": ("", ""), **self.section(like or name, **values)}
        if note is not None:
            texts["note"] = note
        return Section(name=name, rows=tuple(rows), in_short=in_short, **texts)

    def _of(self, kind: str, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        texts = read_toml(self.package, "words.toml")[kind][name]
        return {
            field: tuple(part.format(**values) for part in text)
            if isinstance(text, list)
            else text.format(**values)
            for field, text in texts.items()
        }


@cache
def card_of(package: str) -> dict[str, Any]:
    """The `card.yaml` of a package: version, licence, revision and checksums of its data."""
    loaded: dict[str, Any] = yaml.safe_load(read_text(package, "card.yaml"))
    return loaded


@cache
def prompt_of(package: str, file: str = "prompt.md") -> Prompt:
    """Read a prompt from a file next to the code of a package."""
    return parse(read_text(package, file))


def names_in(text: str | None) -> list[str]:
    """Give the names that an option lists with commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def sha256_of(content: Any) -> str:
    """Give the checksum of lists, objects and texts as JSON, or of a table as CSV without names."""
    if isinstance(content, pl.DataFrame):
        data = content.write_csv(include_header=False).encode()
    else:
        data = orjson.dumps(content)
    return hashlib.sha256(data).hexdigest()


def number_of(text: str) -> int:
    """Draw a number by a text: the same one for the same text, up to 2⁶⁴."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def score_of(column: str, name: str) -> pl.Expr:
    """Give the score of a name in a column that lists scores; null where there is none."""
    mine = pl.element().filter(pl.element().struct.field("name") == name)
    return pl.col(column).list.eval(mine.struct.field("value")).list.first()


class DrawnItems(Generic[_D]):
    """A source whose items are at hand as a whole: what was drawn, in the order of the run."""

    _drawn: _D

    def __len__(self) -> int:
        return len(self._drawn)

    def chunks(self) -> list[tuple[int, int]]:
        return [(0, len(self))]
