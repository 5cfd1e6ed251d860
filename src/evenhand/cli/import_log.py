"""`evenhand import`: what a model answered elsewhere, scored here without a call."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from evenhand import foreign, registry
from evenhand.cli.execution import Out
from evenhand.cli.measure import run
from evenhand.cli.measuring import RunOptions
from evenhand.cli.options import Full, Json
from evenhand.errors import UserError
from evenhand.instruments import instrument_named
from evenhand.instruments._contract import Instrument


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
    if not log.is_file():
        raise UserError(f"{log} is not a file")
    chosen = instrument_named(instrument) if instrument else _by_task(log)
    if not chosen.elsewhere:
        raise UserError(f"{chosen.name} reads no logs of other tools; bbq does")
    defaults = {field.name: field.default for field in fields(chosen.options)}
    run(chosen, RunOptions(out_=out_, json=json), {**defaults, "answers": log}, full=full)


def _by_task(log: Path) -> Instrument:
    """Find the instrument that has the task of a log among its names elsewhere."""
    foreign_log = foreign.read(log)
    if foreign_log is None:
        raise UserError(
            f"{log} is no log of Inspect (.eval) or lm-evaluation-harness (samples_*.jsonl). Of "
            "answers of your own say what scores them: evenhand measure bbq --answers FILE --out "
            "runs/theirs"
        )
    task = foreign_log.origin.task.rpartition("/")[2]
    instruments = list(_loaded())
    for instrument in instruments:
        if any(task == name or task.startswith(f"{name}_") for name in instrument.elsewhere):
            return instrument
    those = ", ".join(name for instrument in instruments for name in instrument.elsewhere)
    raise UserError(
        f"{log} is of the task {task[:60]!r}; what can be scored: {those}. If it is one of these "
        "under another name, say so with --instrument"
    )


def _loaded() -> Iterator[Instrument]:
    """All instruments but those of other packages that cannot be loaded."""
    for name in registry.names("instruments"):
        with suppress(UserError):
            yield instrument_named(name)
