"""A nested report as flat entries, so that two shapes of it can be held against each other.

An entry's path is made of the names within the report. One entry is: an estimate or a change, with
those of its numbers that are known; a row of a table, with its columns; a list of plain values; any
other value.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson

from evenhand.findings.estimates import Change, Estimate

Entries = dict[str, Any]

_NUMBERS = ({one.name for one in fields(kind) if one.compare} for kind in (Estimate, Change))
_TYPED = tuple(map(frozenset, _NUMBERS))
# What names an element of a list: all of these that it has. Without any of them its place does.
_NAMES = ("name", "category", "set", "by", "kind", "family", "occupation", "trick", "answer",
          "label", "other", "against", "metric", "value", "first", "second",
          "state_after")  # fmt: skip
# Where and when, which is not what was found; checksums, which differ with the last digit of any
# number; and prose, which other tests hold.
_LEFT_OUT = {"run", "source", "created", "versions", "evenhand", "sha256", "says", "why", "next",
             "notes", "note", "title", "bar", "finding", "discussion"}  # fmt: skip
_CLOSE, _ALMOST_0 = 1e-12, 1e-14


def flat(report: Any) -> Entries:
    """The entries of anything that can be written as JSON."""
    return dict(_entries(_worded(orjson.loads(orjson.dumps(report))), ()))


def _worded(value: Any) -> Any:
    """Give the sentence of every remark: it was recorded as one."""
    if isinstance(value, dict):
        if set(value) == {"code", "values", "text"}:
            return value["text"]
        return {key: _worded(inner) for key, inner in value.items()}
    return [_worded(inner) for inner in value] if isinstance(value, list) else value


def _entries(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        if _is_typed(value):
            known = {k: v for k, v in value.items() if k != "name" and v is not None}
            yield _joined(path, value["name"]), known
            return
        for key, inner in value.items():
            if key not in _LEFT_OUT:
                yield from _entries(inner, (*path, key))
    elif _is_nested(value):
        for key, inner in _keyed(value):
            if _is_row(inner):
                yield _joined((*path, key)), inner
            else:
                yield from _entries(inner, (*path, key))
    else:
        yield _joined(path), value


def _is_typed(value: dict[str, Any]) -> bool:
    """Of an estimate or a change."""
    return set(value) in _TYPED


def _is_nested(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict | list) for one in value)


def _is_row(value: Any) -> bool:
    if not isinstance(value, dict) or _is_typed(value):
        return False
    return not any(isinstance(one, dict) or _is_nested(one) for one in value.values())


def _joined(path: tuple[str, ...], name: str = "") -> str:
    """An estimate's own name is its last part already where it stands under it."""
    return " / ".join(path if not name or path[-1:] == (name,) else (*path, name))


def _keyed(values: list[Any]) -> list[tuple[str, Any]]:
    """Elements by their names, if each has one of its own; else by their places."""
    names = [_name(one) for one in values]
    if None in names or len(set(names)) < len(names):
        return [(str(place), one) for place, one in enumerate(values)]
    return [(str(name), _unnamed(one)) for name, one in zip(names, values, strict=True)]


def _name(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    named = [str(value[key]) for key in _names(value)]
    return ", ".join(named) or None


def _unnamed(value: dict[str, Any]) -> dict[str, Any]:
    """Without what is said in its path already."""
    if _is_typed(value):
        return value
    return {
        key: one for key, one in value.items() if key not in _names(value) and key not in _LEFT_OUT
    }


def _names(value: dict[str, Any]) -> list[str]:
    """A state names a row only where there is a state after: a transition."""
    names = ("state", *_NAMES) if "state_after" in value else _NAMES
    return [key for key in names if isinstance(value.get(key), str)]


def differences(recorded: Entries, found: Entries) -> list[str]:
    """What is lost, what is new and what is another value, in words."""
    lines = [f"lost: {path} = {recorded[path]}" for path in recorded if path not in found]
    lines += [f"new: {path} = {found[path]}" for path in found if path not in recorded]
    return lines + [
        f"changed: {path} was {recorded[path]}, is {found[path]}"
        for path in recorded
        if path in found and not _same(recorded[path], found[path])
    ]


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in (one, two)):
        return math.isclose(one, two, rel_tol=_CLOSE, abs_tol=_ALMOST_0)
    return type(one) is type(two) and bool(one == two)


def write(cases: Mapping[str, Entries], file: Path) -> None:
    """One line per entry, so that a difference between two versions of the file can be read."""
    parts = []
    for case, entries in cases.items():
        lines = ",\n".join(f"  {_json(path)}: {_json(entries[path])}" for path in sorted(entries))
        parts.append(f" {_json(case)}: {{\n{lines}\n }}")
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def read(file: Path) -> dict[str, Entries]:
    found: dict[str, Entries] = orjson.loads(file.read_bytes())
    return found


def _json(value: Any) -> str:
    return orjson.dumps(_rounded(value)).decode()


def _rounded(value: Any) -> Any:
    """Sums in another order differ in their last digits: they would differ in each recording."""
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.14g}") if isinstance(value, float) else value
