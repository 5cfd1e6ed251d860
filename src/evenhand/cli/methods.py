"""`evenhand methods` lists methods and settings; `evenhand dev new` writes a plugin
or a scenario."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from evenhand.api.installation import Kind, write
from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.experiments.installation import MethodDescription, described_methods
from evenhand.views import catalog


def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show only this method.")
    ] = None,
    json: Json = False,
) -> None:
    """List mitigation methods and their settings.

    The calls per item are those of the default settings.

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
    table = Table("method", "calls per item", "what it does", box=None, pad_edge=False)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for name, described in entries.items():
        table.add_row(name, described.calls_an_item, Text(described.about))
    out.print(table)
    out.print(Text("\nSettings and an example of a method: evenhand methods stardtox"))


def _show_one(name: str, described: MethodDescription) -> None:
    out.print(Text(f"{name}: {described.about}"))
    out.print(Text(f"\ncalls per item  {described.calls_an_item}"))
    table = Table("setting", "default", box=None, pad_edge=False)
    for setting, default in described.settings.items():
        table.add_row(setting, Text(str(default)))
    out.print(table if table.rows else Text("It has no settings."))
    out.print(Text(f"\nExample: {catalog.text(described.example)}"), soft_wrap=True)


_TRY = {
    "instrument": "evenhand measure {name} --method random --out runs/{name}",
    "method": "evenhand methods {name}",
    "scorer": 'evenhand scorers score {name} "HOW NICE to see you"',
    "scenario": "evenhand measure actions --scenario {folder} --dry-run --out runs/{name}",
}


def new(
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND", help="Write this: an instrument, a method, a scorer or a scenario."
        ),
    ],
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name it with small letters, digits and underscores."),
    ],
    into: Annotated[Path, typer.Option(help="Write it into this folder.")] = Path(),
    json: Json = False,
) -> None:
    """Create a plugin, or a scenario of actions.

    A plugin is an instrument, a method or a scorer. The command writes a small working one with a
    test, for you to change. After you install it, every command accepts its name. A scenario is one
    file: what an agent is asked, about whom, and which of its actions count.

    Example: evenhand dev new instrument job_titles
    """
    folder = write(kind, name, into)
    written = [file for file in folder.rglob("*") if file.is_file()] if folder.is_dir() else []
    files = sorted(str(file.relative_to(folder)) for file in written)
    install = [
        shlex.join(["pip", "install", "-e", f"{folder}[dev]"]),
        shlex.join(["pytest", str(folder)]),
    ]
    trial = _TRY[kind].format(name=name, folder=shlex.quote(str(folder)))
    commands = [*(install if written else []), trial]
    if json:
        print_json({"folder": str(folder), "files": files, "next": commands})
        return
    out.print(Text("\n  ".join([f"wrote {folder}", *files])), soft_wrap=True)
    out.print(Text("\nnext\n  " + "\n  ".join(commands)), soft_wrap=True)
