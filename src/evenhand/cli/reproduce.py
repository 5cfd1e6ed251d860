"""`evenhand dev reproduce PAPER [TABLE]`: compare the tables of a paper with our numbers, and
print its page of the documentation."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from evenhand.api.configured import ConfigModels, in_config
from evenhand.api.reproduction import reproduce_list
from evenhand.cli.codes import UNFINISHED
from evenhand.cli.execution import Terminal, end, show_dry_run
from evenhand.cli.options import Json, RunCommand, assigned, names_in, with_run_options
from evenhand.cli.screen import out, print_finding, print_json
from evenhand.experiments import config as configuration
from evenhand.experiments.reproducing import (
    PlannedJobs,
    Reproducing,
    planned,
    run_jobs,
    tables_of,
)
from evenhand.findings.papers import PAPERS, Size, paper_named
from evenhand.findings.reproduction import Reproduction
from evenhand.methods.shared_settings import Wording
from evenhand.views import page_of, terminal, terminal_of
from evenhand.views.files import plain
from evenhand.views.paper_pages import paper_page, papers_page

reproduce = typer.Typer(
    help="Reproduce tables of the StarDTox, MABRF, RLDF and MALIBU papers.\n\n"
    "Example: evenhand dev reproduce stardtox table3 --size small --dry-run --out runs/papers",
    no_args_is_help=True,
)


@reproduce.command("list")
def list_(json: Json = False) -> None:
    """List every table and figure of the papers: can it be run, and what does it need?

    Example: evenhand dev reproduce list
    """
    print_finding(asyncio.run(reproduce_list()), json=json)


@reproduce.command("page")
def page(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAPER]",
            help=f"Print the page of this paper: {', '.join(PAPERS)}. Default: all papers.",
        ),
    ] = None,
    tables: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Read our tables, PAPER-TABLE.json, from this folder."),
    ] = Path("docs/reproduced"),
) -> None:
    """Print every table of a paper as Markdown, with our numbers where they were run.

    Without a paper, print an overview of all papers: the status of each table, and the short tables
    with numbers of ours.

    Example: evenhand dev reproduce page stardtox --tables docs/reproduced
    """
    sys.stdout.write(
        papers_page(tables) if paper is None else paper_page(paper_named(paper), tables)
    )


def _reproduce(
    options: RunCommand,
    paper: str,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]", help="Reproduce this table, such as table3. Default: all tables."
        ),
    ] = None,
    size: Annotated[
        Size,
        typer.Option(
            help="Choose the sample size. small: some minutes with a small model. paper: as "
            "published."
        ),
    ] = "small",
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="Run this model of the endpoint or of the config. Repeat it for several models in "
            "a table.",
        ),
    ] = None,
    trained: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODEL",
            help="Set the served name of trained weights, such as 'sft={model}-sft', or "
            "'*={model}-{name}' for all; {repeat} is the number of the repeat.",
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            help="Execute only these runs, separated by commas. Tables also show other existing "
            "runs."
        ),
    ] = None,
    sample: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Replace a benchmark option of the recipe, such as per_category=20 or "
            "prompts_file=FILE. Choose another --out.",
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            min=1, help="Repeat each run with the next seed and print mean ± standard deviation."
        ),
    ] = 1,
    wording: Annotated[
        Wording,
        typer.Option(
            help="Choose the prompts. paper: mabrf and stardtox with the intent of the papers' "
            "prompts."
        ),
    ] = "ours",
    show: Annotated[
        bool,
        typer.Option(
            "--show", help="Print the tables from the existing runs, without model calls."
        ),
    ] = False,
) -> None:
    recipe = paper_named(paper)
    config, settings = options.load(), options.settings
    settings = replace(
        in_config(config, settings),
        out=settings.out.rstrip("/"),
        replay=None if settings.replay is None else settings.replay.rstrip("/"),
    )
    arguments = Reproducing(
        paper=recipe,
        tables=tables_of(recipe, table),
        models=ConfigModels(config, asks=not settings.dry_run),
        settings=settings,
        data=configuration.data_folder(),
        size=size,
        named=tuple(model or ()),
        trained=assigned("--trained", trained or ()),
        only=None if only is None else names_in(only),
        show=show,
        wording=wording,
        sample=assigned("--sample", sample or ()),
        repeats=repeats,
    )
    plan = planned(arguments)
    if settings.dry_run:
        _dry_run(plan, json=options.json)
    result = asyncio.run(run_jobs(arguments, plan, Terminal(config)))
    if result.forecast is not None:
        print_finding(result.forecast, json=options.json)
    if not result.tables:
        end(result.ended, below_floor=False)
        return
    _show_tables(result.tables, f"{settings.out}/{arguments.place}", json=options.json)
    end(result.ended, below_floor=any(table.below_floor for table in result.tables))


def _show_tables(reproductions: Sequence[Reproduction], folder: str, *, json: bool) -> None:
    if json:
        print_json({"tables": [plain(reproduction.to_dict()) for reproduction in reproductions]})
        return
    for table in reproductions:  # a table of many models exceeds the terminal: show whole cells
        wide = max(out.width, terminal.width(page_of(table)))
        out.print(terminal_of(table), "", width=wide, crop=False)
    names = ", ".join(
        f"{table.table}.json, {table.table}.md, {table.table}.html" for table in reproductions
    )
    out.print(f"{folder}: {names}", style="dim")


def _dry_run(plan: PlannedJobs, *, json: bool) -> NoReturn:
    """Print what the runs will ask, and why some rows cannot run; code 2 if none can."""
    ready = [job for job in plan.jobs if not job.waits]
    show_dry_run(
        {f"{job.model}: {job.run}": job.prepare()[0] for job in ready},
        json=json,
        code=0 if plan.jobs else UNFINISHED,
        played_back=[f"{job.model}: {job.run}" for job in plan.jobs if job.reuses],
        waiting=[f"{j.model}: {j.run}" for j in plan.jobs if j.waits and not j.reuses],
        cannot_run={f"{model}: {run}": why for (model, run), why in plan.missing.items()},
    )


def _command(name: str) -> Callable[..., None]:
    """Make the command of a paper."""

    def command(options: RunCommand, **values: Any) -> None:
        _reproduce(options, name, **values)

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
        "Each run has a folder within --out and resumes there; several tables share their runs. "
        "Writes the table as JSON, Markdown and HTML next to them, the HTML of a figure with its "
        "pictures. Exits with code 2 if a run scored "
        "fewer than 95% of its items, with 3 at a cap.\n\n"
        f"Example: evenhand dev reproduce {name} {first} --size small --dry-run --out runs/papers"
    )
    return with_run_options(command, without=_ELSEWHERE, out="runs/papers")


# The recipe sets the method and the system prompt, and its runs stay on this machine.
_ELSEWHERE = (
    "method", "set_", "dedupe", "engine", "actors", "require_certified_judges", "reuse", "system"
)  # fmt: skip

for _name in PAPERS:
    reproduce.command(_name)(_command(_name))
