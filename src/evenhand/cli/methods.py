"""`evenhand methods`: what there is and what can be set."""

import inspect
from dataclasses import MISSING, fields
from typing import Any

from rich.table import Table
from rich.text import Text

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.methods import METHODS


def methods(json: Json = False) -> None:
    """List the methods, or show one with its settings.

    Example: evenhand methods
    """
    listed = {name: _described(kind) for name, kind in METHODS.items()}
    if json:
        print_json(listed)
        return
    table = Table("method", "what it does", "settings (--set name=value)", box=None)
    for name, described in listed.items():
        settings = ", ".join(f"{key}={value}" for key, value in described["settings"].items())
        table.add_row(name, Text(described["about"]), settings or "none")
    out.print(table)


def _described(kind: type[Any]) -> dict[str, Any]:
    about = (inspect.getdoc(inspect.getmodule(kind)) or "").split("\n\n")[0].replace("\n", " ")
    settings = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    return {"about": about, "settings": settings}
