"""`evenhand measure NAME`: run a benchmark and report the result;
`evenhand runs import`: score existing responses without model calls.

Every benchmark is a command. The fields of its `options` become its own options. All other options
are the same for every benchmark."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from evenhand.api.configured import run_models
from evenhand.api.inputs import question_of
from evenhand.cli.codes import BELOW_FLOOR, STOPPED
from evenhand.cli.execution import Out, Terminal, end, show_dry_run, show_forecast
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    DrawSeed,
    Full,
    Json,
    ModelName,
    RunCommand,
    names_in,
    with_run_options,
)
from evenhand.cli.screen import err, out, print_finding, print_json
from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.experiments.exchange import instrument_for
from evenhand.experiments.measuring import draw_sets, measure_sets, prepared, run_folders
from evenhand.experiments.measuring import measure as measured
from evenhand.experiments.settings import RunSettings
from evenhand.findings.audit import Audit
from evenhand.findings.report import Report
from evenhand.instruments import Instrument, instrument_named
from evenhand.instruments._contract import no_answers
from evenhand.instruments.likelihood_sets import usual_sets
from evenhand.models.likelihood import EchoedLikelihood, LikelihoodModel
from evenhand.views import terminal_of
from evenhand.views.files import plain


def likelihood(
    out_: Out,
    weights: Annotated[
        Path | None,
        typer.Option(
            help="Load weights from this Hugging Face folder instead of asking an endpoint."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Start every text with this token; needs --weights. Default: the start token of "
            "the tokenizer, or else its document separator.",
        ),
    ] = None,
    sets: Annotated[
        str | None,
        typer.Option(
            help="Measure these datasets, separated by commas. Default: all but gest, seegull and "
            "redditbias."
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(min=2, help="Limit the items per dataset, spread over its groups.")
    ] = 1_600,
    all_: Annotated[
        bool, typer.Option("--all", help="Use all items: 19,522 of the default datasets.")
    ] = False,
    sample_seed: DrawSeed = 0,
    unseen: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            help="Exclude items of subtler_biases whose topic is in the training split of these "
            "pairs.",
        ),
    ] = None,
    base_url: BaseUrl = None,
    answers: Annotated[
        Path | None, typer.Option(help="Refused: log-probabilities have no recorded answers.")
    ] = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Measure bias by the log-probability of texts: crows_pairs, stereoset, winobias, winogender,
    subtler_biases, and occupations (pronouns after them); gest, seegull and redditbias by name.

    Start here for small and base models. The command needs local weights, or an endpoint that
    echoes prompts with log-probabilities, as vLLM does. Writes report.json and report.parquet into
    the run folder. Each of several datasets has its own run folder within. Run the command again to
    resume. Exits with code 2 if fewer than 95% of the items have a score.

    Example: evenhand measure likelihood --weights weights/smollm2 --out runs/lik-base
    """
    if answers is not None:
        raise UserError(no_answers(sets or "likelihood"))
    names = usual_sets() if sets is None else names_in(sets)
    sources = draw_sets(
        names,
        configuration.data_folder(),
        {"sample": sample, "all": all_, "sample_seed": sample_seed, "unseen": unseen},
    )
    settings = configuration.load(config, base_url, model)
    folders = run_folders(out_, list(sources))

    async def measured() -> list[Report]:
        opened = await _open(weights, start, settings)
        try:
            return await measure_sets(opened, sources, folders, Terminal(settings))
        finally:
            await opened.close()

    try:
        reports = asyncio.run(measured())
    except KeyboardInterrupt:
        err.print("stopped; nothing is lost. Run the same command again to resume.")
        raise typer.Exit(STOPPED) from None
    if json:
        print_json({"sets": [plain(set_report.to_dict()) for set_report in reports]})
    else:
        for set_report in reports:
            out.print(terminal_of(set_report), "")
    if any(set_report.coverage.below_floor for set_report in reports):
        raise typer.Exit(BELOW_FLOOR)


async def _open(weights: Path | None, start: str | None, config: Config) -> LikelihoodModel:
    """Open local weights, or else the endpoint of the config."""
    if weights is not None:
        from evenhand.training.local_likelihood import LocalLikelihood  # noqa: PLC0415 torch

        return LocalLikelihood(weights, start=start)
    if start is not None:
        raise UserError(
            "--start needs --weights: an endpoint adds its own start token. Omit --start"
        )
    opened = EchoedLikelihood(await configuration.open_model(config.default_model()))
    try:
        await opened.check()
    except BaseException:
        await opened.close()
        raise
    return opened


_STOP_WHEN = Annotated[
    str | None,
    typer.Option(
        metavar="MEASURE=MARGIN",
        help="Stop when the 95% CI of this metric is within the margin or beyond it: s_amb=0.05.",
    ),
]
_FINITE = Annotated[
    bool,
    typer.Option(
        "--finite-population",
        help="With --stop-when, draw conclusions about these items only, not about new items.",
    ),
]

STOPPING: dict[str, Any] = {
    "stop_when": _STOP_WHEN,
    "finite_population": _FINITE,
}  # options of a run that may stop early

measure = typer.Typer(
    help="Run a benchmark: bbq, rtp, bold, holisticbias and more.\n\n"
    "Example: evenhand measure bbq --method default --per-category 8 --out runs/bbq-default",
    no_args_is_help=True,
)


def command_for(instrument: Instrument) -> Callable[..., None]:
    """Make the command of a benchmark: its own options first, then those of every run."""

    def command(options: RunCommand, **values: Any) -> None:
        run(instrument, options, values)

    command.__signature__ = signature_of(instrument, **STOPPING)  # type: ignore[attr-defined]
    command.__name__ = instrument.name
    command.__doc__ = (
        f"{getdoc(instrument) or instrument.title}\n\n"
        "Writes report.json and report.parquet into the run folder. Run the command again to "
        "resume. Exits with code 2 if fewer than 95% of the answers have a score, with 3 at a "
        "cap.\n\n"
        f"Example: evenhand measure {instrument.name} --method default --out "
        f"runs/{instrument.name}-default"
    )
    return with_run_options(command)


def signature_of(
    instrument: Instrument, arguments: Mapping[str, Any] | None = None, **more: Any
) -> Signature:
    """Make the signature of a command that measures.

    Args:
        instrument: The benchmark; each field of its options is an option.
        arguments: The fields that are arguments instead, each with its type and declaration.
        more: The annotations of further options.

    Returns:
        The signature, with --full at its end.
    """
    hints = get_type_hints(instrument.options)
    own = [_parameter_of(field, hints[field.name]) for field in fields(instrument.options)]
    for index, entry in enumerate(own):
        if arguments and entry.name in arguments:
            kind, argument = arguments[entry.name]
            default = entry.default if type(None) in get_args(kind) else Parameter.empty
            own[index] = entry.replace(annotation=Annotated[kind, argument], default=default)
    own += [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind,
                  default=False if get_args(kind)[0] is bool else None)
        for name, kind in {**more, "full": Full}.items()
    ]  # fmt: skip
    return Signature([Parameter("options", Parameter.POSITIONAL_OR_KEYWORD), *own])


def _parameter_of(field: "Field[Any]", kind: Any) -> Parameter:
    """Make the option of a command from a field of an instrument's options."""
    metadata = field.metadata
    flag = metadata["flag"] or f"--{field.name.replace('_', '-')}"
    if kind is bool and field.default:  # a switch that is on needs a switch for off
        flag += f"/--no-{flag.removeprefix('--')}"
    option = typer.Option(flag, help=metadata["help"], min=metadata["least"])
    default = Parameter.empty if field.default is MISSING else field.default
    return Parameter(
        field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def run(
    instrument: Instrument,
    options: RunCommand,
    values: dict[str, Any],
    conclude: Callable[[Instrument, Any, Report, Path | None], Audit] | None = None,
) -> None:
    """Measure, show the result, and exit with the code of the outcome.

    Args:
        instrument: The benchmark.
        options: The options of the run.
        values: The benchmark's own options, and those that `signature_of` adds.
        conclude: Makes an audit of the report and stores it.
    """
    full, stop_when = values.pop("full", False), values.pop("stop_when", None)
    question = question_of(stop_when, values.pop("finite_population", False))
    config, method = options.load(), options.built_method()
    measurement, request = prepared(
        instrument, values, method, run_models(config), options.run_settings(), question
    )
    settings = request.settings
    if settings.dry_run:
        show_dry_run({settings.out: request}, json=options.json)
    result = asyncio.run(measured(measurement, request, Terminal(config)))
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
    print_finding(finding, json=options.json, full=full)
    too_little = result.report.coverage.below_floor
    if isinstance(finding, Audit) and instrument.must_pass:
        too_little = finding.state != "pass"
    end(result.ended, below_floor=too_little)


def of_one_set(instrument: Instrument) -> Callable[..., None]:
    """Make the command of a likelihood dataset: `measure likelihood` with this dataset only."""

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


def add(group: typer.Typer, name: str, build: Callable[[Instrument], Callable[..., None]]) -> None:
    """Make a benchmark a command; if it cannot be loaded, the command explains why."""
    try:
        group.command(name, no_args_is_help=True)(build(instrument_named(name)))
    except UserError as error:
        problem = error

        def refusal() -> None:
            raise problem

        any_ = {"allow_extra_args": True, "ignore_unknown_options": True}
        group.command(name, context_settings=any_, help=str(problem))(refusal)


for name in registry.names("instruments"):
    add(measure, name, lambda built: command_for(built) if built.asks == "answers"
        else of_one_set(built))  # fmt: skip
measure.command("likelihood", no_args_is_help=True)(likelihood)


def runs_import(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Read this log of another tool.")],
    out_: Out,
    instrument: Annotated[
        str | None,
        typer.Option(help="Score with this benchmark. Default: the task name of the log."),
    ] = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Score the log of another tool, without a call.

    The command reads logs of Inspect (.eval) and samples of lm-evaluation-harness (samples_*.jsonl
    of --log_samples). It writes a run folder that records the source of the answers. `compare`,
    `report` and `runs view` can read that folder. A question without an answer counts as missing.

    Example: evenhand runs import logs/bbq.eval --out runs/theirs
    """
    chosen = instrument_for(log, instrument)
    defaults = {field.name: field.default for field in fields(chosen.options)}
    options = RunCommand(settings=RunSettings(out=out_), json=json)
    run(chosen, options, {**defaults, "answers": log, "full": full})
