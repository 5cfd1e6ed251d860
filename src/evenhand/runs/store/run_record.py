"""`run.json` says what a run is. It is written before the first call and never edited."""

import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.core import registry
from evenhand.core.errors import CorruptRun, UnknownFormat
from evenhand.core.prices import ASKS
from evenhand.runs.store.differences import FieldDiff, refuse, told_apart

_COMPARED = ("method", "prompts", "cast", "source", "limits", "seed")
FORMAT = 2  # 2: results with answer_before, scores_before and scores_after


class RunRecord(BaseModel):
    """The record of a run: its plan and the versions it was made with."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: int = FORMAT
    # What the run is: a resumed run must agree with all of it.
    method: dict[str, Any]
    prompts: dict[str, str]  # "stardtox/judge@1" -> sha256 of the file
    cast: dict[str, Any]  # role -> who plays it, for each role that the method asks
    source: dict[str, Any]
    limits: dict[str, Any]
    seed: int | None
    # When and with what: for the reader, not compared.
    settings: dict[str, Any] = {}  # of the process that began it
    created: str
    versions: dict[str, str]

    def differences(self, other: "RunRecord") -> list[str]:
        """List what this plan has otherwise than the record of a folder."""
        compared = [name for name in _COMPARED if name != "cast"]
        different = [name for name in compared if getattr(self, name) != getattr(other, name)]
        return different if self._same_players(other) else [*different, "cast"]

    def told_apart(self, other: "RunRecord") -> tuple[FieldDiff, ...]:
        """Name what two runs over the same items have otherwise. Of the cast, the roles that both
        have: another method has other roles."""
        shared = [role for role in self.cast if role in other.cast]
        roles = [role for role in shared if role != "default"] or shared
        ours, theirs = (
            {name: getattr(record, name) for name in _COMPARED}
            | {"cast": {role: _who(record.cast[role]) for role in roles}}
            for record in (self, other)
        )
        return told_apart(ours, theirs)

    def _same_players(self, other: "RunRecord") -> bool:
        """Say whether each role of this plan is played by whom the other has for it. A plan lists
        every role that its method asks. Earlier records listed those that the config named: one
        that they lack was played by the default model, one more was never asked."""
        default = other.cast.get("default")
        return all(
            _who(other.cast.get(role, default)) == _who(player)
            for role, player in self.cast.items()
        )

    def to_bytes(self) -> bytes:
        return orjson.dumps(self.model_dump(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)

    @property
    def planned(self) -> int | None:
        """How many items the plan has; None where that is not known beforehand, as of live traffic.

        Such a run has no number that it could fall short of, so it is not for ever unfinished; it
        has come to an end when its ledger says so, and until then it is open (`RunReader.open`).
        """
        items: int | None = self.source["items"]
        return items

    @property
    def keeps_texts(self) -> bool:
        """Whether prompts and answers are in the folder; live traffic may be kept without them."""
        return bool(self.source.get("content", "on") == "on")

    @property
    def is_whole(self) -> bool:
        """Whether the record holds what every reader of a run asks for. No ledger vouches for it
        before the first entry."""
        items = self.source.get("items", -1)  # None is said, not left out
        identifiers = (self.method.get("name"), self.source.get("kind"))
        inner = (self.method.get("settings"), self.cast.get("default"))
        return (
            (items is None or (type(items) is int and items >= 0))
            and all(isinstance(name, str) for name in identifiers)
            and all(isinstance(mapping, dict) for mapping in inner)
        )

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "RunRecord":
        try:
            raw = orjson.loads(data)
            version = raw["format"]
            if not isinstance(version, int):
                raise TypeError
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise CorruptRun(f"{where}/run.json is not a run record") from None
        if version != FORMAT:
            raise UnknownFormat(
                f"{where} has format {version}, this evenhand reads format {FORMAT}; "
                "use the evenhand version that run.json names"
            )
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise CorruptRun(f"{where}/run.json: {error.errors()[0]['msg']}") from None


def versions(parts: Iterable[tuple[registry.Group, str]] = ()) -> dict[str, str]:
    """List the versions of what made a run, with the other packages that its parts come from."""
    packages = ("evenhand", "aiohttp", "orjson", "polars", "pyarrow", "pydantic")
    installed = {package: _version(package) for package in packages}
    others = filter(None, (registry.distribution_of(*part) for part in parts))
    made_by = {"python": platform.python_version(), "platform": platform.platform()}
    return {**made_by, **installed, **dict(others)}


@cache
def _version(package: str) -> str:
    return metadata.version(package)  # a file to find and parse, each time


def now() -> str:
    """The time in UTC, to the millisecond: of two runs of the same second it is known which came
    first, and some counts ask for that."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def refuse_other_run(planned: RunRecord, existing: RunRecord, where: str) -> None:
    """Refuse to resume a folder by another plan than the one that made it."""
    different = planned.differences(existing)
    there = {name: getattr(existing, name) for name in different}
    if "cast" in there:  # only the roles that this plan asks
        default = existing.cast.get("default")
        there["cast"] = {role: existing.cast.get(role, default) for role in planned.cast}
    refuse(there, {name: getattr(planned, name) for name in different}, where)


def _who(player: Any) -> Any:
    """Who plays a role, without what follows from that and records of earlier versions lack."""
    if not isinstance(player, dict):
        return player
    return {name: value for name, value in player.items() if name != ASKS}
