"""`evenhand measure NAME`: an instrument's items through a method, and what may be said of it.

Every instrument is a command. Its own options come from the fields of its `options`, the others
are the same for all.
"""

import asyncio
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, replace
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from evenhand.cli.execution import end, show_dry_run
from evenhand.cli.forecast import show_forecast
from evenhand.cli.measure_likelihood import likelihood
from evenhand.cli.options import Full
from evenhand.cli.run_options import RunCommand, prepared, with_run_options
from evenhand.cli.screen import out, print_json
from evenhand.cli.watching import Terminal
from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.experiments.measuring import measure as measured
from evenhand.experiments.stopping import StoppingQuestion, until_decided
from evenhand.findings.audit import Audit
from evenhand.findings.report import Report
from evenhand.instruments import instrument_named
from evenhand.instruments._contract import Instrument
from evenhand.views import terminal_of
from evenhand.views.files import plain

_Until = Annotated[
    str | None,
    typer.Option(
        metavar="MEASURE=MARGIN",
        help="Stop when this measure is shown to be within the margin or beyond it: s_amb=0.05.",
    ),
]
_FinitePopulation = Annotated[
    bool,
    typer.Option(
        "--finite-population",
        help="With --until: ask it of exactly these items, not of others like them. Sooner known.",
    ),
]

measure = typer.Typer(
    help="Measure a method on an instrument, or a model itself.\n\n"
    "Example: evenhand measure bbq --method default --per-category 8 --out runs/bbq-default",
    no_args_is_help=True,
)


def command_for(instrument: Instrument) -> Callable[..., None]:
    """The command of one instrument: its own options first, then those of every run."""

    def command(options: RunCommand, **values: Any) -> None:
        full, question = values.pop("full"), question_in(values)
        run(instrument, options, values, full=full, until=question)

    command.__signature__ = signature_of(instrument)  # type: ignore[attr-defined]
    command.__name__ = instrument.name
    command.__doc__ = _help(instrument)
    return with_run_options(command)


def question_in(values: dict[str, Any]) -> StoppingQuestion | None:
    """Take the question that ends a run out of what was typed."""
    until, these = (values.pop(name) for name in ("until", "finite_population"))
    if these and until is None:
        raise UserError(
            "--finite-population says of what, and not what: add --until MEASURE=MARGIN"
        )
    return None if until is None else StoppingQuestion(until, these)


def signature_of(instrument: Instrument) -> Signature:
    """The instrument's own options, and those of a run that may stop early."""
    hints = get_type_hints(instrument.options)
    parameters = [parameter_of(field, hints[field.name]) for field in fields(instrument.options)]
    more = (
        ("until", None, _Until),
        ("finite_population", False, _FinitePopulation),
        ("full", False, Full),
    )
    parameters += [Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=kind)
            for name, value, kind in more]  # fmt: skip
    first = Parameter("options", Parameter.POSITIONAL_OR_KEYWORD)
    return Signature([first, *parameters])


def parameter_of(field: "Field[Any]", kind: Any) -> Parameter:
    """Make the option of a command from a field of an instrument's options."""
    metadata = field.metadata
    flag = metadata["flag"] or f"--{field.name.replace('_', '-')}"
    if kind is bool and field.default:  # what is on must have a way to be switched off
        flag += f"/--no-{flag.removeprefix('--')}"
    option = typer.Option(flag, help=metadata["help"], min=metadata["least"])
    default = Parameter.empty if field.default is MISSING else field.default
    return Parameter(
        field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def _help(instrument: Instrument) -> str:
    return (
        f"{getdoc(instrument) or instrument.title}\n\n"
        "Writes report.json and report.parquet into the run folder. Run it again to resume. Ends "
        "with code 2 if fewer than 95 % of the answers could be scored, with 3 at a cap.\n\n"
        f"Example: evenhand measure {instrument.name} --method default --out "
        f"runs/{instrument.name}-default"
    )


def run(
    instrument: Instrument,
    options: RunCommand,
    values: dict[str, Any],
    *,
    full: bool,
    until: StoppingQuestion | None = None,
    conclude: Callable[[Instrument, Any, Report, Path | None], Audit] | None = None,
) -> None:
    """Measure, show what was found, and leave with the code that says how it went.

    Args:
        instrument: What is measured.
        options: What was typed for the run.
        values: The instrument's own options.
        full: Show every table.
        until: The question that ends the run.
        conclude: What makes an audit of the report, and keeps it.
    """
    measurement, request = prepared(instrument, options, values)
    settings = request.settings
    if until is not None:
        source = until_decided(instrument, request.source, until, seed=settings.seed)
        request = replace(request, source=source)
    if settings.dry_run:
        show_dry_run({settings.out: request}, json=options.json)
    result = asyncio.run(measured(measurement, request, Terminal(options.load())))
    if result.ended.pilot is not None:
        show_forecast(settings, result.ended, json=options.json)
        return
    if result.report is None:
        end(result.ended, below_floor=True)
        return
    finding: Report | Audit = result.report
    if conclude is not None:
        finding = conclude(
            instrument, measurement.options, result.report, request.settings.certificates
        )
    if options.json:
        print_json(plain(finding.to_dict()))
    else:
        out.print(terminal_of(finding, full=full))
    too_little = result.report.coverage.below_floor
    if isinstance(finding, Audit) and instrument.must_pass:
        too_little = finding.state != "pass"
    end(result.ended, below_floor=too_little)


def of_one_set(instrument: Instrument) -> Callable[..., None]:
    """The command of one likelihood set: `measure likelihood` with this set alone."""

    def command(**options: Any) -> None:
        likelihood(**options, sets=instrument.name)

    own_parameters = [
        parameter
        for parameter in signature(likelihood).parameters.values()
        if parameter.name != "sets"
    ]
    command.__signature__ = Signature(own_parameters)  # type: ignore[attr-defined]
    command.__name__ = instrument.name
    command.__doc__ = (
        f"{getdoc(instrument) or instrument.title}\n\n"
        f"Example: evenhand measure {instrument.name} --weights weights/smollm2 --out runs/lik"
    )
    return command


def refusal(problem: UserError) -> Callable[..., None]:
    """The command of an instrument that cannot be loaded: it says why, and the others are there."""

    def command() -> None:
        raise problem

    command.__doc__ = str(problem)
    return command


def add(name: str) -> None:
    """Make an instrument a command."""
    try:
        instrument = instrument_named(name)
    except UserError as problem:
        any_ = {"allow_extra_args": True, "ignore_unknown_options": True}
        measure.command(name, context_settings=any_)(refusal(problem))
        return
    built = command_for(instrument) if instrument.asks == "answers" else of_one_set(instrument)
    measure.command(name, no_args_is_help=True)(built)


for name in registry.names("instruments"):
    add(name)
measure.command("likelihood", no_args_is_help=True)(likelihood)
