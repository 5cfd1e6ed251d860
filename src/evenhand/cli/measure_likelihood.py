"""`evenhand measure likelihood`."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.codes import BELOW_FLOOR, STOPPED
from evenhand.cli.execution import Out
from evenhand.cli.options import BaseUrl, ConfigFile, Json, ModelName
from evenhand.cli.sampling import DrawSeed
from evenhand.cli.screen import err, out, print_json
from evenhand.cli.watching import Terminal
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.experiments.measuring import draw_sets, measure_sets, run_folders
from evenhand.findings.report import Report
from evenhand.instruments.likelihood_sets import SETS, USUAL
from evenhand.models.likelihood import EchoedLikelihood, LikelihoodModel
from evenhand.views import terminal_of
from evenhand.views.files import plain


def likelihood(
    out_: Out,
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
    names = [name.strip() for name in sets.split(",") if name.strip()]
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
        err.print("stopped; nothing is lost. Run the same command again to go on.")
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
        raise UserError("--start is for --weights: an endpoint puts its own token before a text")
    opened = EchoedLikelihood(await configuration.open_model(config.default_model()))
    try:
        await opened.check()
    except BaseException:
        await opened.close()
        raise
    return opened
