"""`evenhand self-test`: does the instrument read what was planted in models of known behaviour?"""

import asyncio
from typing import Annotated

import typer
from rich.text import Text

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json, waiting
from evenhand.self_test import CHECKS, Reading
from evenhand.self_test import self_test as tested

_SHOWN = 3  # of the claims that do not hold


def self_test(
    seed: Annotated[
        int, typer.Option(help="Draws the answers of the controls; another one is another trial.")
    ] = 0,
    replications: Annotated[
        int, typer.Option(min=4, help="How often a number that varies by chance is looked at.")
    ] = 20,
    json: Json = False,
) -> None:
    """Check that this machine reads models of known behaviour rightly.

    Models in this process, whose bias is known because it was planted, go through measure, compare
    and frontier on generated questions; no endpoint, no data and no network are used. One line says
    what is planted and what was read. Ends with code 1 if a control is misread. It takes a minute
    or two.

    Example: evenhand self-test --seed 1
    """

    async def run() -> list[Reading]:
        found: list[Reading] = []
        async with waiting("") as line:

            def begins(name: str) -> None:
                line.what = f"{len(found) + 1} of {len(CHECKS)}: {name}"

            async for one in tested(seed=seed, replications=replications, begins=begins):
                found.append(one)
                if not json:
                    out.print(_said(one), soft_wrap=True)
        return found

    found = asyncio.run(run())
    good = sum(one.good for one in found)
    if json:
        print_json({"good": good == len(found), "seed": seed, "controls": [*map(_plain, found)]})
    else:
        style = "green" if good == len(found) else "bold red"
        out.print(Text(f"{good} of {len(found)} controls are read as planted", style=style))
    if good < len(found):
        raise typer.Exit(1)


def _said(one: Reading) -> Text:
    line = Text("✓ " if one.good else "✗ ", style="green" if one.good else "bold red")
    line.append(one.control, style="bold").append(f": planted: {one.planted}; read: {one.read}")
    for claim in one.misread[:_SHOWN]:
        line.append(f"\n    should hold: {claim}", style="not bold default")
    if one.misread[_SHOWN:]:
        line.append(f"\n    and {len(one.misread) - _SHOWN} more (--json has all)", style="dim")
    return line


def _plain(one: Reading) -> dict[str, object]:
    return {
        "control": one.control,
        "planted": one.planted,
        "read": one.read,
        "good": one.good,
        "misread": one.misread,
    }
