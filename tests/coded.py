"""Finds a remark of a finding by its code, also as a part of another remark."""

from collections.abc import Iterable, Iterator
from typing import Any

from evenhand.findings.display import Remark


def every(said: object) -> Iterator[Remark]:
    """Yield each remark, and the remarks within it."""
    if isinstance(said, Remark):
        yield said
        for value in said.values.values():
            yield from every(value)
    elif isinstance(said, Iterable) and not isinstance(said, str):
        for one in said:
            yield from every(one)


def coded(said: object, code: str) -> dict[str, Any]:
    """Return the values of the first remark of this code."""
    found = [remark for remark in every(said) if remark.code == code]
    assert found, (code, [remark.code for remark in every(said)])
    return dict(found[0].values)


def codes(said: object) -> list[str]:
    """Return the codes of all remarks."""
    return [remark.code for remark in every(said)]
