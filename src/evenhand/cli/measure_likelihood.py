"""`evenhand measure likelihood`."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand import config as configuration
from evenhand.cli.codes import BELOW_FLOOR, STOPPED
from evenhand.cli.options import BaseUrl, ConfigFile, Json, ModelName
from evenhand.cli.sampling import DrawSeed
from evenhand.cli.screen import err, out, print_json, run_progress
from evenhand.errors import UserError
from evenhand.findings.report import report
from evenhand.instruments._contract import DataFolder
from evenhand.instruments._options import OTHER_START, START_CHECK, OptionSource
from evenhand.instruments.likelihood_sets import SETS, USUAL, set_named
from evenhand.models.likelihood import EchoedLikelihood, LikelihoodModel
from evenhand.runners.likelihood import run_likelihood
from evenhand.runners.progress import Progress
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.store.likelihood import OldLikelihoods
from evenhand.views import terminal_of
from evenhand.views.files import plain, write_report


def likelihood(
    out_: Annotated[
        str,
        typer.Option("--out", "-o", help="The run folder, new or to be resumed: a path or a URL."),
    ],
    weights: Annotated[
        Path | None,
        typer.Option(help="A Hugging Face folder, read on this machine, instead of an endpoint."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="What every text is read after, with --weights. Default: the token that the "
            "tokenizer puts in front, or the one that separates documents.",
        ),
    ] = None,
    sets: Annotated[str, typer.Option(help=f"Names with commas, of {', '.join(SETS)}.")] = ",".join(
        USUAL
    ),
    sample: Annotated[
        int, typer.Option(min=2, help="At most so many items of each set, spread over its groups.")
    ] = 1_600,
    all_: Annotated[
        bool, typer.Option("--all", help="All items: 19,522 of the usual sets.")
    ] = False,
    sample_seed: DrawSeed = 0,
    unseen: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            help="The pairs that the weights were trained on: items of subtler_biases with a "
            "topic of their training side are left out.",
        ),
    ] = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Measure bias by the log-probability of texts: CrowS-Pairs, StereoSet, WinoBias, Winogender,
    subtler_biases, and pronouns after occupations; GEST, SeeGULL and RedditBias by name.

    Small and base models show their bias here first. Needs local weights, or an endpoint that
    echoes prompts with log-probabilities, as vLLM does. Writes report.json and report.parquet into
    the run folder; each of several sets has a run folder of its own within. Run it again to resume.
    Ends with code 2 if fewer than 95 % could be scored.

    Example: evenhand measure likelihood --weights weights/smollm2 --out runs/lik-base
    """
    sources = draw_sets(
        sets,
        configuration.data_folder(),
        {"sample": sample, "all": all_, "sample_seed": sample_seed, "unseen": unseen},
    )
    settings = configuration.load(config, base_url, model)
    folders = {name: f"{out_.rstrip('/')}/{name}" if len(sources) > 1 else out_ for name in sources}
    _refuse_other_form(out_, list(sources))
    try:
        asyncio.run(_run(_Asked(weights, start, settings.default_model()), sources, folders))
    except KeyboardInterrupt:
        err.print("stopped; nothing is lost. Run the same command again to go on.")
        raise typer.Exit(STOPPED) from None
    reports = [report(SETS[name], RunReader(folders[name])) for name in sources]
    for set_report in reports:
        write_report(set_report, set_report.side.run)
    if json:
        print_json({"sets": [plain(set_report.to_dict()) for set_report in reports]})
    else:
        for set_report in reports:
            out.print(terminal_of(set_report), "")
    if any(set_report.coverage.below_floor for set_report in reports):
        raise typer.Exit(BELOW_FLOOR)


def draw_sets(sets: str, data: DataFolder, values: dict[str, Any]) -> dict[str, OptionSource]:
    """The samples of the sets in a list with commas. Each set takes those of the given options that
    it has."""
    names = list(dict.fromkeys(name.strip() for name in sets.split(",") if name.strip()))
    if not names:
        raise UserError(f"--sets names no set; there are: {', '.join(SETS)}")
    sources = {}
    for instrument in map(set_named, names):
        option_names = {field.name for field in fields(instrument.options)}
        options = instrument.options_from(
            {name: values[name] for name in values if name in option_names}
        )
        sources[instrument.name] = instrument.source(data, options)
    return sources


def _refuse_other_form(location: str, sets: list[str]) -> None:
    """One folder holds one run, or one folder per set, never both."""
    folder = open_folder(location)
    single = folder.exists("run.json") and len(sets) > 1
    if single or OldLikelihoods.are_at(folder):
        raise UserError(
            f"{location} holds a run of another form already; `evenhand compare` still reads it. "
            "Give --out a new folder"
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who is asked for log-probabilities: local weights, or else an endpoint."""

    weights: Path | None
    start: str | None
    model: configuration.ModelConfig


async def _run(
    target: _Asked, sources: Mapping[str, OptionSource], folders: Mapping[str, str]
) -> None:
    opened = await _open(target)
    try:
        for name, source in sources.items():
            progress = Progress()
            async with run_progress(progress):
                await run_likelihood(opened, source, folders[name], progress=progress)
            await _again_after_another_start(opened, source, folders[name])
    finally:
        await opened.close()


async def _again_after_another_start(
    model: LikelihoodModel, source: OptionSource, folder: str
) -> None:
    other = model.after_another_start()
    if other is not None:
        part = source.part(START_CHECK)
        await run_likelihood(other, part, f"{folder}/{OTHER_START}", progress=Progress())


async def _open(target: _Asked) -> LikelihoodModel:
    if target.weights is not None:
        from evenhand.training.local_likelihood import LocalLikelihood  # noqa: PLC0415 torch

        return LocalLikelihood(target.weights, start=target.start)
    if target.start is not None:
        raise UserError("--start is for --weights: an endpoint puts its own token before a text")
    opened = EchoedLikelihood(await configuration.open_model(target.model))
    try:
        await opened.check()
    except BaseException:
        await opened.close()
        raise
    return opened
