"""A finding shows itself: as a page in a notebook, and in a file."""

import importlib
from typing import Any

import polars as pl

from evenhand.core.errors import UserError


class Displayable:
    """A finding can do this beside holding its numbers: show itself, and save itself.

    Our choice: the views are a room above the findings and import them, so the one call upwards
    goes by name. Jupyter asks the object itself for `_repr_html_`; there is no other place for it.
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the finding as plain data, for JSON."""
        raise NotImplementedError

    def frame(self) -> pl.DataFrame:
        """The finding as a table, where it is one."""
        kind = type(self).__name__.lower()
        raise UserError(f"a {kind} is not one table; save it as .json, .md, .html or .pdf")

    def save(self, path: str) -> None:
        """Write the finding to a file: .json, .parquet, .md, .html or .pdf, by its ending. A PDF
        is printed by a Chromium on this machine."""
        importlib.import_module("evenhand.views").save(self, path)

    def _repr_html_(self) -> str:
        html: str = importlib.import_module("evenhand.views").html_of(self)
        return html
