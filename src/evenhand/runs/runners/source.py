"""A source gives items in order; each item has a position.

A position, not an id, says which items are done, so a resumed run needs one bit per item.
"""

import codecs
import hashlib
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.agents import Agent, strict_json
from evenhand.agents.dialogue import users_of
from evenhand.agents.method import Method
from evenhand.core import Item
from evenhand.core.errors import UnreadableReply, UserError
from evenhand.runs.runners.message_rows import ConversationRow, InspectRow

_M = TypeVar("_M", bound=BaseModel)


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


def agents_of(method: Method, source: Source) -> tuple[Agent[Any], ...]:
    """Give every agent that a run may ask: those of its method, and those of its items."""
    return (*method.agents(), *(source.users if isinstance(source, ItemList) else ()))


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

    @cached_property
    def users(self) -> tuple[Agent[Any], ...]:
        """The agents that write turns of the user in these items."""
        return users_of(self._items)

    def fingerprint(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for item in self._items:
            digest.update(orjson.dumps(item.described()))
        return {"kind": "list", "items": len(self._items), "sha256": digest.hexdigest()}

    def __len__(self) -> int:
        return len(self._items)

    def chunks(self) -> list[tuple[int, int]]:
        return even_chunks(len(self._items))

    def read(self, start: int, stop: int) -> Iterator[Item]:
        return iter(self._items[start:stop])


class JsonlFile:
    """A source of one JSON object a line: `prompt`; if wanted `id`, `context`, `choices`, `answer`,
    `tags`. Or a conversation: `messages`, or the `input` of a sample of Inspect.

    Every line is read once before the first call: a bad one, or an id that comes twice, is refused
    while nothing is paid for yet and no folder is tied to the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._whole = path.absolute()  # another process may stand in another folder
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
        position, stop = mark * _MARK_EVERY, min(stop, len(self))
        for number, line in self._lines(*self._scan.marks[mark]):
            if line.strip():
                if self._scan.lines[position] != zlib.crc32(line):
                    break
                if position >= start:
                    yield self._item(number, line, position)
                position += 1
            if position >= stop:
                return
        raise UserError(
            f"{self._path} changed while it was in use. Restore the old file, or start again in "
            "another run folder."
        )

    @cached_property
    def _scan(self) -> "_Scan":
        digest, items, offset = hashlib.sha256(), 0, 0
        lines = array("I")
        marks: list[tuple[int, int]] = []
        ids = _Ids()
        for number, line in self._lines():
            digest.update(line)
            if line.strip():
                ids.add(self._item(number, line, items).id)
                if items % _MARK_EVERY == 0:
                    marks.append((offset, number))
                lines.append(zlib.crc32(line))
                items += 1
            offset += len(line)
        self._refuse_twins(ids.suspects())
        return _Scan(digest.hexdigest(), items, marks, lines)

    def _lines(self, offset: int = 0, first: int = 1) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers, from a place on; never more of one than a line may
        have."""
        with self._whole.open("rb") as file:
            file.seek(offset)
            for number in count(first):
                line = file.readline(_LONGEST_LINE)
                if not line:
                    return
                if len(line) == _LONGEST_LINE:
                    most = strict_json.MAX_CHARACTERS
                    raise UserError(
                        f"{self._path} line {number} is longer than {most:,} characters. Shorten "
                        "it."
                    )
                yield number, line

    def _item(self, number: int, line: bytes, position: int) -> Item:
        return read_item(line, position, f"{self._path} line {number}")

    def _refuse_twins(self, suspects: frozenset[int]) -> None:
        """Look again at the lines whose ids seem to come twice, by the ids themselves."""
        if not suspects:
            return
        lines_of: dict[str, list[int]] = {}
        position = 0
        for number, line in self._lines():
            if line.strip():
                name = self._item(number, line, position).id
                if hash(name) in suspects:
                    lines_of.setdefault(name, []).append(number)
                position += 1
        twins = {name: lines for name, lines in lines_of.items() if len(lines) > 1}
        if twins:
            name, lines = next(iter(twins.items()))
            more = f", and {len(twins) - 1:,} more ids come twice" if len(twins) > 1 else ""
            raise UserError(
                f"{self._path}: lines {', '.join(map(str, lines[:5]))} have the same id "
                f"{name[:60]!r}{more}. Give each line an id of its own, or none: then its position "
                "is its id"
            )


_MARK_EVERY = 1024
# In bytes: as many characters as the strict reader takes have no more, with room for a line break.
_LONGEST_LINE = 4 * strict_json.MAX_CHARACTERS + 3


@dataclass(frozen=True, slots=True)
class _Scan:
    """A scan of a file notes where every 1,024th item begins, so that reading can start there, and
    a checksum of each line: what is asked later is what was looked through."""

    sha256: str
    items: int
    marks: list[tuple[int, int]]  # byte offset and line number
    lines: "array[int]"  # four bytes an item


class _Ids:
    """The ids of a file, as hashes of eight bytes: 80 MB for ten million items. A file in which no
    line has an id of its own costs nothing."""

    def __init__(self) -> None:
        self._count = 0
        self._hashes: array[int] | None = None

    def add(self, name: str) -> None:
        if self._hashes is None and name != str(self._count):
            self._hashes = array("q", (hash(str(position)) for position in range(self._count)))
        if self._hashes is not None:
            self._hashes.append(hash(name))
        self._count += 1

    def suspects(self) -> frozenset[int]:
        """Give the hashes that are there more than once."""
        if self._hashes is None:
            return frozenset()
        hashes = np.frombuffer(self._hashes, np.int64)
        hashes.sort()  # in place
        return frozenset(hashes[1:][hashes[1:] == hashes[:-1]].tolist())


class _ItemRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    prompt: Annotated[str, Field(min_length=1)]
    id: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    context: str = ""
    choices: Annotated[list[str], Field(max_length=26)] = []
    answer: str = ""
    tags: dict[str, str] = {}

    def item(self, position: int, where: str) -> Item:  # noqa: ARG002
        """The item of this row."""
        values = self.model_dump(exclude={"id", "choices"})
        return Item(id=self.id or str(position), choices=tuple(self.choices), **values)


def read_row(kind: type[_M], line: bytes | str, where: str, form: str = "") -> _M:
    """Read one line of a JSONL file strictly.

    Args:
        kind: Model that the row must match.
        line: The line.
        where: File and line number for error messages.
        form: Example of a valid line, added to the error message. Empty: none.

    Returns:
        The row.

    Raises:
        UserError: The line is not UTF-8, not JSON, or does not match.
    """
    return _validated(kind, _parsed(line, where), where, form)


def _parsed(line: bytes | str, where: str) -> Any:
    try:
        return strict_json.parse(line.decode("utf-8") if isinstance(line, bytes) else line)
    except UnicodeDecodeError:
        raise UserError(f"{where}: not UTF-8 text") from None
    except UnreadableReply as problem:
        raise UserError(f"{where}: {problem}") from None


_NO_CONVERSATIONS = (
    "messages: conversations are not read here. They are by `evenhand answer --messages`, "
    "`mitigate`, `counterfactual` and `measure rtp --prompts-file`"
)


def _validated(kind: type[_M], value: Any, where: str, form: str = "") -> _M:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if isinstance(value, dict) and "messages" in value.keys() - kind.model_fields.keys():
            raise UserError(f"{where}: {_NO_CONVERSATIONS}") from None
        field = ".".join(map(str, first["loc"])) or "the line"
        raise UserError(f"{where}: {field}: {first['msg']}{form and f'; {form}'}") from None


def read_jsonl(
    file: Path | Traversable, kind: type[_M], form: str = ""
) -> Iterator[tuple[int, _M]]:
    """Read a JSONL file strictly; blank lines are skipped.

    Args:
        file: The file, or one that ships with the package.
        kind: The model of a row.
        form: Example of a valid line, added to the error message. Empty: none.

    Yields:
        The number of each line, and its row.

    Raises:
        UserError: The file cannot be read, or a line of it does not match.
    """
    if not file.is_file():  # a pipe would be waited for
        raise UserError(f"{file} is not a file{form and f'; {form}'}")
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, read_row(kind, line, f"{file} line {number}", form)


def _kind_of(value: Any) -> type[_ItemRow | ConversationRow | InspectRow]:
    keys = value if isinstance(value, dict) else ()
    if "messages" in keys:
        return ConversationRow
    return InspectRow if "input" in keys else _ItemRow


def read_item(line: bytes, position: int, where: str) -> Item:
    """Read one item from a line of a JSONL file strictly.

    Args:
        line: The line.
        position: Position of the item, its id if the line has none.
        where: File and line number for error messages.

    Returns:
        The item.

    Raises:
        UserError: The line does not describe a valid item.
    """
    if line.startswith(codecs.BOM_UTF8):
        raise UserError(
            f"{where} starts with a byte order mark. Save the file as UTF-8 without one."
        )
    return item_of(_parsed(line, where), position, where)


def item_of(value: Any, position: int, where: str) -> Item:
    """Make the item that the fields of a line describe.

    Args:
        value: The fields: a prompt, a conversation, or a sample of Inspect.
        position: Position of the item, its id if the line has none.
        where: File and line number for error messages.

    Returns:
        The item.

    Raises:
        UserError: The fields do not describe a valid item.
    """
    row = _validated(_kind_of(value), value, where)
    if len(row.choices or ()) == 1:
        raise UserError(f"{where}: there is only one choice. Give two or more, or none.")
    item = row.item(position, where)
    if item.choices and item.answer and item.answer not in item.choices:
        raise UserError(f"{where}: answer: {item.answer[:60]!r} is none of the choices")
    return item
