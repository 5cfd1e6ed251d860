"""`evenhand demo`: replay recorded runs without a model."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from evenhand.cli.options import Json
from evenhand.cli.screen import err, out, print_json
from evenhand.experiments.demo import Demo, PlayedPart
from evenhand.findings.examples import ChosenExamples
from evenhand.views import terminal
from evenhand.views.charts import installed
from evenhand.views.demo_page import page
from evenhand.views.files import plain

_OPENING = Text(
    "The demo replays recorded runs, without model calls or downloads. It computes every number "
    "now, from run folders that are part of the package."
)


def demo(
    folder: Annotated[
        Path, typer.Option("--out", "-o", help="Write the demo into this folder.")
    ] = Path("evenhand-demo"),
    json: Json = False,
) -> None:
    """Tour recorded results. Needs no model.

    The demo replays recorded runs that are part of the package: two conversations, a comparison and
    two audits. It makes no model calls and downloads nothing. It computes every number now, and
    writes a page with all results and a copy of the run folders for you to use.

    Example: evenhand demo
    """
    demonstration = Demo(folder)
    demonstration.copy()
    if not json:
        out.print(_OPENING)
    parts: list[PlayedPart] = []
    waiting = demonstration.played()
    while (played := _computed(waiting)) is not None:
        parts.append(played)
        if not json:
            _part(len(parts), played)
    with err.status(Text(f"writing {demonstration.page}")):  # a folder name is not markup
        demonstration.write_page()
    if json:
        print_json(_plain(demonstration, parts))
    else:
        _ending(demonstration, parts)


def _computed(parts: Iterator[PlayedPart]) -> PlayedPart | None:
    with err.status("computing the numbers"):  # never while something else is printed
        return next(parts, None)


def _part(number: int, played: PlayedPart) -> None:
    out.print()
    out.rule(Text(f"{number}. {played.part.title}", style="bold"), align="left", style="dim")
    out.print(Text(played.part.says))
    out.print()
    out.print(terminal.render(page(played.finding, played.part.tables)))
    out.print()
    out.print(Text(f"made by  {played.model.says}", style="dim"))
    for command in played.part.again:
        out.print(Text(f"repeat   {command}", style="dim"), soft_wrap=True)


def _ending(demonstration: Demo, parts: list[PlayedPart]) -> None:
    out.print()
    out.rule(Text("Next steps", style="bold"), align="left", style="dim")
    out.print(Text(f"wrote  {demonstration.page}; open it in a browser"))
    if not installed():
        out.print(Text("       with charts: pip install 'evenhand[report]', then evenhand demo"))
    for command in _next(demonstration):
        out.print(Text(f"next   {command}"), soft_wrap=True)
    out.print(
        Text(
            "The “repeat” commands call your model (evenhand doctor), or read Bloomberg's answers "
            "if you have downloaded them (docs/adverse-impact.md)."
        )
    )
    out.print()
    for model_name, sha256 in {played.model.says: played.model.sha256 for played in parts}.items():
        if sha256:
            out.print(Text(f"Weights of {model_name}, sha256\n  {sha256}", style="dim"))


def _next(demonstration: Demo) -> list[str]:
    """Return three commands that work in the current folder."""
    runs = demonstration.out / "runs"
    commands = (
        ("compare", runs / "bbq-default", runs / "bbq-stardtox", "--full"),
        ("runs", "show", runs / "bbq-stardtox"),
        ("report", runs / "rankings", "--full"),
    )
    return [shlex.join(["evenhand", *map(str, command)]) for command in commands]


def _plain(demonstration: Demo, parts: list[PlayedPart]) -> dict[str, Any]:
    return {
        "page": str(demonstration.page),
        "parts": [
            {
                **played.part.model_dump(),
                "runs": played.runs,
                "model": played.model.model_dump(),
                "finding": _finding(played),
            }
            for played in parts
        ],
        "next": _next(demonstration),
    }


def _finding(played: PlayedPart) -> Any:
    return plain(
        played.finding if isinstance(played.finding, ChosenExamples) else played.finding.to_dict()
    )
