"""`evenhand runs …`: look at run folders."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import polars as pl
import typer
from rich.text import Text

from evenhand import config as configuration
from evenhand.cli import runs_list
from evenhand.cli.codes import UNFINISHED
from evenhand.cli.compare import runs_named
from evenhand.cli.options import ConfigFile, Full, Json, PriceFile
from evenhand.cli.screen import err, out, print_json, status_line, status_view
from evenhand.domain import Draft
from evenhand.domain.prices import Prices
from evenhand.errors import UserError
from evenhand.findings.repeats import repeats as repeated
from evenhand.findings.report import report as reported
from evenhand.findings.summary import summary
from evenhand.instruments import instrument_of, same_instrument
from evenhand.runners.progress import STATUS_FILE
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.store.tables import turn_of
from evenhand.views import terminal, terminal_of
from evenhand.views.files import plain
from evenhand.views.numbers import duration
from evenhand.views.timeline_page import conversation

runs = typer.Typer(
    help="Look at run folders: list, show, report, repeats, status, export, verify.",
    no_args_is_help=True,
)

RunFolder = Annotated[str, typer.Argument(metavar="RUN", help="A run folder: a path or a URL.")]
_STALE_SECONDS = 60.0  # our choice: it is rewritten every 2 s, so 30 rewrites were missed


@runs.command("list")
def list_(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="Where to look. Default: runs, if there is one."),
    ] = None,
    prices: PriceFile = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """List the runs below a folder: what each is, how far it is, what it cost.

    Example: evenhand runs list runs
    """
    root = folder or (Path("runs") if Path("runs").is_dir() else Path())
    lines = runs_list.listed(root, _prices(config, prices))
    if json:
        print_json(lines)
    elif lines:
        out.print(runs_list.render(lines))
    else:
        out.print(Text(f"no runs in {root}; one begins with: evenhand measure bbq --out runs/now"))


def _prices(config: Path | None, prices: Path | None) -> Prices | None:
    settings = configuration.load(config, None, None, prices=prices)
    return settings.prices.prices() if settings.prices else None


@runs.command()
def show(
    run: RunFolder,
    item: Annotated[
        str | None, typer.Option(help="Show the conversation of the item with this id.")
    ] = None,
    position: Annotated[
        int | None, typer.Option(min=0, help="With --item: which one, where an id is repeated.")
    ] = None,
    prices: PriceFile = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show what a run did: failures first, then what changed, then what it cost.

    Example: evenhand runs show runs/first --item 3
    """
    reader = RunReader(run)
    if item is None:
        run_summary = summary(reader, _prices(config, prices))
        if json:
            print_json(run_summary.to_dict())
        else:
            out.print(terminal_of(run_summary))
        return
    rows = _items(reader, item, position)
    if not rows:
        raise UserError(
            f"{run} has no finished item {item!r}{_like_others(reader)}; all of them: "
            f"evenhand runs export {run} --to items.jsonl"
        )
    if len({row["item_id"] for row in rows}) < len(rows):
        places = [str(row["position"]) for row in rows]
        raise UserError(
            f"{run} has {len(rows):,} items {item!r}, at the positions {', '.join(places[:5])}: "
            f"add --position {places[0]} to see that one"
        )
    for row in rows:
        this = (pl.col("item_id") == row["item_id"]) & (pl.col("position") == row["position"])
        turns = reader.turns().filter(this).collect().to_dicts()
        if json:
            print_json({**row, "turns": turns})
        else:
            _show_item(row, turns, with_id=len(rows) > 1)


def _items(run: RunReader, item: str, position: int | None) -> list[dict[str, Any]]:
    """The rows of an item. Of a gateway's traffic an id may be that of an exchange, as its header
    `evenhand-id` has it: then those of its texts."""
    matched = run.results().filter(pl.col("item_id") == item)
    if position is not None:
        matched = matched.filter(pl.col("position") == position)
    rows = matched.collect().to_dicts()
    if not rows and run.record.source.get("kind") == "gateway":
        texts = pl.col("item_id").str.starts_with(f"{item}-")
        rows = run.results().filter(texts).collect().to_dicts()
    return rows


def _show_item(row: dict[str, Any], turns: list[dict[str, Any]], *, with_id: bool) -> None:
    if with_id:
        out.rule(Text(row["item_id"]))
    drafts = [
        Draft(text=d["text"], scores={s["name"]: s["value"] for s in d["scores"]})
        for d in row["drafts"]
    ]
    ending = row["stopped"] or f"{row['reason']}: {row['message']}"
    if row["prompt"]:
        out.print(Text(f"prompt: {row['prompt']}"))
    out.print(terminal.render(conversation([turn_of(turn) for turn in turns], drafts, ending)))
    if row["text"] is None and row["answer_before"]:
        out.print(Text(f"before: {row['answer_before']}"))
    out.rule(style="dim")
    out.print(Text(row["text"] or "(no answer)"))


def _like_others(run: RunReader) -> str:
    ids = run.results().select("item_id").head(1).collect()["item_id"]
    late = ", and what a gateway answered in the last minute is not there yet"
    open_ = late if run.open and run.record.source.get("kind") == "gateway" else ""
    return (f"; its ids look like {ids[0]}" if len(ids) else "") + open_


@runs.command()
def report(
    run: RunFolder,
    prices: PriceFile = None,
    config: ConfigFile = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Show the report of a measured run again, without a call. Ends with code 2 if the run is not
    finished.

    Example: evenhand runs report runs/bbq-default --full
    """
    reader = RunReader(run)
    if reader.record.source.get("kind") == "gateway":
        raise UserError(
            f"{run} is the traffic of a gateway, which no benchmark measured. What was done: "
            f"evenhand runs show {run}. A page to hand over: "
            f"evenhand report {run} --out report.html"
        )
    run_report = reported(instrument_of(reader), reader, _prices(config, prices))
    if json:
        print_json(plain(run_report.to_dict()))
    else:
        out.print(terminal_of(run_report, full=full))
    if run_report.not_run:
        raise typer.Exit(UNFINISHED)


@runs.command()
def repeats(
    settings: Annotated[
        list[str],
        typer.Argument(metavar="RUN,RUN…", help="The runs of a setting, with commas between."),
    ],
    full: Full = False,
    json: Json = False,
) -> None:
    """Show mean ± standard deviation over the runs of a setting, of one or more settings.

    Example: evenhand runs repeats runs/a1,runs/a2,runs/a3 runs/b1,runs/b2,runs/b3
    """
    every = [runs_named(setting) for setting in settings]
    for run in (run for group in every for run in group):
        same_instrument(every[0][0], run)
    result = repeated(instrument_of(every[0][0]), every)
    if json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result, full=full))


@runs.command()
def status(run: RunFolder, json: Json = False) -> None:
    """Show how far a run is that goes on elsewhere, and whether its process still lives.

    Example: evenhand runs status runs/first
    """
    run_status = _status(run)
    if json:
        print_json(run_status)
        return
    if run_status["stale"]:
        age = run_status["seconds_since_update"]
        since = f"not updated for {duration(age)}" if age > 0 else "dated in the future"
        gone = f"{since}, the process may be gone; the command that began it resumes"
        out.print(Text(gone, style="bold red"))
    out.print(
        Text(
            f"{run_status['state']} · {run_status['writer']} · {run_status['updated']}", style="dim"
        )
    )
    out.print(status_view(run_status))


def _status(run: str) -> dict[str, Any]:
    try:
        run_status: dict[str, Any] = orjson.loads(open_folder(run).read(STATUS_FILE))
        age = (datetime.now(UTC) - datetime.fromisoformat(run_status["updated"])).total_seconds()
        # A clock that is far ahead says as little about the process as one that stands still.
        stale = run_status["state"] == "running" and abs(age) > _STALE_SECONDS
        run_status |= {"seconds_since_update": age, "stale": stale}
        status_line(run_status)  # reads every field that is shown
    except FileNotFoundError:
        raise UserError(
            f"{run} has no {STATUS_FILE}: nothing ran there yet, or an older evenhand did; "
            f"`evenhand runs show {run}` shows what is committed"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise UserError(
            f"{run}/{STATUS_FILE} cannot be read. Nothing rests on it: "
            f"`evenhand runs show {run}` shows what is committed"
        ) from None
    return run_status


@runs.command()
def export(
    run: RunFolder,
    to: Annotated[Path, typer.Option(help="The file to write: .jsonl or .parquet.")],
) -> None:
    """Write the results as one file, in the order of the input.

    Example: evenhand runs export runs/first --to answers.jsonl
    """
    results = RunReader(run).results()
    if to.suffix == ".parquet":
        results.sink_parquet(to)
    elif to.suffix == ".jsonl":
        results.sink_ndjson(to)
    else:
        raise UserError(f"{to}: the name must end in .jsonl or .parquet")
    err.print(f"wrote {to}")


@runs.command()
def verify(run: RunFolder, json: Json = False) -> None:
    """Check every committed byte against its checksum.

    Example: evenhand runs verify runs/first
    """
    parts = RunReader(run).verify()
    if json:
        print_json({"run": run, "parts": parts, "intact": True})
    else:
        out.print(f"{run}: {parts} parts, all intact")
