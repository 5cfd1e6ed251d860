"""`evenhand new`: a package of one's own to begin with, for an instrument, a method or a scorer."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evenhand.api.scaffold import Kind, write
from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json

_TRY = {
    "instrument": "evenhand measure {name} --method random --out runs/{name}",
    "method": "evenhand methods {name}",
    "scorer": 'evenhand scorers score {name} "HOW NICE to see you"',
}


def new(
    kind: Annotated[
        Kind, typer.Argument(metavar="KIND", help="What to write: instrument, method or scorer.")
    ],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Its name: small letters, digits, underscores.")
    ],
    into: Annotated[Path, typer.Option(help="The folder to write the package into.")] = Path(),
    json: Json = False,
) -> None:
    """Write a package for an instrument, a method or a scorer of your own.

    It is a small working part with a test, to be changed into yours. Once it is installed, every
    command knows it by its name.

    Example: evenhand new instrument job_titles
    """
    folder = write(kind, name, into)
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    commands = [
        shlex.join(["pip", "install", "-e", f"{folder}[dev]"]),
        shlex.join(["pytest", str(folder)]),
        _TRY[kind].format(name=name),
    ]
    if json:
        print_json({"folder": str(folder), "files": files, "next": commands})
        return
    out.print(Text(f"wrote {folder}\n  " + "\n  ".join(files)), soft_wrap=True)
    out.print(Text("\nnext\n  " + "\n  ".join(commands)), soft_wrap=True)
