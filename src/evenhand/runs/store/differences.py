"""This module says why a folder cannot be resumed: which settings differ between its record and a
command."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evenhand.core.errors import UserError

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
    """Refuse to resume a folder whose record differs from what a command planned."""
    differences = _told(_between(existing, planned))
    if not differences:
        return
    labelled = [
        (_label(difference.path), *map(_shown, _values(difference))) for difference in differences
    ]
    there = ", ".join(f"{label} {existing}" for label, existing, _ in labelled)
    here = ", ".join(f"{label} {planned}" for label, _, planned in labelled)
    if len(labelled) == 1:
        here = labelled[0][2]
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
