"""`evenhand judge-compare`: several judges who gave the same judgements, in one table."""

from typing import Annotated

import typer

from evenhand.cli.options import Full, Json
from evenhand.cli.screen import out, print_json
from evenhand.instruments.judge.several import side_by_side
from evenhand.store import RunReader
from evenhand.views import files, terminal_of


def judge_compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="Folders of judge-check, the judge to compare with first."
        ),
    ],
    full: Full = False,
    json: Json = False,
) -> None:
    """Put the audits of several judges side by side.

    What labels do to each judge, and what they do to the others that they do not to the first: with
    intervals, and with what is missing at its worst. The judges must have been asked the same.

    Example: evenhand judge-compare runs/judge-a runs/judge-b
    """
    comparison = side_by_side([RunReader(run) for run in runs])
    if json:
        print_json(files.plain(comparison.to_dict()))
    else:
        out.print(terminal_of(comparison, full=full))
