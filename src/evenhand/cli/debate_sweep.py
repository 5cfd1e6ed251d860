"""`evenhand debate sweep`: debates with other numbers of roles, rounds, topics and pairs."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.execution import RunEnd, end, show_dry_run
from evenhand.cli.forecast import show_forecast
from evenhand.cli.run_options import RunCommand
from evenhand.cli.screen import out, print_json
from evenhand.cli.watching import Terminal
from evenhand.experiments.debating import pairs_of_sweep, run_debates_of_sweep, sweep_requests
from evenhand.runs.runners import JsonlFile
from evenhand.training.debates.sweep import read_plan
from evenhand.views import terminal_of
from evenhand.views.files import plain


def sweep(
    options: RunCommand,
    file: Annotated[
        Path, typer.Argument(metavar="TOPICS", help="A file that `evenhand debate topics` wrote.")
    ],
    plan: Annotated[
        Path | None, typer.Option(help="A TOML file with what is varied. Default: the paper's.")
    ] = None,
) -> None:
    """Debate with other numbers of roles, rounds and topics, and make pairs of each.

    One thing is varied at a time. Every number of roles is debated once, in OUT/debates-N; fewer
    rounds, topics and pairs are taken from these. The pairs of each setting are in OUT/pairs. Run
    it again to resume; --max-calls and --max-cost are for all of it. Ends with code 3 at a cap.

    Example: evenhand debate sweep topics.jsonl --plan plan.toml --out runs/sweep
    """
    sweep_plan, config = read_plan(plan), options.load()
    source = JsonlFile(file)
    items = list(source.read(0, len(source)))
    requests = sweep_requests(
        lambda topics, method: options.request(topics, method, config), sweep_plan, items
    )
    if options.settings.dry_run:
        show_dry_run(
            {request.settings.out: request for request in requests.values()}, json=options.json
        )
    endings = asyncio.run(run_debates_of_sweep(requests, Terminal(config)))
    if options.settings.pilot:
        for roles, ended in endings.items():
            show_forecast(requests[roles].settings, ended, json=options.json)
        return
    for ended in endings.values():
        end(ended, below_floor=False)
    result = pairs_of_sweep(requests, sweep_plan, options.out)
    if options.json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result))
    end(RunEnd(), below_floor=any(arm.folder is None for arm in result.arms))
