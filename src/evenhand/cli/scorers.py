"""`evenhand scorers …`: list scorers, score texts, audit the context-support classifier, and
estimate a rate from the scores of all texts and a few labels."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from evenhand.cli.codes import BELOW_FLOOR
from evenhand.cli.options import (
    Attribute,
    ClusterColumn,
    ConfigFile,
    Json,
    LabelColumn,
    LabelledFile,
    ScorerName,
    TextColumn,
)
from evenhand.cli.screen import err, out, print_finding, print_json, scoring_bar
from evenhand.experiments import config as configuration
from evenhand.experiments.labelling import LabelSample
from evenhand.experiments.labelling import estimate as estimated
from evenhand.experiments.labelling import sample as draw_labels
from evenhand.experiments.scoring import (
    audit_support_judge,
    list_scorers,
    score_texts,
    threshold_of,
)
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.instruments.scorer.screening import Columns
from evenhand.scorers import Scores
from evenhand.scorers.base import TOXICITY, Batched


def audit_support(
    sample: Annotated[
        int,
        typer.Option(min=0, help="Set the questions per template and condition. 0: all questions."),
    ] = 4,
    json: Json = False,
) -> None:
    """Audit the context-support classifier on BBQ.

    Reports its AUC over templates and by category, and what a threshold lets pass. It was neither
    trained nor selected on BBQ.

    The audit needs BBQ, from a download or from the folder in EVENHAND_DATA. It makes no model
    calls.

    Example: evenhand scorers audit-support --sample 1
    """
    data = configuration.data_folder()
    with scoring_bar("context-support classifier") as advance:
        audited = audit_support_judge(data, sample, advance)
    print_finding(audited, json=json)


def sample(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Use a scorer that `list` shows, or KIND=URL[#MODEL]."),
    ],
    texts: Annotated[
        Path,
        typer.Argument(
            metavar="TEXTS", help="Read texts from JSONL with text, and optionally id and cluster."
        ),
    ],
    folder: Annotated[Path, typer.Option("--out", "-o", help="Write into this new folder.")],
    labels: Annotated[int, typer.Option(min=2, help="Sample about this many texts.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Set the random seed for sampling texts.")] = 0,
    attribute: Annotated[
        str, typer.Option(help="Label this attribute, which the scorer must score.")
    ] = TOXICITY,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Draw texts to be labeled by people or a judge, more where the scorer is unsure.

    The command scores all texts and writes labels.jsonl. Fill in 0 or 1 on each line. `estimate`
    also needs the predictions and sampling probabilities next to it.

    Example: evenhand scorers sample offline texts.jsonl --labels 200 --out labels
    """
    settings = configuration.load(config, None, None)

    async def run() -> LabelSample:
        async with configuration.opened_scorer(settings, name) as scorer:
            with scoring_bar(scorer.name) as advance:
                return await draw_labels(
                    texts,
                    scorer,
                    folder,
                    attribute=attribute,
                    labels=labels,
                    seed=seed,
                    on_batch=advance,
                )

    drawn = asyncio.run(run())
    if json:
        print_json(
            {
                "out": str(folder),
                "texts": drawn.texts,
                "drawn": drawn.drawn,
                "unscored": drawn.unscored,
            }
        )
        return
    if drawn.unscored:
        err.print(
            f"{drawn.unscored:,} of {drawn.texts:,} texts have no score; sampling treats them as "
            f"unsure"
        )
    out.print(Text(f"{drawn.drawn:,} of {drawn.texts:,} texts are in {drawn.sheet}: fill in each "
                   f"label with 0 or 1. Next: evenhand scorers estimate {folder}"))  # fmt: skip


def estimate(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Read the folder that `sample` wrote, with the labels filled in."
        ),
    ],
    json: Json = False,
) -> None:
    """Estimate a rate from predictions for all texts and labels for some.

    The 95% CI contained the true rate in 93.6% to 99.9% of simulations. The simulated scorers range
    from a coin to a confident but wrong word list. If no label is missing, the CI is never wider
    than the CI of the labels alone. With few labels, both CIs are equal. The CI covers both values
    of a missing label, so it can then be wider.

    Example: evenhand scorers estimate labels
    """
    result = estimated(folder)
    print_finding(result, json=json)


def threshold(
    labelled: LabelledFile,
    scorer: ScorerName,
    max_fpr: Annotated[
        float,
        typer.Option(
            min=0.0001,
            max=0.5,
            help="Limit the false-positive rate, the share of benign texts that reach the "
            "threshold.",
        ),
    ] = 0.05,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.9999, help="Set the confidence level of the limit.")
    ] = 0.95,
    cluster: ClusterColumn = None,
    text: TextColumn = "text",
    label: LabelColumn = "harm",
    attribute: Attribute = TOXICITY,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Fit the threshold of a scorer to your own benign and harmful texts.

    Half of the texts set the threshold. The other half shows how many benign texts it flags and how
    many harmful texts it misses. Exits with code 2 if there are too few benign texts, or if the
    held-out texts contradict the limit.

    Example: evenhand scorers threshold labeled.jsonl --scorer offline --max-fpr 0.05
    """
    settings = configuration.load(config, None, None)
    result = asyncio.run(
        threshold_of(
            labelled,
            settings,
            scorer=scorer,
            columns=Columns(text=text, label=label, cluster=cluster),
            attribute=attribute,
            max_fpr=max_fpr,
            confidence=confidence,
            shown=scoring_bar,
        )
    )
    print_finding(result, json=json)
    if not result.holds:
        raise typer.Exit(BELOW_FLOOR)


scorers = typer.Typer(
    help="List, run, check and combine toxicity scorers.\n\nTo audit one: evenhand audit scorer.",
    no_args_is_help=True,
)
scorers.command("audit-support")(audit_support)
scorers.command("sample")(sample)
scorers.command("estimate")(estimate)
scorers.command("threshold", no_args_is_help=True)(threshold)

_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Use a scorer that `list` shows, or KIND=URL[#MODEL].")
]


@scorers.command("list")
def list_(config: ConfigFile = None, json: Json = False) -> None:
    """The built-in scorers, those of the config file, and those that other packages bring.

    Example: evenhand scorers list
    """
    settings = configuration.load(config, None, None)
    listed = list_scorers(settings)
    if json:
        print_json(
            [{name: value for name, value in asdict(line).items() if value} for line in listed]
        )
        return
    table = Table("scorer", "kind", "description", box=None)
    for line in listed:
        table.add_row(line.name, line.kind, line.says)
    out.print(table)


@scorers.command()
def score(
    name: _Name,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="Score these texts. Default: the lines of stdin."),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Score texts. Exits with code 2 if fewer than 95% of the texts have a score.

    Example: evenhand scorers score wordlist "You are no idiot."
    """
    inputs = texts or [line for line in sys.stdin.read().splitlines() if line.strip()]
    settings = configuration.load(config, None, None)
    scored = asyncio.run(score_texts(settings, name, inputs))
    if json:
        print_json(
            [_said(text, outcome) for text, outcome in zip(inputs, scored.outcomes, strict=True)]
        )
    else:
        out.print(_scores(inputs, scored))
    missing = sum(scored.reasons.values())
    if missing:
        err.print(f"{missing} of {len(inputs)} without a score: {scored.reasons}")
    if scored.coverage < COVERAGE_FLOOR:
        raise typer.Exit(BELOW_FLOOR)


def _said(text: str, outcome: Any) -> dict[str, Any]:
    if isinstance(outcome, Scores):
        return {"text": text, "scores": dict(outcome.values), "because": outcome.because}
    return {"text": text, "unscored": outcome.reason, "message": outcome.message}


def _scores(texts: Sequence[str], scored: Batched) -> Table:
    table = Table("score", "text", "because", box=None)
    for text, outcome in zip(texts, scored.outcomes, strict=True):
        value = (
            f"{outcome.toxicity:.3f}"
            if isinstance(outcome, Scores)
            else f"missing: {outcome.reason}"
        )
        because = "; ".join(outcome.because) if isinstance(outcome, Scores) else outcome.message
        table.add_row(value, text, because)
    return table
