"""`evenhand debate`: a model argues in roles, and a referee scores what it says (RLDF paper)."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.debate_sweep import sweep
from evenhand.cli.debate_topics import topics
from evenhand.cli.execution import end, execute
from evenhand.cli.forecast import show_forecast
from evenhand.cli.run_options import RunCommand, with_run_options
from evenhand.cli.screen import out, print_json
from evenhand.config import Config
from evenhand.debates.debate import Debate
from evenhand.experiments.debate_sweeps import refuse_too_long
from evenhand.experiments.request import Request
from evenhand.findings.debates import debates
from evenhand.runners import JsonlFile
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.views import terminal_of
from evenhand.views.files import to_json

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
    source = JsonlFile(file)
    config = options.load()
    request = options.request(source, method, config)
    refuse_too_long(method, source.read(0, len(source)), request.settings.limits)
    _run_and_show(request, config, json=options.json)


def _run_and_show(request: Request, config: Config, *, json: bool) -> None:
    settings = request.settings
    ended = execute(request, config, json=json)
    if ended.pilot is not None:
        show_forecast(settings, ended, json=json)
        return
    run = RunReader(settings.out)
    if not run.totals().items:  # stopped before the first: nothing to report
        end(ended, below_floor=True)
    report = debates(run, settings.prices)
    open_folder(settings.out).replace("debates.json", to_json(report))
    if json:
        print_json(report.to_dict())
    else:
        out.print(terminal_of(report))
    end(ended, below_floor=report.summary.coverage.below_floor)


_FIXED = ("method", "wording", "set_", "system")  # the debaters' words are the method itself
_NO_RUN = ("out", "dry_run", "pilot")  # the calls lie beside the file of topics
debate.command(no_args_is_help=True)(with_run_options(topics, without=(*_FIXED, *_NO_RUN)))
debate.command(no_args_is_help=True)(with_run_options(run, without=_FIXED))
debate.command(no_args_is_help=True)(with_run_options(sweep, without=_FIXED))
