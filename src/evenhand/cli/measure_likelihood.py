"""`evenhand measure likelihood`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.cli.execution import BELOW_FLOOR, STOPPED
from evenhand.cli.options import BaseUrl, ConfigFile, Json, ModelName, open_model
from evenhand.cli.sampling import DrawSeed
from evenhand.cli.screen import err, out, print_json, run_progress
from evenhand.errors import UserError
from evenhand.instruments.likelihood_sets import NAMES, DrawnSet, LikelihoodSets
from evenhand.instruments.option_sets import OptionSampling
from evenhand.models.likelihood import EchoedLikelihood, LikelihoodModel
from evenhand.report import likelihood as report
from evenhand.report.summary import below_floor
from evenhand.runners.likelihood import run_likelihood
from evenhand.runners.progress import Progress
from evenhand.store.likelihood import LikelihoodRun


def likelihood(
    out_: Annotated[
        str,
        typer.Option("--out", "-o", help="The run folder, new or to be resumed: a path or a URL."),
    ],
    weights: Annotated[
        Path | None,
        typer.Option(help="A Hugging Face folder, read on this machine, instead of an endpoint."),
    ] = None,
    sets: Annotated[
        str, typer.Option(help=f"Names with commas, of {', '.join(NAMES)}.")
    ] = ",".join(NAMES),
    sample: Annotated[
        int, typer.Option(min=2, help="At most so many items of each set, spread over its groups.")
    ] = 1_600,
    all_: Annotated[bool, typer.Option("--all", help="All items: 19,522.")] = False,
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
    subtler_biases, and pronouns after occupations.

    Small and base models show their bias here first. Needs local weights, or an endpoint that
    echoes prompts with log-probabilities, as vLLM does. Writes report.json and report.parquet into
    the run folder. Run it again to resume. Ends with code 2 if fewer than 95 % could be scored.

    Example: evenhand measure likelihood --weights weights/smollm2 --out runs/lik-base
    """
    sampling = OptionSampling(items=None if all_ else sample, seed=sample_seed)
    drawn = draw_sets(configuration.likelihood_sets(), sets, sampling, unseen)
    settings = configuration.load(config, base_url, model)
    try:
        asyncio.run(_run(weights, settings.default_model(), drawn, out_))
    except KeyboardInterrupt:
        err.print("stopped; nothing is lost. Run the same command again to go on.")
        raise typer.Exit(STOPPED) from None
    found = report.measure(LikelihoodRun(out_))
    report.write(found, out_)
    if json:
        print_json(found)
    else:
        out.print(report.render(found))
    if below_floor(found["coverage"]):
        raise typer.Exit(BELOW_FLOOR)


def draw_sets(
    data: LikelihoodSets, sets: str, sampling: OptionSampling, unseen: Path | None
) -> list[DrawnSet]:
    """The sets of a list with commas, without what the weights were trained on."""
    names = list(dict.fromkeys(name.strip() for name in sets.split(",") if name.strip()))
    if not names:
        raise UserError(f"--sets names no set; there are: {', '.join(NAMES)}")
    trained = _trained(data, unseen) if unseen else frozenset()
    return [data.draw(name, sampling, trained) for name in names]


def _trained(data: LikelihoodSets, pairs: Path) -> frozenset[str]:
    """The contexts whose template the weights were trained on."""
    from evenhand.debates.dataset import trained_topics  # noqa: PLC0415 only with --unseen
    from evenhand.debates.items import templates  # noqa: PLC0415

    topics, rows = trained_topics(pairs), data.subtler_rows()
    named = zip(rows, templates(rows), strict=True)
    return frozenset(row["context"].strip() for row, topic in named if topic in topics)


async def _run(
    weights: Path | None, model: configuration.ModelConfig, sets: Sequence[DrawnSet], to: str
) -> None:
    opened = await _open(weights, model)
    progress = Progress()
    try:
        async with run_progress(progress):
            await run_likelihood(opened, sets, to, progress=progress)
    finally:
        await opened.close()


async def _open(weights: Path | None, model: configuration.ModelConfig) -> LikelihoodModel:
    if weights is not None:
        from evenhand.training.local_likelihood import LocalLikelihood  # noqa: PLC0415 torch

        return LocalLikelihood(weights)
    opened = EchoedLikelihood(await open_model(model))
    try:
        await opened.check()
    except BaseException:
        await opened.close()
        raise
    return opened
