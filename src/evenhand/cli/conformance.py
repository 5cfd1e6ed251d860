"""`evenhand conformance`: what the numbers of any scorer of BBQ-like questions should do."""

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.codes import BELOW_FLOOR
from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json, waiting
from evenhand.validation.conformance import suite
from evenhand.validation.conformance.run import OURS, TOOLS, Conformance, page, run_conformance
from evenhand.views import markdown as as_markdown
from evenhand.views import terminal


def conformance(
    tool: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Who is tested: {OURS} (the default), {', '.join(TOOLS)}, or the path of "
            "an adapter. Several are shown side by side."
        ),
    ] = None,
    python: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help=f"The Python that has the tool, one for each --tool but {OURS}, in their order. "
            "Default: this one.",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the suite into a folder, and test nobody."),
    ] = None,
    markdown: Annotated[bool, typer.Option(help="Print the tables as Markdown.")] = False,
    json: Json = False,
) -> None:
    """Test what scorers of BBQ-like questions make of answers whose truth is known.

    It ends with code 2 if a property is broken. What a tool prints no number for is no fault.

    Example: evenhand conformance --tool lm-eval --python ~/venvs/lm-eval/bin/python
    """
    if write is not None:
        suite.write(write)
        out.print(f"the suite is in {write}: README.md says its form", soft_wrap=True)
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
        print_json(_plain(result))
    elif markdown:
        sys.stdout.write(as_markdown.render(blocks))
    else:
        out.print(terminal.render(blocks))


def _plain(result: Conformance) -> dict[str, Any]:
    return {
        "properties": [
            entry.model_dump(include={"name", "says", "because"}) for entry in result.properties
        ],
        "tools": [
            {"tool": tool, "properties": [asdict(verdict) for verdict in judged]}
            for tool, judged in result.outcomes
        ],
    }
