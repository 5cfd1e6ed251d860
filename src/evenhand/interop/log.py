"""What is taken from a log, whatever tool wrote it."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from evenhand.core.errors import CorruptRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of answers says which tool asked which model, and which file tells of it."""

    tool: str
    version: str  # of the tool; "" where the log does not say
    task: str
    model: str
    created: str
    file: str  # its name, without the folder
    sha256: str

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> "Origin | None":
        """Read the origin that the record of a run has, where it has one."""
        origin = source.get("origin")
        if origin is None:
            return None
        names = {field.name for field in fields(cls)}
        if not isinstance(origin, dict) or origin.keys() != names:
            raise CorruptRun("run.json does not say where its answers are from as evenhand does")
        return cls(**{name: str(value) for name, value in origin.items()})

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAnswer:
    """One question of a log: its metadata, its options, and the answer in words, or as the position
    of an option. A missing answer is None."""

    about: Mapping[str, Any]
    options: tuple[str, ...]
    answer: str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalItem:
    """One item as the data have it: what a run folder leaves to the data, and what logs of other
    tools tell of it."""

    about: Mapping[str, Any]  # its fields in the data, but for the texts
    context: str
    question: str
    own: tuple[str, ...]  # its options in the data's order
    options: tuple[str, ...]  # in the order in which they were shown
    gold: int | None  # the place of the right one among those shown; None where the data are wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A log of another tool, as far as scoring needs it."""

    origin: Origin
    answers: tuple[LoggedAnswer, ...]
    notes: tuple[str, ...] = ()  # what a reader must know: what was left out, what is absent


def sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def made_by(metadata: Mapping[str, Any]) -> tuple[str, str] | None:
    """Give the name and version of evenhand, where a log says that it is an export of ours."""
    tool, _, version = str(metadata.get("made_by", "")).partition(" ")
    return (tool, version[:40]) if tool == "evenhand" else None
