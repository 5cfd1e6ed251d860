"""The figures of a pack are the numbers of its dossier, as `evenhand report --json` prints them; a
repeat of them is held against the first."""

import math
from collections.abc import Iterator
from typing import Any

import orjson

from evenhand.findings.combined_report import CombinedReport
from evenhand.views.files import plain, printed

# Our choice: another processor may add in another order, which moves the last digits of a sum. What
# should be 0 may then be some 1e-14; the second number is for that alone, since a p-value may be
# small too.
_CLOSE, _NOTHING = 1e-9, 1e-12
_ABSENT = object()  # no key, which is not null
_LONGEST = 80  # our choice, in signs of a text that differs


def written(dossier: CombinedReport) -> bytes:
    """Write all figures of a dossier, each beside what it is of."""
    return printed(plain(dossier.to_dict())).encode()


def count(value: Any) -> int:
    """Count the numbers in plain data."""
    if isinstance(value, dict):
        return sum(map(count, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(count, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def differences(packed: Any, again: Any, where: str = "") -> Iterator[str]:
    """Name each place in which two pieces of plain data differ, with what either has."""
    if isinstance(packed, dict) and isinstance(again, dict):
        for key in sorted({*packed, *again}):
            path = f"{where}.{key}" if where else str(key)
            yield from differences(packed.get(key, _ABSENT), again.get(key, _ABSENT), path)
    elif isinstance(packed, list) and isinstance(again, list) and len(packed) == len(again):
        for number, (left, right) in enumerate(zip(packed, again, strict=True)):
            yield from differences(left, right, f"{where}[{number}]")
    elif not _same(packed, again):
        yield f"{where}: {_short(packed)} in the pack, {_short(again)} from its runs"


def is_as_printed(held: bytes, value: Any) -> bool:
    """Say whether bytes are what a pack has of plain data. Two keys of one name, of which readers
    take one or the other, are then no way to show what the runs do not."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS  # of certificates
    try:
        return held in (printed(value).encode(), orjson.dumps(value, option=options) + b"\n")
    except orjson.JSONEncodeError:  # deeper than anything that is written here
        return False


def _same(left: Any, right: Any) -> bool:
    numbers = [value for value in (left, right) if isinstance(value, float)]
    if numbers and not isinstance(left, bool) and not isinstance(right, bool):
        both = isinstance(left, int | float) and isinstance(right, int | float)
        return both and math.isclose(left, right, rel_tol=_CLOSE, abs_tol=_NOTHING)
    return type(left) is type(right) and bool(left == right)


def _short(value: Any) -> str:
    text = "nothing" if value is _ABSENT else "null" if value is None else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
