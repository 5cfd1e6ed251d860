"""A remark is what a finding has to say, as a code with its numbers. The views have the words."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, init=False)
class Remark:
    """A remark names one sentence by its code and holds the values that the sentence needs. A value
    may be a remark itself: a part of the sentence.

    >>> Remark("comparison.better", measures=("bias score",))
    """

    code: str
    values: Mapping[str, Any]

    def __init__(self, code: str, /, **values: Any) -> None:
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        """Return the words of the catalogue. Our choice: the views import the findings, so the one
        call upwards goes by name, as in `Displayable`; it lets Python print a verdict."""
        words: str = importlib.import_module("evenhand.views.catalog").text(self)
        return words

    def __hash__(self) -> int:
        return hash(self.code)

    def __getitem__(self, name: str) -> Any:
        """Return a value by its name."""
        return self.values[name]


# What an instrument or a plugin says of itself may still be a text.
RemarkOrText = Remark | str


def codes(remarks: tuple[RemarkOrText, ...] | list[RemarkOrText]) -> list[str]:
    """Return the codes of remarks; a text stands for itself."""
    return [remark.code if isinstance(remark, Remark) else remark for remark in remarks]
