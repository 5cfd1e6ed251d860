"""`evenhand debate`: a model argues in roles, and a referee scores what it says (RLDF paper)."""

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.debate_sweep import sweep
from evenhand.cli.debate_topics import topics
from evenhand.cli.execution import end, show_dry_run
from evenhand.cli.forecast import show_forecast
from evenhand.cli.run_options import RunCommand, with_run_options
from evenhand.cli.screen import out, print_json
from evenhand.cli.watching import Terminal
from evenhand.experiments.debating import check_topics, run_debates
from evenhand.runs.runners import JsonlFile
from evenhand.training.debates.debate import Debate
from evenhand.views import terminal_of

debate = typer.Typer(
    help="Let a model debate in roles and score what it says for bias.\n\n"
    "Example: evenhand debate topics --types age --count 40 --out topics.jsonl",
    no_args_is_help=True,
)

_USUAL = Debate()


class Style(StrEnum):
    OPEN = "open"
    PAPER = "paper"


def run(
    options: RunCommand,
    file: Annotated[
        Path,
        typer.Argument(metavar="TOPICS", help="A file that `evenhand debate topics` wrote."),
    ],
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each debate.")] = _USUAL.rounds,
    referees: Annotated[
        int,
        typer.Option(
            min=1, max=2, help="2: ask again in the opposite order, and report how far both agree."
        ),
    ] = _USUAL.referees,
    style: Annotated[
        Style,
        typer.Option(help="open: debaters give reasons of their own. paper: as in the paper."),
    ] = Style.OPEN,
    statement_tokens: Annotated[
        int, typer.Option(min=16, help="The longest statement, in tokens.")
    ] = _USUAL.statement_tokens,
    roles: Annotated[
        int | None,
        typer.Option(min=2, help="So many of the roles that a topic names. Default: its usual."),
    ] = _USUAL.roles,
) -> None:
    """Debate every topic of a file: roles speak, a referee ranks and scores 0 to 10 for bias.

    One model plays all roles, or the cast of the config gives `debater` and `referee` to others.
    Writes debates.json into the run folder. Run it again to resume. Ends with code 2 if fewer than
    95 % of the debates came to their end, with 3 at a cap.

    Example: evenhand debate run topics.jsonl --rounds 5 --out runs/debate
    """
    method = Debate(
        rounds=rounds,
        referees=referees,
        style=style.value,
        statement_tokens=statement_tokens,
        roles=roles,
    )
    config = options.load()
    request = options.request(JsonlFile(file), method, config)
    check_topics(request, method)
    if request.settings.dry_run:
        show_dry_run({request.settings.out: request}, json=options.json)
    debated = asyncio.run(run_debates(request, Terminal(config)))
    if debated.ended.pilot is not None:
        show_forecast(request.settings, debated.ended, json=options.json)
        return
    if debated.report is None:  # stopped before the first: nothing to report
        end(debated.ended, below_floor=True)
        return
    if options.json:
        print_json(debated.report.to_dict())
    else:
        out.print(terminal_of(debated.report))
    end(debated.ended, below_floor=debated.report.summary.coverage.below_floor)


_FIXED = ("method", "wording", "set_", "system")  # the debaters' words are the method itself
_NO_RUN = ("out", "dry_run", "pilot")  # the calls lie beside the file of topics
debate.command(no_args_is_help=True)(with_run_options(topics, without=(*_FIXED, *_NO_RUN)))
debate.command(no_args_is_help=True)(with_run_options(run, without=_FIXED))
debate.command(no_args_is_help=True)(with_run_options(sweep, without=_FIXED))
