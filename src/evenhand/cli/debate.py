"""`evenhand train debate`: topics, debates that a referee scores, and sweeps (RLDF paper)."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from evenhand.agents import Read
from evenhand.cli.execution import Terminal, end, show_dry_run, show_forecast
from evenhand.cli.options import RunCommand, names_in, with_run_options
from evenhand.cli.screen import err, out, print_finding, print_json
from evenhand.core.new_files import refuse_taken
from evenhand.experiments.debating import (
    Topics,
    ask_topics,
    check_topics,
    own_topics,
    run_debates,
    run_sweep,
    sweep_requests,
    types_named,
)
from evenhand.experiments.running import RunEnd
from evenhand.runs.runners import ItemList, JsonlFile
from evenhand.training.debates.debate import Debate, Style
from evenhand.training.debates.sweep import read_plan
from evenhand.training.debates.topics import DebateTopics, bias_types


def topics(
    options: RunCommand,
    file: Annotated[
        Path, typer.Option("--out", "-o", help="Write the topics to this new file, one per line.")
    ],
    types: Annotated[
        str | None,
        typer.Option(help="Select bias types, separated by commas. Default: the paper's five."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Set the number of topics per bias type.")] = 40,
    roles: Annotated[
        Path | None, typer.Option(help="Read custom bias types and roles from this TOML file.")
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Read topics from this file, one per line, instead of asking a model."
        ),
    ] = None,
) -> None:
    """Make topics for debates: asked of a model, or from a list of yours; each one once.

    Stores the calls next to the file, in a folder that ends in .runs. Run a stopped command
    again to resume, or pass that folder to --replay. Exits with code 2 if a type has too few
    topics, with 3 at a cap.

    Example: evenhand train debate topics --types age,beauty --count 40 --out topics.jsonl
    """
    kinds = types_named(None if types is None else names_in(types), bias_types(roles))
    refuse_taken(file)
    if from_ is not None:
        result = own_topics(from_, kinds)
    else:
        config = options.load()
        command = options.into(str(file.with_suffix(".runs")))
        request = command.request(ItemList([]), DebateTopics(), config)
        result = asyncio.run(ask_topics(request, kinds, count, Terminal(config)))
        end(result.ended, below_floor=False)
    result.write(kinds, file)
    _show_topics(result, file, json=options.json)


def _show_topics(result: Topics, path: Path, *, json: bool) -> None:
    """Print how many topics each type has, and leave with code 2 if one has too few."""
    numbers, short = result.numbers(), result.short()
    if json:
        print_json({"file": str(path), "types": numbers})
    else:
        table = Table("bias type", "listed", "duplicates", "topics", box=None)
        for name, row in numbers.items():
            table.add_row(name, *(f"{row[key]:,}" for key in ("listed", "duplicates", "topics")))
        out.print(table)
        out.print(
            f"{path}; next: evenhand train debate run {path} --out runs/debate", soft_wrap=True
        )
    for name in short:
        err.print(
            f"{name}: {numbers[name]['topics']} of {result.count} topics; the model repeats "
            "itself. Lower --count, set a stronger model as topic_writer, or pass a list (--from)",
            soft_wrap=True,
        )
    end(RunEnd(), below_floor=bool(short))


def sweep(
    options: RunCommand,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="TOPICS",
            help="Read topics from the file that `evenhand train debate topics` wrote.",
        ),
    ],
    plan: Annotated[
        Path | None,
        typer.Option(help="Read the settings to vary from this TOML file. Default: the paper's."),
    ] = None,
) -> None:
    """Debate with other numbers of roles, rounds and topics, and make pairs of each.

    The sweep varies one setting at a time. It runs the debates of each number of roles once, in
    OUT/debates-N, and takes fewer rounds, topics and pairs from them. OUT/pairs contains the pairs
    of each setting. Run the command again to resume. --max-calls and --max-cost limit the whole
    sweep. Exits with code 3 at a cap.

    Example: evenhand train debate sweep topics.jsonl --plan plan.toml --out runs/sweep
    """
    sweep_plan, config = read_plan(plan), options.load()
    requests = sweep_requests(
        lambda topics, method: options.request(topics, method, config), sweep_plan, JsonlFile(file)
    )
    if options.settings.dry_run:
        show_dry_run(
            {request.settings.out: request for request in requests.values()}, json=options.json
        )
    swept = asyncio.run(run_sweep(requests, sweep_plan, options.out, Terminal(config)))
    if options.settings.pilot:
        for roles, ended in swept.endings.items():
            show_forecast(requests[roles].settings, ended, json=options.json)
        return
    if swept.sweep is None:
        end(swept.ended, below_floor=False)
        return
    print_finding(swept.sweep, json=options.json)
    end(swept.ended, below_floor=any(arm.folder is None for arm in swept.sweep.arms))


debate = typer.Typer(
    help="Generate debates in roles that a referee scores.\n\n"
    "Example: evenhand train debate topics --types age --count 40 --out topics.jsonl",
    no_args_is_help=True,
)

_USUAL = Debate()


def run(
    options: RunCommand,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="TOPICS",
            help="Read topics from the file that `evenhand train debate topics` wrote.",
        ),
    ],
    rounds: Annotated[
        int, typer.Option(min=1, help="Set the number of rounds per debate.")
    ] = _USUAL.rounds,
    referees: Annotated[
        int,
        typer.Option(
            min=1,
            max=2,
            help="Set the number of referee calls. 2 asks again in reverse order and reports the "
            "agreement.",
        ),
    ] = _USUAL.referees,
    style: Annotated[
        Style,
        typer.Option(
            help="Choose the prompts. open: debaters give their own reasons. paper: as in the "
            "paper."
        ),
    ] = "open",
    statement_tokens: Annotated[
        int, typer.Option(min=16, help="Limit each statement to this many tokens.")
    ] = _USUAL.statement_tokens,
    roles: Annotated[
        int | None,
        typer.Option(
            min=2, help="Use this many roles of each topic. Default: the usual roles of the topic."
        ),
    ] = _USUAL.roles,
    read: Annotated[
        Read,
        typer.Option(
            help="Choose how the referee is read. logprob: one digit about each statement alone, "
            "by its log-probabilities."
        ),
    ] = _USUAL.read,
) -> None:
    """Debate every topic of a file: roles speak, a referee ranks and scores 0 to 10 for bias.

    One model takes all roles, unless [roles] in the config assigns `debater` and `referee` to other
    models. Writes debates.json into the run folder. Run the command again to resume. Exits with
    code 2 if fewer than 95% of the debates are complete, with 3 at a cap.

    Example: evenhand train debate run topics.jsonl --rounds 5 --out runs/debate
    """
    method = Debate(
        rounds=rounds,
        referees=referees,
        style=style,
        statement_tokens=statement_tokens,
        roles=roles,
        read=read,
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
    print_finding(debated.report, json=options.json)
    end(debated.ended, below_floor=debated.report.summary.coverage.below_floor)


_FIXED = ("method", "wording", "set_", "system")  # the method sets the prompts of the debaters
_NO_RUN = ("out", "dry_run", "pilot")  # the calls are next to the file of topics
debate.command(no_args_is_help=True)(with_run_options(topics, without=(*_FIXED, *_NO_RUN)))
debate.command(no_args_is_help=True)(with_run_options(run, without=_FIXED))
debate.command(no_args_is_help=True)(with_run_options(sweep, without=_FIXED))
