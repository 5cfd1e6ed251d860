"""`evenhand scorers screen …`: a cheap scorer decides clear cases, and a judge the rest."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from evenhand.api.screens import scorers_screen_plan
from evenhand.cli.codes import BELOW_FLOOR, INCONCLUSIVE
from evenhand.cli.execution import Terminal, end
from evenhand.cli.options import (
    Attribute,
    ClusterColumn,
    ConfigFile,
    Json,
    LabelColumn,
    LabelledFile,
    RunCommand,
    ScorerName,
    TextColumn,
    with_run_options,
)
from evenhand.cli.screen import out, print_finding, print_json, scoring_bar
from evenhand.experiments import config as configuration
from evenhand.experiments.screens import (
    CalibrationRequest,
    ScreenUse,
    apply_screen,
    card_of,
    looks_beside,
)
from evenhand.experiments.screens import calibrate as calibrate_screen
from evenhand.findings.plan import ItemPrice
from evenhand.findings.screen_file import ScreenFile
from evenhand.instruments.scorer.screening import Columns, ScreenTargets
from evenhand.scorers.base import TOXICITY
from evenhand.views import terminal_of

screen = typer.Typer(
    help="Send only uncertain texts to a judge, with a guaranteed recall.",
    no_args_is_help=True,
)


_File = Annotated[
    Path,
    typer.Argument(
        metavar="SCREEN", help="Read the file that `evenhand scorers screen calibrate` wrote."
    ),
]


@screen.command(no_args_is_help=True)
def calibrate(
    labelled: LabelledFile,
    scorer: ScorerName,
    out_: Annotated[
        Path,
        typer.Option("--out", "-o", help="Write the screen to this .json file, and its card next "
        "to it."),
    ],
    max_fnr: Annotated[
        float,
        typer.Option(
            min=0.0001, max=0.9999,
            help="Limit the false-negative rate, the share of harmful texts the screen clears.",
        ),
    ] = 0.05,
    max_fpr: Annotated[
        float | None,
        typer.Option(
            min=0.0001, max=0.9999,
            help="Limit the false-positive rate, the share of clean texts the screen flags. "
            "Default: only the judge flags texts.",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(min=0.5, max=0.9999, help="Set the confidence level of the guarantee.")
    ] = 0.95,
    group: Annotated[
        str | None,
        typer.Option(help="Also guarantee the rates for each group in this column."),
    ] = None,
    cluster: ClusterColumn = None,
    text: TextColumn = "text",
    label: LabelColumn = "harm",
    attribute: Attribute = TOXICITY,
    traffic: Annotated[
        Path | None,
        typer.Option(
            help="Detect score drift relative to these unlabeled texts (.jsonl or .csv). Default: "
            "the labeled texts."
        ),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Find the cut-offs between which a judge is needed, from labeled texts.

    Writes the screen file and a card in Markdown. With too few labels for a guarantee, the command
    refuses it, prints how many labels are missing and exits with code 2. Do not use texts from the
    training data of the scorer.

    Example: evenhand scorers screen calibrate labeled.jsonl --scorer offline --out screen.json
    """
    request = CalibrationRequest(
        labelled=labelled,
        out=out_,
        said=scorer,
        columns=Columns(text=text, label=label, group=group, cluster=cluster),
        promise=ScreenTargets(missed=max_fnr, false_alarms=max_fpr, confidence=confidence),
        attribute=attribute,
        traffic=traffic,
    )
    settings = configuration.load(config, None, None)
    screen_file = asyncio.run(calibrate_screen(request, settings, scoring_bar))
    _show(screen_file, out_, card_of(out_), json=json)


def _show(screen_file: ScreenFile, path: Path, card: Path, *, json: bool) -> None:
    if json:
        print_json(screen_file.model_dump())
    else:
        out.print(terminal_of(screen_file))
        out.print(f"{path}, {card}", style="dim")
    if screen_file.refused:
        raise typer.Exit(BELOW_FLOOR)


def _apply(
    options: RunCommand,
    file: _File,
    answers: Annotated[
        str,
        typer.Argument(
            metavar="ANSWERS",
            help='Read lines like {"prompt": "…", "answer": "…"}, or Parquet: a file, folder or '
            "URL.",
        ),
    ],
    judge: Annotated[
        str,
        typer.Option(
            help="Send uncertain texts to this judge: a scorer that `evenhand scorers list` shows, "
            "harm:NAME, or KIND=URL[#MODEL], such as judge=URL#MODEL."
        ),
    ],
    threshold: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Treat texts with at least this toxicity of the judge as harmful.",
        ),
    ] = 0.5,
    text_column: Annotated[
        str | None, typer.Option(help="Read texts from this Parquet column. Default: answer.")
    ] = None,
) -> None:
    """Judge stored answers: the screen where it is sure, the judge elsewhere.

    A text without a score goes to the judge. A text without a verdict of the judge has failed. The
    command refuses a scorer of another version or with other settings. Run the command again to
    resume. Every run tests the scores for drift, alone and pooled with all runs since the
    calibration. The screen file counts these looks, and a file next to it stores them.

    Exits with code 2 if fewer than 95% of the texts have a verdict. Exits with code 4 if scores
    have drifted, which voids the guarantee. Also exits with code 4 if the drift test is
    inconclusive, because of too few scores or failed texts that could hide drift.

    Example: evenhand scorers screen apply screen.json answers.jsonl --judge judge=http://127.0.0.1:8080/v1#m
    --out runs/screened
    """
    config = options.load()
    use = ScreenUse.of(
        file,
        answers,
        partial(configuration.scorer_by_name, config),
        judge=judge,
        threshold=threshold,
        text_column=text_column,
    )
    request = options.request(use.source, use.method, config)
    applied = asyncio.run(apply_screen(use, request, Terminal(config)))
    result = applied.finding
    if result is None:
        end(applied.ended, below_floor=False)
        return
    print_finding(result, json=options.json, written=f"{options.out}, {looks_beside(file)}")
    if result.alarm is not None or (result.look and result.look.open):
        raise typer.Exit(INCONCLUSIVE)
    end(applied.ended, below_floor=result.coverage.below_floor)


_FIXED = ("method", "wording", "set_", "prices", "max_cost", "max_calls", "dry_run", "pilot",
          "seed", "max_tokens", "system", "base_url", "model")  # fmt: skip
screen.command("apply", no_args_is_help=True)(with_run_options(_apply, without=_FIXED))


@screen.command(no_args_is_help=True)
def plan(
    file: _File,
    texts: Annotated[int, typer.Option(min=1, help="Set the number of texts.")],
    harmful: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Set the share of harmful texts. Optional if the screen has traffic.",
        ),
    ] = None,
    calls: Annotated[float, typer.Option(help="Set the judge calls per text.")] = 1,
    tokens: Annotated[float, typer.Option(help="Set the tokens per call, in and out.")] = 500,
    price: Annotated[
        float | None, typer.Option(help="Set the price per million tokens, in your currency.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare the cost of the judge with and without a screen.

    Example: evenhand scorers screen plan screen.json --texts 10000000 --harmful 0.01 --price 0.6
    """
    cost = ItemPrice(calls=calls, tokens=tokens, per_million=price)
    planned = asyncio.run(scorers_screen_plan(file, texts, harmful=harmful, price=cost))
    print_finding(planned, json=json)
