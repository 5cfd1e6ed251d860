"""`evenhand runs …`: inspect run folders."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from evenhand.api.run_data import runs_repeats, runs_verify
from evenhand.cli.options import ConfigFile, Full, Json, PriceFile, names_in
from evenhand.cli.screen import out, print_finding, print_json, status_view
from evenhand.core import messages_in
from evenhand.core.prices import Prices
from evenhand.core.results import tools_in
from evenhand.experiments import config as configuration
from evenhand.experiments import run_folders
from evenhand.experiments.run_folders import ItemRecord, RunLine, RunStatus
from evenhand.views import numbers, terminal
from evenhand.views.blocks import GAP
from evenhand.views.timeline_page import conversation, transcript

runs = typer.Typer(
    help="List, inspect, verify, view, pack and export runs.",
    no_args_is_help=True,
)

RunFolder = Annotated[
    str, typer.Argument(metavar="RUN", help="Read this run folder: a path or a URL.")
]


@runs.command("list")
def list_(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER", help="List the runs below this folder. Default: runs, if it exists."
        ),
    ] = None,
    prices: PriceFile = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """List the runs below a folder: what each is, how far it is, what it cost.

    Example: evenhand runs list runs
    """
    lines = run_folders.list_runs(folder, _prices(config, prices))
    if json:
        print_json([asdict(line) for line in lines])
    elif lines:
        out.print(_table(lines))
    else:
        root = folder or run_folders.usual_folder()
        out.print(Text(f"no runs in {root}; start a run with: evenhand measure bbq --out runs/now"))


def _table(lines: list[RunLine]) -> Table:
    table = Table("run", "kind", "method", "model", "items", "cost", "created", box=None)
    table.columns[0].overflow = "fold"
    for line in lines:
        cells = [cell or "-" for cell in (line.run, line.kind, line.method, line.model)]
        created = (line.created or "-")[:16].replace("T", " ")
        cost = "-" if line.cost is None else numbers.money(line.cost, line.currency or "")
        table.add_row(*map(Text, (*cells, _items(line), cost, created)))
        if line.problem:
            table.add_row(Text(f"  {line.problem}", style="red"))
    return table


def _items(line: RunLine) -> str:
    if line.done is None:
        return "-"
    failed = f", {line.failed:,} failed" if line.failed else ""
    planned = "" if line.planned is None else f" of {line.planned:,}"
    return f"{line.done:,}{planned}{failed}"


def _prices(config: Path | None, prices: Path | None) -> Prices | None:
    return configuration.load(config, None, None, prices=prices).price_table


@runs.command()
def show(
    run: RunFolder,
    item: Annotated[
        str | None, typer.Option(help="Show the conversation of the item with this id.")
    ] = None,
    position: Annotated[
        int | None,
        typer.Option(
            min=0, help="With --item: select an item by position if its id occurs more than once."
        ),
    ] = None,
    prices: PriceFile = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show what a run did: failures first, then what changed, then what it cost.

    Example: evenhand runs show runs/first --item 3
    """
    if item is None:
        print_finding(run_folders.summary_at(run, _prices(config, prices)), json=json)
        return
    records = run_folders.items_called(run, item, position)
    for record in records:
        if json:
            print_json({**record.result, "turns": record.turns})
        else:
            _show_item(record, with_id=len(records) > 1)


def _show_item(record: ItemRecord, *, with_id: bool) -> None:
    row = record.result
    if with_id:
        out.rule(Text(row["item_id"]))
    ending = row["stopped"] or f"{row['reason']}: {row['message']}"
    messages, tools = messages_in(row["conversation"]), tools_in(row["conversation"])
    if turns_before := transcript(messages, tools):
        out.print(terminal.render([*turns_before, GAP]))
    elif row["prompt"]:
        out.print(Text(f"prompt: {row['prompt']}"))
    out.print(terminal.render(conversation(record.conversation, record.drafts, ending)))
    if row["text"] is None and row["answer_before"]:
        out.print(Text(f"before: {row['answer_before']}"))
    out.rule(style="dim")
    out.print(Text(row["text"] or "(no answer)"))


@runs.command()
def repeats(
    settings: Annotated[
        list[str],
        typer.Argument(metavar="RUN,RUN…", help="Read the runs of a setting, separated by commas."),
    ],
    full: Full = False,
    json: Json = False,
) -> None:
    """Show mean ± standard deviation over the runs of a setting, of one or more settings.

    Example: evenhand runs repeats runs/a1,runs/a2,runs/a3 runs/b1,runs/b2,runs/b3
    """
    result = asyncio.run(runs_repeats(*map(names_in, settings)))
    print_finding(result, json=json, full=full)


@runs.command()
def status(run: RunFolder, json: Json = False) -> None:
    """Show how far a run is that goes on elsewhere, and whether its process still lives.

    Example: evenhand runs status runs/first
    """
    status = run_folders.run_status(run)
    try:
        view = status_view(status.counters)  # reads every displayed field
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise run_folders.unreadable_status(run) from None
    if json:
        print_json(status.to_dict())
        return
    _show_age(status)
    out.print(view)


def _show_age(status: RunStatus) -> None:
    counters, age = status.counters, status.seconds_since_update
    if status.stale:
        since = f"not updated for {numbers.duration(age)}" if age > 0 else "dated in the future"
        gone = f"{since}, the process may have ended; run the same command again to resume"
        out.print(Text(gone, style="bold red"))
    written = f"{counters['state']} · {counters['writer']} · {counters['updated']}"
    out.print(Text(written, style="dim"))


@runs.command()
def verify(run: RunFolder, json: Json = False) -> None:
    """Check every committed byte against its checksum.

    Example: evenhand runs verify runs/first
    """
    parts = asyncio.run(runs_verify(run))
    if json:
        print_json({"run": run, "parts": parts, "intact": True})
    else:
        out.print(f"{run}: {parts} parts, all intact")
