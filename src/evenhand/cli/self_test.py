"""`evenhand self-test`: does the instrument read what was planted in models of known behaviour?"""

import asyncio
from typing import Annotated

import typer
from rich.text import Text

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json, waiting
from evenhand.validation.self_test import CHECKS, ControlReading
from evenhand.validation.self_test import self_test as tested

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

    async def run() -> list[ControlReading]:
        readings: list[ControlReading] = []
        async with waiting("") as line:

            def begins(name: str) -> None:
                line.what = f"{len(readings) + 1} of {len(CHECKS)}: {name}"

            async for reading in tested(seed=seed, replications=replications, begins=begins):
                readings.append(reading)
                if not json:
                    out.print(_said(reading), soft_wrap=True)
        return readings

    readings = asyncio.run(run())
    good = sum(reading.good for reading in readings)
    if json:
        print_json(
            {"good": good == len(readings), "seed": seed, "controls": [*map(_plain, readings)]}
        )
    else:
        style = "green" if good == len(readings) else "bold red"
        out.print(Text(f"{good} of {len(readings)} controls are read as planted", style=style))
    if good < len(readings):
        raise typer.Exit(1)


def _said(reading: ControlReading) -> Text:
    line = Text("✓ " if reading.good else "✗ ", style="green" if reading.good else "bold red")
    line.append(reading.control, style="bold").append(
        f": planted: {reading.planted}; read: {reading.read}"
    )
    for claim in reading.misread[:_SHOWN]:
        line.append(f"\n    should hold: {claim}", style="not bold default")
    if reading.misread[_SHOWN:]:
        line.append(f"\n    and {len(reading.misread) - _SHOWN} more (--json has all)", style="dim")
    return line


def _plain(reading: ControlReading) -> dict[str, object]:
    return {
        "control": reading.control,
        "planted": reading.planted,
        "read": reading.read,
        "good": reading.good,
        "misread": reading.misread,
    }
