"""`evenhand demo`: recorded runs, played back without a model."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from evenhand.cli.options import Json
from evenhand.cli.screen import err, out, print_json
from evenhand.experiments.demo import Demo, Played
from evenhand.findings.examples import Choice
from evenhand.views import terminal
from evenhand.views.charts import installed
from evenhand.views.demo_page import page
from evenhand.views.files import plain

_OPENING = Text(
    "Recorded runs, played back: no model is asked, nothing is fetched. Every number is computed "
    "now, from run folders that are part of the package."
)


def demo(
    folder: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path(
        "evenhand-demo"
    ),
    json: Json = False,
) -> None:
    """Show what comes out, without a model.

    It plays recorded runs back that are part of the package: two conversations, a comparison, two
    audits. Nothing is asked and nothing is fetched; every number is computed here and now from the
    run folders, which it copies, with one page of all of it, for you to go on with.

    Example: evenhand demo
    """
    shown = Demo(folder)
    shown.copy()
    if not json:
        out.print(_OPENING)
    parts: list[Played] = []
    waiting = shown.played()
    while (one := _computed(waiting)) is not None:
        parts.append(one)
        if not json:
            _part(len(parts), one)
    with err.status(Text(f"writing {shown.page}")):  # a name of a folder is no markup
        shown.write_page()
    if json:
        print_json(_plain(shown, parts))
    else:
        _ending(shown, parts)


def _computed(parts: Iterator[Played]) -> Played | None:
    with err.status("computing the numbers"):  # never while something else is printed
        return next(parts, None)


def _part(number: int, one: Played) -> None:
    out.print()
    out.rule(Text(f"{number}. {one.part.title}", style="bold"), align="left", style="dim")
    out.print(Text(one.part.says))
    out.print()
    out.print(terminal.render(page(one.finding, one.part.tables)))
    out.print()
    out.print(Text(f"made by  {one.model.says}", style="dim"))
    for command in one.part.again:
        out.print(Text(f"repeat   {command}", style="dim"), soft_wrap=True)


def _ending(shown: Demo, parts: list[Played]) -> None:
    out.print()
    out.rule(Text("What now", style="bold"), align="left", style="dim")
    out.print(Text(f"wrote  {shown.page}, to be opened in a browser"))
    if not installed():
        out.print(Text("       with charts: pip install 'evenhand[report]', then evenhand demo"))
    for command in _next(shown):
        out.print(Text(f"next   {command}"), soft_wrap=True)
    out.print(
        Text(
            "What stands behind “repeat” asks a model of your own (evenhand doctor), or reads "
            "Bloomberg's answers where they are at hand (docs/rankings.md)."
        )
    )
    out.print()
    for says, sha256 in {one.model.says: one.model.sha256 for one in parts}.items():
        if sha256:
            out.print(Text(f"Weights of {says}, sha256\n  {sha256}", style="dim"))


def _next(shown: Demo) -> list[str]:
    """Give three commands that work right there, as the package is installed."""
    runs = shown.out / "runs"
    commands = (
        ("compare", runs / "bbq-default", runs / "bbq-stardtox", "--full"),
        ("runs", "show", runs / "bbq-stardtox"),
        ("runs", "report", runs / "rankings", "--full"),
    )
    return [shlex.join(["evenhand", *map(str, one)]) for one in commands]


def _plain(shown: Demo, parts: list[Played]) -> dict[str, Any]:
    return {
        "page": str(shown.page),
        "parts": [
            {
                **one.part.model_dump(),
                "runs": one.runs,
                "model": one.model.model_dump(),
                "finding": _finding(one),
            }
            for one in parts
        ],
        "next": _next(shown),
    }


def _finding(one: Played) -> Any:
    return plain(one.finding if isinstance(one.finding, Choice) else one.finding.to_dict())
