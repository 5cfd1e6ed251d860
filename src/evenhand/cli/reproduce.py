"""`evenhand reproduce PAPER [TABLE]`: a paper's table with its numbers beside ours."""

import asyncio
import sys
from collections.abc import Callable
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from evenhand.cli.codes import UNFINISHED
from evenhand.cli.execution import (
    Concurrency,
    DryRun,
    MaxCalls,
    MaxCost,
    Pilot,
    PriceFile,
    Replay,
    Seed,
    StealLock,
    end,
    show_dry_run,
)
from evenhand.cli.options import BaseUrl, ConfigFile, Json, MaxTokens
from evenhand.cli.reproduce_page import paper_page
from evenhand.cli.reproduce_runs import Asked, Planned, laid_out, planned
from evenhand.cli.screen import out, print_json
from evenhand.cli.watching import Terminal
from evenhand.errors import UserError
from evenhand.experiments.caps import Caps
from evenhand.experiments.reproducing import forecasts, run_all
from evenhand.findings.display import Shown
from evenhand.findings.reproduction import catalogue
from evenhand.methods.wording import Wording
from evenhand.papers import PAPERS, Paper, Size, Table, paper_named
from evenhand.store.folder import open_folder
from evenhand.views import markdown, page_of, terminal, terminal_of
from evenhand.views.files import plain, to_json

reproduce = typer.Typer(
    help="Reproduce a table or figure of a paper, its numbers beside ours.\n\n"
    "Example: evenhand reproduce stardtox table3 --size small --dry-run --out runs/papers",
    no_args_is_help=True,
)
PaperName = Annotated[str, typer.Argument(metavar="PAPER", help=f"One of {', '.join(PAPERS)}.")]


@reproduce.command("list")
def list_(json: Json = False) -> None:
    """List every table and figure of the papers: can it be run, and what does it need?

    Example: evenhand reproduce list
    """
    _show(catalogue(), json=json)


@reproduce.command("page")
def page(
    paper: PaperName,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Tables that were run, as NAME.json: PAPER-TABLE."),
    ] = None,
) -> None:
    """Print a paper's page for the documentation: all its tables, ours filled in where they were
    run.

    Example: evenhand reproduce page stardtox --tables docs/reproduced
    """
    sys.stdout.write(paper_page(paper_named(paper), tables))


def _reproduce(
    paper: str,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="Such as table3. Without it: all.")
    ] = None,
    out_: Annotated[
        str, typer.Option("--out", "-o", help="The folder of it all, new or to be resumed.")
    ] = "runs/papers",
    size: Annotated[
        Size, typer.Option(help="small: some minutes with a small model; paper: as published.")
    ] = "small",
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="A model of the endpoint, or one that the config names. Repeat it for several "
            "in one table.",
        ),
    ] = None,
    trained: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODEL",
            help="Under which name trained weights are served, such as 'sft={model}-sft', or "
            "'*={model}-{name}' for all.",
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Runs with commas; the others are shown if they are there.")
    ] = None,
    sample: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of an instrument in the place of the recipe's, such as per_category=20 "
            "or prompts_file=FILE; give it another --out.",
        ),
    ] = None,
    wording: Annotated[
        Wording,
        typer.Option(help="paper: mabrf and stardtox with the intent of the papers' prompts."),
    ] = "ours",
    show: Annotated[
        bool, typer.Option("--show", help="Ask nobody: lay out what is in the folder.")
    ] = False,
    dry_run: DryRun = False,
    pilot: Pilot = None,
    prices: PriceFile = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    seed: Seed = None,
    concurrency: Concurrency = 64,
    replay: Replay = None,
    steal_lock: StealLock = False,
    max_tokens: MaxTokens = None,
    base_url: BaseUrl = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    arguments = Asked(
        paper=paper_named(paper),
        tables=_tables(paper_named(paper), table),
        out=out_.rstrip("/"),
        size=size,
        models=tuple(model or ()),
        trained=_pairs("--trained", trained or ()),
        only=None if only is None else tuple(name.strip() for name in only.split(",")),
        show=show,
        dry_run=dry_run,
        pilot=pilot,
        prices=prices,
        seed=seed,
        concurrency=concurrency,
        replay=None if replay is None else replay.rstrip("/"),
        steal_lock=steal_lock,
        max_tokens=max_tokens,
        base_url=base_url,
        config=config,
        wording=wording,
        sample=_pairs("--sample", sample or ()),
    )
    plan = planned(arguments)
    if dry_run:
        _dry_run(plan, json=json)
    prices_ = plan.settings.prices.prices() if plan.settings.prices else None
    caps = Caps(max_calls=max_calls, max_cost=max_cost, prices=prices_)
    ended, pilots = asyncio.run(run_all(plan.jobs, Terminal(plan.settings), caps))
    if pilot and pilots:
        free = [name for name, run in arguments.paper.runs.items()
                if run.replays
                and any(name in table.runs() for table in arguments.tables)]  # fmt: skip
        _show(asyncio.run(forecasts(plan.jobs, pilots, prices_, played_back=free)), json=json)
    if pilot or ended.early:
        end(ended, below_floor=False)
        return
    reproductions = laid_out(arguments, plan)
    folder = open_folder(f"{arguments.out}/{arguments.place}")
    for reproduction in reproductions:
        folder.replace(f"{reproduction.table}.json", to_json(reproduction))
        folder.replace(f"{reproduction.table}.md", markdown.render(page_of(reproduction)).encode())
    if json:
        print_json({"tables": [plain(reproduction.to_dict()) for reproduction in reproductions]})
    else:
        for (
            reproduction
        ) in reproductions:  # a table of many models is wider than a terminal: no cell is cut off
            wide = max(out.width, terminal.width(page_of(reproduction)))
            out.print(terminal_of(reproduction), "", width=wide, crop=False)
        names = ", ".join(
            f"{reproduction.table}.json, {reproduction.table}.md" for reproduction in reproductions
        )
        out.print(f"{arguments.out}/{arguments.place}: {names}", style="dim")
    end(ended, below_floor=any(reproduction.below_floor for reproduction in reproductions))


def _dry_run(plan: Planned, *, json: bool) -> NoReturn:
    """Print what the runs will ask, and which rows cannot be run and why; code 2 if none can."""
    ready = [job for job in plan.jobs if not job.waits]
    show_dry_run(
        {f"{job.model}: {job.run}": job.prepare()[0] for job in ready},
        json=json,
        code=0 if plan.jobs else UNFINISHED,
        played_back=[f"{job.model}: {job.run}" for job in plan.jobs if job.played_back],
        waiting=[f"{j.model}: {j.run}" for j in plan.jobs if j.waits and not j.played_back],
        cannot_run={f"{model}: {run}": why for (model, run), why in plan.missing.items()},
    )


def _show(result: Shown, *, json: bool) -> None:
    if json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result))


def _tables(paper: Paper, name: str | None) -> tuple[Table, ...]:
    """The tables that were asked for; one that has no recipe says why."""
    if name is None:
        return tuple(table for table in paper.tables if not table.reason)
    chosen = paper.table(name)
    if chosen is None or chosen.reason:
        entries = {entry.table: entry for entry in catalogue([paper.name]).entries}
        why = f"{entries[name].where}: {entries[name].reason} " if name in entries else ""
        there = ", ".join(table for table, entry in entries.items() if entry.runnable)
        raise UserError(f"{paper.name} has no {name} to run. {why}There are: {there}")
    return (chosen,)


def _pairs(option: str, assignments: list[str] | tuple[()]) -> dict[str, str]:
    pairs = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"{option} {assignment}: write it as NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _command(name: str) -> Callable[..., None]:
    """The command of one paper."""

    def command(**options: object) -> None:
        _reproduce(name, **options)  # type: ignore[arg-type]

    paper = paper_named(name)
    own_parameters = [
        parameter
        for parameter in signature(_reproduce).parameters.values()
        if parameter.name != "paper"
    ]
    command.__signature__ = Signature(own_parameters)  # type: ignore[attr-defined]
    command.__name__ = name
    first = next((table for table in paper.order if paper.table(table)), "TABLE")
    command.__doc__ = (
        f"{paper.authors}: {paper.title}\n\n"
        "Each run has a folder within --out and is resumed there; several tables share their runs. "
        "Writes the table as JSON and Markdown beside them. Ends with code 2 if a run could score "
        "fewer than 95 %, with 3 at a cap.\n\n"
        f"Example: evenhand reproduce {name} {first} --size small --dry-run --out runs/papers"
    )
    return command


for _name in PAPERS:
    reproduce.command(_name)(_command(_name))
