"""`evenhand import`: what a model answered elsewhere, scored here without a call."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.execution import Out
from evenhand.cli.measure import run
from evenhand.cli.options import Full, Json
from evenhand.cli.run_options import RunCommand
from evenhand.experiments.exchange import instrument_for
from evenhand.experiments.settings import RunSettings


def import_log(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A log of another tool.")],
    out_: Out,
    instrument: Annotated[
        str | None, typer.Option(help="What scores it. Default: as the log's task is called.")
    ] = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Score the log of another tool, without a call.

    It reads logs of Inspect (.eval) and samples of lm-evaluation-harness (samples_*.jsonl of
    --log_samples) into a run folder that says where the answers are from; `compare`, `report` and
    `view` work on it at once. A question without an answer counts as missing.

    Example: evenhand import logs/bbq.eval --out runs/theirs
    """
    chosen = instrument_for(log, instrument)
    defaults = {field.name: field.default for field in fields(chosen.options)}
    run(
        chosen,
        RunCommand(settings=RunSettings(out=out_), json=json),
        {**defaults, "answers": log},
        full=full,
    )
