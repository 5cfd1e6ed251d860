"""`evenhand methods`: what there is and what can be set."""

import inspect
from dataclasses import MISSING, fields
from typing import Any

from rich.table import Table
from rich.text import Text

from evenhand import registry
from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.errors import UserError
from evenhand.methods import named as method_named


def methods(json: Json = False) -> None:
    """List the methods and their settings.

    Example: evenhand methods
    """
    listed = {name: _described(name) for name in registry.names("methods")}
    if json:
        print_json(listed)
        return
    table = Table("method", "what it does", "settings (--set name=value)", box=None)
    for name, described in listed.items():
        settings = ", ".join(f"{key}={value}" for key, value in described["settings"].items())
        table.add_row(name, Text(described["about"]), settings or "none")
    out.print(table)


def _described(name: str) -> dict[str, Any]:
    try:
        kind = method_named(name)
    except UserError as problem:  # with a method of another package; ours are listed all the same
        return {"about": str(problem), "settings": {}}
    about = (inspect.getdoc(inspect.getmodule(kind)) or "").split("\n\n")[0].replace("\n", " ")
    settings = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    return {"about": about, "settings": settings}
