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
from evenhand.views import demo_page, terminal
from evenhand.views.charts import installed
from evenhand.views.files import plain

_OPENING = Text("Recorded runs of real models. Every number is computed now; no model is called.")


def demo(
    folder: Annotated[
        Path, typer.Option("--out", "-o", help="Write the demo into this folder.")
    ] = Path("evenhand-demo"),
    full: Annotated[
        bool, typer.Option("--full", help="Print every table, and two conversations.")
    ] = False,
    json: Json = False,
) -> None:
    """Tour recorded results. Needs no model.

    The demo replays recorded runs that are part of the package: a repair that works, an open
    question, a judge that fails its audit, and a CV screener with a bias. It makes no model calls
    and downloads nothing. It computes every number now, and writes a page with all results and a
    copy of the run folders for you to use.

    Example: evenhand demo
    """
    demonstration = Demo(folder)
    demonstration.copy()
    if not json:
        out.print(_OPENING)
    parts: list[PlayedPart] = []
    waiting = demonstration.played(full=full or json)
    while (played := _computed(waiting)) is not None:
        parts.append(played)
        if not json:
            _part(len(parts), played, full=full)
    with err.status(Text(f"writing {demonstration.page}")):  # a folder name is not markup
        demonstration.write_page()
    if json:
        print_json(_plain(demonstration, parts))
    else:
        _ending(demonstration, parts, full=full)


def _computed(parts: Iterator[PlayedPart]) -> PlayedPart | None:
    with err.status("computing the numbers"):  # never while something else is printed
        return next(parts, None)


def _part(number: int, played: PlayedPart, *, full: bool) -> None:
    out.print()
    out.print(Text(f"{number}. {played.part.title}", style="bold"))
    out.print(Text(played.part.says))
    if not full:
        out.print(terminal.render(demo_page.short(played.finding)))
        return
    out.print()
    out.print(terminal.render(demo_page.page(played.finding)))
    out.print()
    out.print(Text(f"made by  {played.model.says}", style="dim"))
    for command in played.part.again:
        out.print(Text(f"repeat   {command}", style="dim"), soft_wrap=True)


def _ending(demonstration: Demo, parts: list[PlayedPart], *, full: bool) -> None:
    out.print()
    out.print(Text(f"wrote  {demonstration.page} (open it in a browser)"))
    if not installed():
        out.print(Text("       with charts: pip install 'evenhand[report]', then evenhand demo"))
    commands = _next(demonstration)
    for command in commands if full else commands[:1]:
        out.print(Text(f"next   {command}"), soft_wrap=True)
    if not full:
        out.print(Text("more   evenhand demo --full    (every table, and how to repeat it)"))
        return
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
        ("compare", runs / "bbq-default", runs / "bbq-repaired"),
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
