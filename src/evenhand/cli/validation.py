"""`dev self-test` and `dev conformance`: test evenhand and other tools on known results."""

import asyncio
import itertools
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from evenhand.cli.codes import BELOW_FLOOR
from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json, waiting
from evenhand.validation.conformance import suite
from evenhand.validation.conformance.run import OURS, TOOLS, Conformance, page, run_conformance
from evenhand.validation.self_test import CHECKS, ControlReading
from evenhand.validation.self_test import self_test as tested
from evenhand.views import markdown as as_markdown
from evenhand.views import terminal

_SHOWN = 3  # of the claims that do not hold


def self_test(
    seed: Annotated[
        int, typer.Option(help="Set the random seed for the answers of the synthetic models.")
    ] = 0,
    replications: Annotated[
        int, typer.Option(min=4, help="Set the number of replications of each random quantity.")
    ] = 20,
    json: Json = False,
) -> None:
    """Check evenhand against models with known bias.

    Synthetic models with injected bias go through measure, compare and frontier on generated
    questions. The test needs no endpoint, data or network. Each line shows the injected bias and
    the result. Exits with code 1 if a result is wrong. The test takes a minute or two.

    Example: evenhand dev self-test --seed 1
    """
    number = itertools.count(1)

    async def run() -> list[ControlReading]:
        readings: list[ControlReading] = []
        async with waiting("") as line:

            def begins(name: str) -> None:
                line.what = f"{next(number)} of {len(CHECKS)}: {name}"

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
        out.print(
            Text(
                f"{good} of {len(readings)} controls are read as planted",
                style="green" if good == len(readings) else "bold red",
            )
        )
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


def conformance(
    tool: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Test this tool: {OURS} (the default), {', '.join(TOOLS)}, or the path of an "
            "adapter. Repeat it to compare tools."
        ),
    ] = None,
    python: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help=f"Run the tool with this Python. Repeat it for each --tool except {OURS}, in the "
            "same order. Default: this Python.",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Only write the suite into this folder, without tests."
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option(help="Print the tables as Markdown.")] = False,
    json: Json = False,
) -> None:
    """Test any BBQ scorer against known answers.

    Exits with code 2 if a property is violated. A number that a tool does not print is not a fault.

    Example: evenhand dev conformance --tool lm-eval --python ~/venvs/lm-eval/bin/python
    """
    if write is not None:
        suite.write(write)
        out.print(f"wrote the suite into {write}; README.md explains its format", soft_wrap=True)
        return
    result = asyncio.run(
        run_conformance(
            tool or (),
            pythons=python or (),
            scoring=lambda name: waiting(f"{name} scores the cases"),
        )
    )
    _show(result, markdown=markdown, json=json)
    if result.is_broken:
        raise typer.Exit(BELOW_FLOOR)


def _show(result: Conformance, *, markdown: bool, json: bool) -> None:
    blocks = page(result.properties, result.outcomes)
    if json:
        print_json(_conformance_plain(result))
    elif markdown:
        sys.stdout.write(as_markdown.render(blocks))
    else:
        out.print(terminal.render(blocks))


def _conformance_plain(result: Conformance) -> dict[str, Any]:
    return {
        "properties": [
            entry.model_dump(include={"name", "says", "because"}) for entry in result.properties
        ],
        "tools": [
            {"tool": tool, "properties": [asdict(verdict) for verdict in judged]}
            for tool, judged in result.outcomes
        ],
    }
