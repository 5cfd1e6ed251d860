"""`evenhand reproduce PAPER [TABLE]`: a paper's tables with their numbers beside ours, and its page
in the documentation."""

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from evenhand.api.configured import ConfigModels, in_config
from evenhand.cli.codes import UNFINISHED
from evenhand.cli.execution import Terminal, end, show_dry_run
from evenhand.cli.options import Json, RunCommand, assigned, with_run_options
from evenhand.cli.screen import out, print_finding, print_json
from evenhand.experiments import config as configuration
from evenhand.experiments.reproducing import (
    PlannedJobs,
    Reproducing,
    forecasts,
    planned,
    played_back,
    run_all,
    tables_of,
    write_tables,
)
from evenhand.experiments.request import Caps
from evenhand.findings.papers import PAPERS, Paper, Size, Table, paper_named
from evenhand.findings.reproduction import Reproduction, catalogue, in_words, reproduction
from evenhand.methods.shared_settings import Wording
from evenhand.views import markdown, page_of, terminal, terminal_of
from evenhand.views.blocks import GAP, Block, Grid
from evenhand.views.files import plain

_MOST_ROWS = 8  # of a table on the page of all papers; a paper's own page has the longer ones


def paper_page(paper: Paper, tables: Path | None) -> str:
    """Give a paper's page as Markdown.

    Args:
        paper: The paper.
        tables: A folder with PAPER-TABLE.json of the tables that were run; None if there is none.
    """
    parts = [
        f"# {paper.called}: the paper's tables and ours",
        f"{paper.authors}: *{paper.title}*",
        f"Columns that begin with ours are ours; the others are copied from the paper. `evenhand "
        f"reproduce {paper.name} TABLE --dry-run` says what a table asks; without `--dry-run` the "
        "command runs it.",
    ]
    for name in paper.order:
        table = paper.table(name)
        parts += _figure(paper, name) if table is None else _table(paper, table, tables)
    parts += _weights(paper)
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip() for part in parts)) + "\n"


def papers_page(tables: Path) -> str:
    """Give the part of the documentation on all papers as Markdown: which tables and figures were
    run, which can be run and which cannot, and the short tables with numbers of ours.

    Args:
        tables: A folder with PAPER-TABLE.json of the tables that were run.
    """
    parts = [part for name in PAPERS for part in _overview(paper_named(name), tables)]
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip() for part in parts)) + "\n"


def _overview(paper: Paper, tables: Path) -> list[str]:
    """Give a paper's part of the page on all papers."""
    rows, reproductions, not_run, without_result = [], [], [], []
    impossible: dict[str, list[str]] = {}
    for entry in catalogue([paper.name]).entries:
        where = entry.where.partition(",")[0]
        reproduced = _recorded(tables, paper.name, entry.table)
        table = paper.table(entry.table)
        row = f"| {where} | {entry.title} | `{entry.table}` |"
        if not entry.result:
            without_result.append(where)
        elif reproduced is not None:
            status = "below" if _our_rows(reproduced) else f"`evenhand reproduce page {paper.name}`"
            rows.append(f"{row} run, {status} |")
            reproductions.append(reproduced)
        elif not entry.runnable:
            impossible.setdefault(entry.reason, []).append(where)
        elif table and table.elsewhere:
            rows.append(f"{row} run with other settings: [results](results.md) |")
        else:
            not_run.append(f"{where} (`{entry.table}`)")
    head = "| in the paper | what it shows | recipe | status |\n| --- | --- | --- | --- |\n"
    return [
        f"## {paper.called}",
        f"{paper.authors}: *{paper.title}*",
        head + "\n".join(rows) if rows else "",
        f"Can be run, not run here: {', '.join(not_run)}." if not_run else "",
        *(f"Cannot be run: {', '.join(where)}. {why}" for why, where in impossible.items()),
        f"No results to reproduce: {', '.join(without_result)}." if without_result else "",
        *_short_tables(reproductions),
    ]


def _short_tables(reproductions: Sequence[Reproduction]) -> list[str]:
    """Give the short tables of a paper, each with the differences that no table before it has."""
    parts: list[str] = []
    stated: set[str] = set()
    for reproduced in reproductions:
        if table := _our_rows(reproduced):
            label = "Further differences:" if stated else "Differences from the paper:"
            differences = [f"- {text}" for text in reproduced.differs if text not in stated]
            stated.update(reproduced.differs)
            parts += [table, label if differences else "", "\n".join(differences)]
    return parts


def _recorded(tables: Path, paper: str, table: str) -> Reproduction | None:
    file = tables / f"{paper}-{table}.json"
    return Reproduction.from_json(file.read_bytes()) if file.is_file() else None


def _our_rows(reproduced: Reproduction) -> str:
    """Give a table as Markdown, without the columns and rows that hold no number of ours; an empty
    text if it is long."""
    shown: list[Block] = []
    for column, grid in enumerate(
        block for block in page_of(reproduced) if isinstance(block, Grid)
    ):
        cells = [[row[column] for row in ours.cells] for ours in reproduced.ours]
        rows = tuple(
            row
            for row, values in zip(grid.rows, zip(*cells, strict=True), strict=True)
            if any(cell.value is not None for cell in values)
        )
        if len(rows) > _MOST_ROWS:
            return ""
        shown += [replace(grid, rows=rows), GAP] if rows else []
    heading = f"### {reproduced.where.partition(',')[0]}: {reproduced.title}"
    return f"{heading}\n\n{markdown.render(shown)}"


def _weights(paper: Paper) -> list[str]:
    """How the weights are made that some rows need."""
    if not paper.trained:
        return []
    parts = [
        "## Trained weights",
        "Rows of trained weights are run with `--trained NAME=MODEL`, once the weights are served "
        "([how](training.md)); `'*={model}-{name}'` names all of them.",
    ]
    for name, weights in paper.trained.items():
        like = f", made as `{weights.like}` is" if weights.like else ":"
        parts.append(f"`{name}`: {weights.says}{like}" + ("." if weights.like else ""))
        if weights.commands:
            parts.append("```text\n" + "\n".join(weights.commands) + "\n```")
    return parts


def _figure(paper: Paper, name: str) -> list[str]:
    figure = next(figure for figure in paper.figures if figure.table == name)
    what = "Cannot be run" if figure.result else "No result to reproduce"
    return [f"## {figure.where}: {figure.title}", f"{what}: {figure.reason}"]


def _table(paper: Paper, table: Table, tables: Path | None) -> list[str]:
    reproduced = _ran(paper, table, tables)
    body = markdown.render(page_of(reproduced)[1:])  # its first line is the heading here
    needs = f"`evenhand reproduce {paper.name} {table.name}` needs: {in_words(table.needs)}."
    if table.reason:
        needs = f"Cannot be run: {table.reason}"
    elsewhere = [table.elsewhere] if table.elsewhere else []
    return [f"## {table.where}: {table.title}", needs, *elsewhere, body]


def _ran(paper: Paper, table: Table, tables: Path | None) -> Reproduction:
    recorded = None if tables is None else _recorded(tables, paper.name, table.name)
    return recorded or reproduction(paper, table, "small", {}, {}, ())


reproduce = typer.Typer(
    help="Reproduce a table or figure of a paper, its numbers beside ours.\n\n"
    "Example: evenhand reproduce stardtox table3 --size small --dry-run --out runs/papers",
    no_args_is_help=True,
)


@reproduce.command("list")
def list_(json: Json = False) -> None:
    """List every table and figure of the papers: can it be run, and what does it need?

    Example: evenhand reproduce list
    """
    print_finding(catalogue(), json=json)


@reproduce.command("page")
def page(
    paper: Annotated[
        str | None,
        typer.Argument(metavar="[PAPER]", help=f"One of {', '.join(PAPERS)}. Without it: all."),
    ] = None,
    tables: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Tables that were run, as PAPER-TABLE.json."),
    ] = Path("docs/reproduced"),
) -> None:
    """Print every table of a paper as Markdown, with our numbers where they were run.

    Without a paper, print an overview of all papers: the status of each table, and the short
    tables that hold numbers of ours.

    Example: evenhand reproduce page stardtox --tables docs/reproduced
    """
    sys.stdout.write(
        papers_page(tables) if paper is None else paper_page(paper_named(paper), tables)
    )


def _reproduce(
    options: RunCommand,
    paper: str,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="Such as table3. Without it: all.")
    ] = None,
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
        only=None if only is None else tuple(name.strip() for name in only.split(",")),
        show=show,
        wording=wording,
        sample=assigned("--sample", sample or ()),
    )
    plan = planned(arguments)
    if settings.dry_run:
        _dry_run(plan, json=options.json)
    caps = Caps(max_calls=settings.max_calls, max_cost=settings.max_cost, prices=settings.prices)
    ended, pilots = asyncio.run(run_all(plan.jobs, Terminal(config), caps))
    if settings.pilot and pilots:
        free = played_back(arguments)
        expected = asyncio.run(forecasts(plan.jobs, pilots, settings.prices, played_back=free))
        print_finding(expected, json=options.json)
    if settings.pilot or ended.early:
        end(ended, below_floor=False)
        return
    reproductions = write_tables(arguments, plan)
    _show_tables(reproductions, f"{settings.out}/{arguments.place}", json=options.json)
    end(ended, below_floor=any(reproduction.below_floor for reproduction in reproductions))


def _show_tables(reproductions: Sequence[Reproduction], folder: str, *, json: bool) -> None:
    if json:
        print_json({"tables": [plain(reproduction.to_dict()) for reproduction in reproductions]})
        return
    for table in reproductions:  # one of many models is wider than a terminal: no cell is cut off
        wide = max(out.width, terminal.width(page_of(table)))
        out.print(terminal_of(table), "", width=wide, crop=False)
    names = ", ".join(f"{table.table}.json, {table.table}.md" for table in reproductions)
    out.print(f"{folder}: {names}", style="dim")


def _dry_run(plan: PlannedJobs, *, json: bool) -> NoReturn:
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


def _command(name: str) -> Callable[..., None]:
    """The command of one paper."""

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
        "Each run has a folder within --out and is resumed there; several tables share their runs. "
        "Writes the table as JSON and Markdown beside them. Ends with code 2 if a run could score "
        "fewer than 95 %, with 3 at a cap.\n\n"
        f"Example: evenhand reproduce {name} {first} --size small --dry-run --out runs/papers"
    )
    return with_run_options(command, without=_ELSEWHERE, out="runs/papers")


# The recipe says by which method and system prompt, and its runs stay on this machine.
_ELSEWHERE = ("method", "set_", "dedupe", "engine", "actors", "require_certified_judges", "system")

for _name in PAPERS:
    reproduce.command(_name)(_command(_name))
