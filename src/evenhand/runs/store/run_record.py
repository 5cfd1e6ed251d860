"""`run.json` says what a run is. It is written before the first call and never edited. Where a
folder cannot be resumed, it is said which settings differ between its record and a command."""

import hashlib
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.core import registry
from evenhand.core.errors import CorruptRun, UnknownFormat, UserError
from evenhand.core.prices import ASKS

_CHECKSUM = re.compile(r"[0-9a-f]{64}")
_NOT_THERE = object()
_LONGEST = 60  # characters of a value; our choice: both values fit a screen's line or two
# What follows from the sample, and so is said only where the sample is the same.
_FOLLOWS_FROM_SAMPLE = ("items", "buckets", "probes", "sha256")


class Difference(NamedTuple):
    path: tuple[str, ...]
    found: Any
    planned: Any


class FieldDiff(NamedTuple):
    """One setting that two records have otherwise, in words."""

    part: str  # of the record: "method", "cast", "limits"
    setting: str
    before: str
    after: str


def told_apart(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[FieldDiff, ...]:
    """Name each setting that differs between the parts of two records, with both values."""
    return tuple(
        FieldDiff(
            str(difference.path[0]), _label(difference.path), *map(_shown, _values(difference))
        )
        for difference in _told(_between(before, after))
    )


def refuse(existing: Mapping[str, Any], planned: Mapping[str, Any], where: str) -> None:
    """Refuse to resume a run folder whose record differs from the planned one.

    Args:
        existing: Settings of the run in the directory.
        planned: Settings of this command.
        where: Directory for the error message.

    Raises:
        UserError: The settings differ; the message names the differences.
    """
    told = told_apart(existing, planned)
    if not told:
        return
    there = ", ".join(f"{diff.setting} {diff.before}" for diff in told)
    here = ", ".join(f"{diff.setting} {diff.after}" for diff in told)
    if len(told) == 1:
        here = told[0].after
    raise UserError(
        f"{where} was made with {there}; this command has {here}. "
        "Give --out a new folder, or repeat the command that made this one"
    )


def _between(existing: Any, planned: Any, path: tuple[str, ...] = ()) -> list[Difference]:
    """List the single values that differ, however deep they lie."""
    if isinstance(existing, Mapping) and isinstance(planned, Mapping):
        names = dict.fromkeys((*existing, *planned))
        return [
            difference
            for name in names
            for difference in _between(
                existing.get(name, _NOT_THERE), planned.get(name, _NOT_THERE), (*path, name)
            )
        ]
    return [] if existing == planned else [Difference(path, existing, planned)]


def _told(differences: Sequence[Difference]) -> list[Difference]:
    """Leave out those that only follow from another one: another method or wording has other
    prompts. One that both have, in two versions, is said."""
    paths = [difference.path for difference in differences]
    other_method = ("method", "name") in paths
    prompts = [path[1].partition("@")[0] for path in paths if path[0] == "prompts"]
    other_words = ("method", "settings", "wording") in paths
    other_sample = any(path[:2] == ("source", "sampling") for path in paths)
    return [
        difference
        for difference in differences
        if not (
            other_method
            and difference.path[0] in ("method", "prompts")
            and difference.path[-1] != "name"
        )
        and not (other_words and _is_lone(difference, prompts))
        and not (
            other_sample
            and difference.path[0] == "source"
            and difference.path[1] in _FOLLOWS_FROM_SAMPLE
        )
    ]


def _is_lone(difference: Difference, prompts: Sequence[str]) -> bool:
    """Whether it is a prompt that one side alone has, in any version."""
    if difference.path[0] != "prompts" or _NOT_THERE not in (difference.found, difference.planned):
        return False
    return prompts.count(difference.path[1].partition("@")[0]) == 1


def _label(path: tuple[str, ...]) -> str:
    match path:
        case ("method", "name"):
            return "method"
        case ("source", "sampling", "seed"):
            return "sample_seed"
        case ("source", "sha256"):
            return "items with the checksum"
        case (
            ("source", "sampling", name) | ("method", "settings", name) | ("cast", "default", name)
        ):
            return name
        case ("prompts", name):
            return f"prompt {name}"
        case ("source" | "limits", *names):
            return " ".join(names)
        case ("cast", role, name):
            return f"{'system prompt' if name == 'system' else name} of {role}"
        case _:
            return " ".join(path)


def _values(difference: Difference) -> tuple[Any, Any]:
    """Give both values; of a system prompt, as it is shown."""
    values = difference.found, difference.planned
    if difference.path[-1] != "system":
        return values
    existing, planned = (shown_prompt(v) if isinstance(v, str) else v for v in values)
    return existing, planned


def shown_prompt(text: str) -> str:
    """Show a system prompt in one line. A long one is cut and has its checksum in front, so that
    two that begin alike are told apart."""
    words = " ".join(text.split())
    if len(words) <= _LONGEST - 2:
        return f'"{words}"'
    return f'{hashlib.sha256(text.encode()).hexdigest()[:8]} "{words[: _LONGEST - 12]}…"'


def _shown(value: Any) -> str:
    text = "not set" if value is None or value is _NOT_THERE else str(value)
    if _CHECKSUM.fullmatch(text):
        return f"{text[:8]}…"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


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
    """Refuse to resume a run folder with another plan than its own.

    Args:
        planned: Record of this command.
        existing: Record in the directory. Roles that the plan does not ask are ignored.
        where: Directory for the error message.

    Raises:
        UserError: The records differ.
    """
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
