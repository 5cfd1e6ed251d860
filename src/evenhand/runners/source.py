"""A source gives items in order; each item has a position.

A position, not an id, says which items are done, so a resumed run needs one bit per item.
"""

import codecs
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Protocol

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.agents import strict_json
from evenhand.domain import Item
from evenhand.errors import UnreadableReply, UserError


class Source(Protocol):
    def fingerprint(self) -> dict[str, Any]:
        """What the run record keeps, so that a run is never resumed over other items."""
        ...

    def __len__(self) -> int: ...

    def chunks(self) -> list[tuple[int, int]]:
        """Half-open ranges of positions, in order, each of which is read best in one go."""
        ...

    def read(self, start: int, stop: int) -> Iterator[Item]:
        """The items of these positions in order; the first one of all has position 0."""
        ...


_CHUNK = 65_536  # items: large enough to read at full speed, small enough to spread over a cluster


def even_chunks(items: int) -> list[tuple[int, int]]:
    return [(start, min(start + _CHUNK, items)) for start in range(0, items, _CHUNK)]


def read_gaps(source: Source, gaps: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Item]]:
    """Yield the items of some ranges with their positions, read in one go from the first to the
    last: a row group of a table cannot be entered in its middle, so each entry costs a whole
    one."""
    waiting = iter(gaps)
    start, stop = next(waiting, (0, 0))
    following = enumerate(source.read(start, gaps[-1][1]) if gaps else (), start=start)
    for position, item in following:
        if position >= stop:
            start, stop = next(waiting)
        if position >= start:
            yield position, item


class ItemList:
    """A source of items that are in memory, as in a notebook."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items

    def fingerprint(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for item in self._items:
            digest.update(orjson.dumps(item, option=orjson.OPT_SORT_KEYS))
        return {"kind": "list", "items": len(self._items), "sha256": digest.hexdigest()}

    def __len__(self) -> int:
        return len(self._items)

    def chunks(self) -> list[tuple[int, int]]:
        return even_chunks(len(self._items))

    def read(self, start: int, stop: int) -> Iterator[Item]:
        return iter(self._items[start:stop])


class JsonlFile:
    """A source of one JSON object a line: `prompt`; if wanted `id`, `context`, `choices`, `answer`,
    `tags`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_file():
            raise UserError(
                f'{path} is not a file. It should hold lines like {{"prompt": "Describe a nurse."}}'
            )

    def fingerprint(self) -> dict[str, Any]:
        scan = self._scan
        return {
            "kind": "jsonl",
            "name": self._path.name,
            "items": scan.items,
            "sha256": scan.sha256,
        }

    def __len__(self) -> int:
        return self._scan.items

    def chunks(self) -> list[tuple[int, int]]:
        return even_chunks(len(self))

    def read(self, start: int, stop: int) -> Iterator[Item]:
        if start >= min(stop, len(self)):
            return
        mark = start // _MARK_EVERY
        position = mark * _MARK_EVERY
        offset, first_line = self._scan.marks[mark]
        with self._path.open("rb") as file:
            file.seek(offset)
            for number, line in enumerate(file, start=first_line):
                if position >= stop:
                    return
                if line.strip():
                    if position >= start:
                        yield read_item(line, position, f"{self._path} line {number}")
                    position += 1

    @cached_property
    def _scan(self) -> "_Scan":
        digest, items, offset = hashlib.sha256(), 0, 0
        marks: list[tuple[int, int]] = []
        with self._path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                digest.update(line)
                if line.strip():
                    if items % _MARK_EVERY == 0:
                        marks.append((offset, number))
                    items += 1
                offset += len(line)
        return _Scan(digest.hexdigest(), items, marks)


_MARK_EVERY = 1024


@dataclass(frozen=True, slots=True)
class _Scan:
    """A scan of a file notes where every 1,024th item begins, so that reading can start there."""

    sha256: str
    items: int
    marks: list[tuple[int, int]]  # byte offset and line number


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    prompt: Annotated[str, Field(min_length=1)]
    id: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    context: str = ""
    choices: Annotated[list[str], Field(max_length=26)] = []
    answer: str = ""
    tags: dict[str, str] = {}


def read_item(line: bytes, position: int, where: str) -> Item:
    """Read one line of a JSONL file strictly."""
    if line.startswith(codecs.BOM_UTF8):
        raise UserError(f"{where}: starts with a byte order mark; save it as UTF-8 without one")
    try:
        row = _Row.model_validate(strict_json.parse(line.decode("utf-8")))
    except UnicodeDecodeError:
        raise UserError(f"{where}: not UTF-8 text") from None
    except UnreadableReply as problem:
        raise UserError(f"{where}: {problem}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise UserError(f"{where}: {field}: {first['msg']}") from None
    if len(row.choices) == 1:
        raise UserError(f"{where}: choices: one option is no choice; give two or more, or none")
    if row.choices and row.answer and row.answer not in row.choices:
        raise UserError(f"{where}: answer: {row.answer[:60]!r} is none of the choices")
    return Item(
        id=row.id or str(position),
        prompt=row.prompt,
        context=row.context,
        choices=tuple(row.choices),
        answer=row.answer,
        tags=row.tags,
    )
