"""A finding shows itself: as a page in a notebook, in a file, and in remarks, which are codes with
numbers; the views have the words."""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import polars as pl

from evenhand.core.errors import UserError


class Displayable:
    """Base class of findings, which can show and save themselves.

    Our choice: the views are a room above the findings and import them, so the one call upwards
    goes by name. Jupyter asks the object itself for `_repr_html_`, so it must be here.
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the finding as plain data, for JSON."""
        raise NotImplementedError

    def frame(self) -> pl.DataFrame:
        """The finding as a table, where it is one."""
        kind = type(self).__name__.lower()
        raise UserError(f"a {kind} is not one table; save it as .json, .md, .html or .pdf")

    def save(self, path: str, *, full: bool = True) -> None:
        """Write the finding to a file. A PDF is printed by a Chromium on this machine.

        Args:
            path: The file: .json, .parquet, .md, .html or .pdf.
            full: Whether a page has everything, or the short form, such as one sheet of a report.
        """
        importlib.import_module("evenhand.views").save(self, path, full=full)

    def _repr_html_(self) -> str:
        html: str = importlib.import_module("evenhand.views").html_of(self)
        return html


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


class Named(Protocol):
    @property
    def name(self) -> str: ...


_NamedT = TypeVar("_NamedT", bound=Named)


def named(entries: Iterable[_NamedT], name: str, what: str) -> _NamedT:
    """Give the entry of this name.

    Args:
        entries: Where it is looked for.
        name: Its name.
        what: What such an entry is called, for the error that says which there are.
    """
    by_name = {entry.name: entry for entry in entries}
    if name not in by_name:
        raise KeyError(f"there is no {what} {name!r}; there are: {', '.join(by_name)}")
    return by_name[name]
