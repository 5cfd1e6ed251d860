"""`evenhand conformance`: what the numbers of any scorer of BBQ-like questions should do."""

import asyncio
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json, waiting
from evenhand.conformance import others, ours, suite
from evenhand.conformance.checks import Property, Scores, judge
from evenhand.conformance.page import Outcome, is_broken, page
from evenhand.errors import UserError
from evenhand.views import markdown as as_markdown
from evenhand.views import terminal

_OURS = "evenhand"


def conformance(
    tool: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Who is tested: {_OURS} (the default), {', '.join(others.TOOLS)}, or the path of "
            "an adapter. Several are shown side by side."
        ),
    ] = None,
    python: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help=f"The Python that has the tool, one for each --tool but {_OURS}, in their order. "
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
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "suite"
        suite.write(folder)
        properties = suite.read_properties(folder)
        results = [
            asyncio.run(_scored(name, run_by, folder)) for name, run_by in _paired(tool, python)
        ]
    outcomes: list[Outcome] = [(result.tool, judge(properties, result)) for result in results]
    _show(properties, outcomes, markdown=markdown, json=json)
    if any(is_broken(judged) for _, judged in outcomes):
        raise typer.Exit(2)


def _paired(tools: list[str] | None, pythons: list[str] | None) -> list[tuple[str, str]]:
    """Each tool with the Python that runs it."""
    tools = tools or [_OURS]
    elsewhere = [tool for tool in tools if tool != _OURS]
    pythons = pythons or [sys.executable] * len(elsewhere)
    if len(pythons) != len(elsewhere):
        raise UserError(
            f"--python was given {len(pythons)} times for {len(elsewhere)} tools: "
            "give one for each, or none"
        )
    by_tool = iter(pythons)
    return [(tool, "" if tool == _OURS else next(by_tool)) for tool in tools]


async def _scored(name: str, python: str, folder: Path) -> Scores:
    async with waiting(f"{name} scores the cases"):
        if name == _OURS:
            return await ours.scores(folder, folder.parent / "runs")
        return await asyncio.to_thread(others.scores, name, python, folder)


def _show(
    properties: list[Property], outcomes: list[Outcome], *, markdown: bool, json: bool
) -> None:
    if json:
        print_json(_plain(properties, outcomes))
    elif markdown:
        sys.stdout.write(as_markdown.render(page(properties, outcomes)))
    else:
        out.print(terminal.render(page(properties, outcomes)))


def _plain(properties: list[Property], outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        "properties": [prop.model_dump(include={"name", "says", "because"}) for prop in properties],
        "tools": [
            {"tool": tool, "properties": [asdict(verdict) for verdict in judged]}
            for tool, judged in outcomes
        ],
    }
