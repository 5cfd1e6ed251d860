"""How a command runs a request, and how it ends: with the code that says how it went."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn

import typer

from evenhand.cli.codes import BELOW_FLOOR, CAPPED, STOPPED
from evenhand.cli.screen import err, out, print_json
from evenhand.cli.watching import Terminal
from evenhand.experiments import running
from evenhand.experiments.config import Config
from evenhand.experiments.dry_run import dry_run
from evenhand.experiments.request import Request
from evenhand.experiments.running import RunEnd
from evenhand.views import terminal_of
from evenhand.views.files import plain

__all__ = ["Out", "RunEnd", "end", "execute", "show_dry_run"]

Out = Annotated[
    str, typer.Option("--out", "-o", help="The run folder, new or to be resumed: a path or a URL.")
]


def show_dry_run(
    requests: Mapping[str, Request], *, json: bool, code: int = 0, **more: Any
) -> NoReturn:
    """Print what these runs will ask, and leave: nobody is asked.

    Args:
        requests: The runs by name.
        json: As JSON.
        code: The exit code.
        more: Of `experiments.dry_run`.
    """
    preview = asyncio.run(dry_run(requests, **more))
    if json:
        print_json(plain(preview.to_dict()))
    else:
        out.print(terminal_of(preview))
    raise typer.Exit(code)


def execute(request: Request, config: Config, *, json: bool) -> RunEnd:
    """Run a request, with progress on the terminal; of a dry run, print what it will ask."""
    if request.settings.dry_run:
        show_dry_run({request.settings.out: request}, json=json)
    return asyncio.run(running.execute(request, Terminal(config)))


def end(ended: RunEnd, *, below_floor: bool) -> None:
    """Leave with the code that says how it went."""
    if ended.capped_by:
        err.print(
            f"stopped at {ended.capped_by}; run again with a higher one to go on. The run has made "
            f"{ended.calls:,} calls; those for items that are not finished are kept and not paid "
            "twice."
        )
        raise typer.Exit(CAPPED)
    if ended.stopped:
        err.print("stopped; nothing is lost. Run the same command again to go on.")
        raise typer.Exit(STOPPED)
    if below_floor:
        raise typer.Exit(BELOW_FLOOR)
