"""`evenhand audit NAME`: audit judges, scorers, reward models, harm policies or past decisions."""

from collections.abc import Callable
from inspect import getdoc
from pathlib import Path
from typing import Any

import typer

from evenhand.cli.harms import check as check_harm
from evenhand.cli.measure import STOPPING, add, run, signature_of
from evenhand.cli.options import RunCommand, with_run_options
from evenhand.core import registry
from evenhand.experiments.measuring import concluded
from evenhand.instruments import Instrument, instrument_named

audit = typer.Typer(
    help="Audit a judge, a scorer, a reward model, a harm policy or past decisions.\n\n"
    "Example: evenhand audit decisions people.csv --groups sex,race --outcome selected --out "
    "runs/audit",
    no_args_is_help=True,
)
_OWN_COMMANDS = ("harm",)  # which takes a policy of the config, and asks only its judge
_CODE_2 = {
    True: "unless the audit passed",
    False: "if fewer than 95% of the answers are parseable (a failed audit is a result)",
}
# An audited model has no certificate yet, and the audit sets its prompts.
_NOT_AUDITED = ("wording", "require_certified_judges", "system")
_ASKING_NOBODY = ("out", "json", "steal_lock", "config")
_KEPT = ("out", "json")  # without model calls only these options of a run have an effect
_TABLE = (Path, typer.Argument(help="Read one person per row from this .csv or .jsonl file."))


def audit_command(instrument: Instrument) -> Callable[..., None]:
    """Make the command of an audit: its own options first, then those of a run."""

    def command(options: RunCommand, **values: Any) -> None:
        run(instrument, options, values, concluded)

    command.__signature__ = signature_of(instrument, **STOPPING)  # type: ignore[attr-defined]
    command.__name__ = instrument.name
    command.__doc__ = (
        f"{getdoc(instrument) or instrument.title}\n\n"
        "Writes report.json into the run folder, and a certificate. Run the command again to "
        "resume. Exits "
        f"with code 2 {_CODE_2[instrument.must_pass]}, with 3 at a cap.\n\n"
        f"Example: evenhand audit {instrument.name} --out runs/audit-{instrument.name}"
    )
    if instrument.asks == "nobody":
        return with_run_options(command, only=_ASKING_NOBODY)
    return with_run_options(command, without=_NOT_AUDITED, method=instrument.asked_by)


def decisions() -> Callable[..., None]:
    """Make the command: the benchmark's own options, with the table as an argument."""
    instrument = instrument_named("decisions")

    def command(options: RunCommand, **values: Any) -> None:
        run(instrument, options, values)

    command.__signature__ = signature_of(instrument, {"table": _TABLE})  # type: ignore[attr-defined]
    command.__name__ = "decisions"
    command.__doc__ = (
        "Compare selection rates, or rates of scores above the median, by group and with chance "
        "alone. Makes no model calls.\n\n"
        "Writes report.json and report.parquet into the run folder. Exits with code 2 if fewer "
        "than 95% of the outcomes are parseable.\n\n"
        "Example: evenhand audit decisions people.csv --groups sex,race --outcome selected --out "
        "runs/audit"
    )
    return with_run_options(command, only=_KEPT)


audit.command("decisions", no_args_is_help=True)(decisions())
audit.command("harm", no_args_is_help=True)(check_harm)
for name in registry.names("audits"):
    if name not in _OWN_COMMANDS:
        add(audit, name, audit_command)
