"""Where items come from: an ordered source in which each item has a position.

A position, not an id, says which items are done, so a resumed run needs one bit per item.
"""

import codecs
import hashlib
from collections.abc import Iterator, Sequence
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

    def __iter__(self) -> Iterator[Item]:
        """The items in order; the first one has position 0."""
        ...


class ItemList:
    """Items at hand, as in a notebook."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items

    def fingerprint(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for item in self._items:
            digest.update(orjson.dumps(item, option=orjson.OPT_SORT_KEYS))
        return {"kind": "list", "items": len(self._items), "sha256": digest.hexdigest()}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)


class JsonlFile:
    """One JSON object a line: `prompt`; if wanted `id`, `context`, `choices`, `answer`, `tags`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_file():
            raise UserError(
                f'{path} is not a file. It should hold lines like {{"prompt": "Describe a nurse."}}'
            )

    def fingerprint(self) -> dict[str, Any]:
        sha256, items = self._scan
        return {"kind": "jsonl", "name": self._path.name, "items": items, "sha256": sha256}

    def __len__(self) -> int:
        return self._scan[1]

    def __iter__(self) -> Iterator[Item]:
        position = 0
        with self._path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield read_item(line, position, f"{self._path} line {number}")
                    position += 1

    @cached_property
    def _scan(self) -> tuple[str, int]:
        digest, items = hashlib.sha256(), 0
        with self._path.open("rb") as file:
            for line in file:
                digest.update(line)
                items += bool(line.strip())
        return digest.hexdigest(), items


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    prompt: Annotated[str, Field(min_length=1)]
    id: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    context: str = ""
    choices: Annotated[list[str], Field(max_length=26)] = []
    answer: str = ""
    tags: dict[str, str] = {}


def read_item(line: bytes, position: int, where: str) -> Item:
    """One line of a JSONL file, read strictly."""
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
