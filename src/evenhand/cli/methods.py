"""`evenhand methods`: what there is, what an item costs in calls, and what can be set."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.experiments.installation import MethodDescription, described_methods
from evenhand.views import catalog


def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show this one alone.")] = None,
    json: Json = False,
) -> None:
    """List the methods, or show one with its settings.

    Calls an item are those of the settings as they are when nothing is set.

    Example: evenhand methods stardtox
    """
    methods = described_methods(name)
    if json:
        print_json(methods[name] if name else methods)
    elif name:
        _show_one(name, methods[name])
    else:
        _show_all(methods)


def _show_all(entries: dict[str, MethodDescription]) -> None:
    table = Table("method", "calls an item", "what it does", box=None, pad_edge=False)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for name, described in entries.items():
        table.add_row(name, described.calls_an_item, Text(described.about))
    out.print(table)
    out.print(Text("\nSettings and an example of one: evenhand methods stardtox"))


def _show_one(name: str, described: MethodDescription) -> None:
    out.print(Text(f"{name}: {described.about}"))
    out.print(Text(f"\ncalls an item  {described.calls_an_item}"))
    table = Table("setting", "default", box=None, pad_edge=False)
    for setting, default in described.settings.items():
        table.add_row(setting, Text(str(default)))
    out.print(table if table.rows else Text("It has no settings."))
    out.print(Text(f"\nExample: {catalog.text(described.example)}"), soft_wrap=True)
