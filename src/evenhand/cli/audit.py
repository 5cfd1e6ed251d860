"""`evenhand audit NAME`: audit what evenhand relies on, or decisions that were made already."""

import asyncio
from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, Signature, getdoc
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from evenhand import registry
from evenhand.cli.execution import end, show_dry_run
from evenhand.cli.harms import check as check_harm
from evenhand.cli.measure import parameter_of, refusal, run
from evenhand.cli.options import Full
from evenhand.cli.run_options import RunCommand, prepared, with_run_options
from evenhand.cli.screen import out, print_json
from evenhand.cli.watching import Terminal
from evenhand.errors import UserError
from evenhand.experiments.auditing import concluded
from evenhand.experiments.measuring import measure as measured
from evenhand.instruments import Instrument, instrument_named
from evenhand.views import terminal_of
from evenhand.views.files import plain

audit = typer.Typer(
    help="Audit a scorer, a reward model, a harm policy, or decisions that were made already.\n\n"
    "Example: evenhand audit decisions people.csv --groups sex,race --outcome selected --out "
    "runs/audit",
    no_args_is_help=True,
)
_OWN_COMMANDS = ("harm",)  # which takes a policy of the config, and asks only its judge
_FAILED = 2  # as other commands end that did their work and found too little
_ASKING_NOBODY = ("out", "json", "steal_lock", "config")
_KEPT = ("out", "json")  # nobody is asked: of the options of a run these two have a meaning
_Table = Annotated[Path, typer.Argument(help="The people, one a row: a .csv or .jsonl file.")]


def audit_command(instrument: Instrument) -> Callable[..., None]:
    """The command of one audit: its own options first, then those of a run."""

    def command(options: RunCommand, **values: Any) -> None:
        _audit(instrument, options, values, full=values.pop("full"))

    hints = get_type_hints(instrument.options)
    parameters = [parameter_of(field, hints[field.name]) for field in fields(instrument.options)]
    first = Parameter("options", Parameter.POSITIONAL_OR_KEYWORD)
    full = Parameter("full", Parameter.KEYWORD_ONLY, default=False, annotation=Full)
    command.__signature__ = Signature([first, *parameters, full])  # type: ignore[attr-defined]
    command.__name__ = instrument.name
    command.__doc__ = (
        f"{getdoc(instrument) or instrument.title}\n\n"
        "Writes report.json into the run folder. Run it again to resume. Ends with code 2 unless "
        "the audit passed, with 3 at a cap.\n\n"
        f"Example: evenhand audit {instrument.name} --out runs/audit-{instrument.name}"
    )
    nobody = instrument.asks == "nobody"
    return with_run_options(command, only=_ASKING_NOBODY if nobody else None)


def _audit(
    instrument: Instrument, options: RunCommand, values: dict[str, Any], *, full: bool
) -> None:
    measurement, request = prepared(instrument, options, values)
    if request.settings.dry_run:
        show_dry_run({request.settings.out: request}, json=options.json)
    result = asyncio.run(measured(measurement, request, Terminal(options.load())))
    if result.report is None:
        end(result.ended, below_floor=True)
        return
    finding = concluded(instrument, measurement.options, result.report)
    if options.json:
        print_json(plain(finding.to_dict()))
    else:
        out.print(terminal_of(finding, full=full))
    end(result.ended, below_floor=False)
    if finding.state != "pass":
        raise typer.Exit(_FAILED)


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


def add(name: str) -> None:
    """Make an audit a command."""
    try:
        built = audit_command(instrument_named(name))
    except UserError as problem:
        any_ = {"allow_extra_args": True, "ignore_unknown_options": True}
        audit.command(name, context_settings=any_)(refusal(problem))
        return
    audit.command(name, no_args_is_help=True)(built)


audit.command("decisions", no_args_is_help=True)(decisions())
audit.command("harm", no_args_is_help=True)(check_harm)
for name in registry.names("audits"):
    if name not in _OWN_COMMANDS:
        add(name)
