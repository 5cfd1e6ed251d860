"""Bytes as decisions: the same bytes always make the same document.

hypothesis and atheris both hand out bytes, so one set of generators serves both, and a failing
document shrinks by shrinking its bytes: a decision that was not made is the plainest one.
"""

from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")


class Decisions:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1; 0 when the bytes are used up."""
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % bound

    def pick(self, options: Sequence[_T]) -> _T:
        return options[self.below(len(options))]

    def one_in(self, number: int) -> bool:
        return self.below(number) == number - 1

    def place(self, length: int) -> int:
        """A place in something of this length, its end included."""
        return (self.below(256) * 256 + self.below(256)) % (length + 1)

    def rest(self) -> bytes:
        rest, self._at = self._data[self._at :], len(self._data)
        return rest
