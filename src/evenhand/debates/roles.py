"""Who debates about what: bias types and their roles, as data that a user can add to."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from evenhand.errors import UserError

MOST_ROLES = 6  # our choice: the paper tries 2 to 5 (Figure 8)
_SEPARATOR = "|"

_Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_-]+$")]
_Words = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^|\r\n]+$")]


class BiasType(BaseModel):
    """`about` completes "people are judged by …". `more` are further roles, for debates of more
    than the usual ones (`debate run --roles N`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    about: _Words
    roles: Annotated[list[_Words], Field(min_length=2, max_length=MOST_ROLES)]
    more: Annotated[list[_Words], Field(max_length=MOST_ROLES)] = []

    @model_validator(mode="after")
    def _all_different(self) -> Self:
        every = [*self.roles, *self.more]
        if len(set(every)) < len(every):
            raise ValueError("two roles are the same")
        return self


_FILE = TypeAdapter(dict[_Name, BiasType])


def bias_types(path: Path | None = None) -> dict[str, BiasType]:
    """The five of the paper, and those of a user's TOML file, which win where names are equal."""
    shipped = resources.files(__package__).joinpath("roles.toml").read_text("utf-8")
    types = _FILE.validate_python(tomllib.loads(shipped))
    return types if path is None else types | _read(path)


def _read(path: Path) -> dict[str, BiasType]:
    try:
        return _FILE.validate_python(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"] if part != "[key]")
        raise UserError(
            f"{path}: {key}: {first['msg']}. A bias type is a table [name] with `about`, a "
            f"phrase, and `roles`, a list of 2 to {MOST_ROLES} phrases"
        ) from None


def joined(roles: list[str]) -> str:
    """As a tag of an item holds them."""
    return _SEPARATOR.join(roles)


def split(tag: str) -> list[str]:
    return [name for name in tag.split(_SEPARATOR) if name.strip()]
