"""Assertions on the facts of a message, which survive a better wording of it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

Fact = str | int | float | Path
E = TypeVar("E", bound=BaseException)
_MOST_WORDS = 3


def assert_names(text: object, *facts: Fact) -> None:
    """Assert that each fact occurs in the text, not as a part of a longer word or number.

    Args:
        text: A message, a remark or the output of a command.
        *facts: Options, values, file names, numbers, names: a string has three words at most.
    """
    prose = [fact for fact in facts if isinstance(fact, str) and len(fact.split()) > _MOST_WORDS]
    assert facts, "assert at least one fact"
    assert not prose, f"assert facts of up to {_MOST_WORDS} words, not prose: {prose}"
    missing = [str(fact) for fact in facts if not _occurs(str(fact), str(text))]
    assert not missing, f"{missing} missing from: {text}"


@contextmanager
def raises_naming(
    kind: type[E] | tuple[type[E], ...], *facts: Fact
) -> Iterator[pytest.ExceptionInfo[E]]:
    """Assert that an error of this kind is raised and that its message names each fact.

    Args:
        kind: The type of the error, or several types.
        *facts: As of `assert_names`; at least one that tells this error from its neighbors.

    Yields:
        What `pytest.raises` yields.
    """
    with pytest.raises(kind) as raised:
        yield raised
    assert_names(str(raised.value), *facts)


def _occurs(fact: str, text: str) -> bool:
    before = r"(?<!\w)(?<!\d\.)" if re.match(r"\w", fact) else ""
    after = r"(?!\w|\.\d)" if re.search(r"\w$", fact) else ""
    return bool(re.search(before + re.escape(fact) + after, text))
