"""The key says which text is which. Raters never get it."""

from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.errors import UserError
from evenhand.rating.texts import Text


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeyRun(_Part):
    run: str
    method: dict[str, Any]
    cast: dict[str, Any]


class Key(_Part):
    """What was drawn from which runs, and who was given what in which order."""

    format: Literal[1] = 1
    evenhand: str
    rubric: str  # sha256
    seed: int
    overlap: int  # raters of each text
    shared: bool
    left_out: dict[str, int]
    runs: tuple[KeyRun, ...]
    texts: tuple[Text, ...]
    sheets: dict[str, tuple[str, ...]]  # rater -> ids, in the order shown

    def to_bytes(self) -> bytes:
        return orjson.dumps(self.model_dump(), option=orjson.OPT_INDENT_2) + b"\n"


def read_key(path: Path) -> Key:
    try:
        key = Key.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError:
        raise UserError(
            f"{path} is no key of rating sheets; `evenhand rate export` writes one beside them"
        ) from None
    return key
