"""`evenhand audit decisions FILE`: short for `evenhand measure decisions --table FILE`."""

from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from evenhand.cli.measure import parameter_of, run
from evenhand.cli.options import Full
from evenhand.cli.run_options import RunCommand, with_run_options
from evenhand.instruments import instrument_named

audit = typer.Typer(
    help="Audit decisions that were made already, by group and against chance.\n\n"
    "Example: evenhand audit decisions people.csv --groups sex,race --outcome selected --out "
    "runs/audit",
    no_args_is_help=True,
)
_KEPT = ("out", "json")  # nobody is asked: of the options of a run these two have a meaning
_Table = Annotated[Path, typer.Argument(help="The people, one a row: a .csv or .jsonl file.")]


def decisions() -> Callable[..., None]:
    """The command: the instrument's own options, with the table as an argument."""
    instrument = instrument_named("decisions")

    def command(options: RunCommand, **values: Any) -> None:
        full = values.pop("full")
        run(instrument, options, values, full=full)

    hints = get_type_hints(instrument.options)
    parameters = [parameter_of(field, hints[field.name])
           for field in fields(instrument.options) if field.name != "table"]  # fmt: skip
    first = Parameter("options", Parameter.POSITIONAL_OR_KEYWORD)
    table = Parameter("table", Parameter.KEYWORD_ONLY, annotation=_Table)
    full = Parameter("full", Parameter.KEYWORD_ONLY, default=False, annotation=Full)
    command.__signature__ = Signature([first, table, *parameters, full])  # type: ignore[attr-defined]
    command.__name__ = "decisions"
    command.__doc__ = (
        "Audit who was selected or scored above the median, by group, beside what chance alone "
        "would print. Nobody is asked.\n\n"
        "Writes report.json and report.parquet into the run folder. Ends with code 2 if fewer than "
        "95 % of the outcomes could be read.\n\n"
        "Example: evenhand audit decisions people.csv --groups sex,race --outcome selected --out "
        "runs/audit"
    )
    return with_run_options(command, only=_KEPT)


audit.command("decisions", no_args_is_help=True)(decisions())
