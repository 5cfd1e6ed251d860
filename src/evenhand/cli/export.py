"""`evenhand export`: a run in the form of another tool."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evenhand.cli.codes import UNFINISHED
from evenhand.cli.options import Json
from evenhand.cli.screen import err, print_json
from evenhand.experiments import config as configuration
from evenhand.experiments.exchange import export as exported
from evenhand.views.export import FORMS


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder: a path or a URL.")],
    to: Annotated[str, typer.Option(help=f"The format: {', '.join(FORMS)}.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The file of inspect and csv, the folder of the others."),
    ],
    json: Json = False,
) -> None:
    """Write a run as a log or a table that other tools open.

    inspect: a log of Inspect (.eval). eee: a record of Every Eval Ever. hf: results for a model
    page of the Hugging Face Hub. lm-eval: samples of lm-evaluation-harness, of bbq. csv: one row
    per item for spreadsheets. An item without an answer is never an incorrect one. Nothing is
    overwritten. Ends with code 2 if the run is not finished.

    Example: evenhand export runs/now --to inspect --out now.eval
    """
    with err.status(Text(f"reading {run}")):
        written = exported(run, to, out, configuration.data_folder())
    for path, size in written.files.items():
        err.print(Text(f"wrote {path}: {written.is_}, {written.items:,} items, {size:,} bytes"))
    if written.not_run:
        err.print(Text(f"NOT FINISHED: {written.not_run:,} items of this run are not run yet"))
    if json:
        print_json(asdict(written))
    if written.not_run:
        raise typer.Exit(UNFINISHED)
