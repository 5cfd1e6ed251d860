"""`evenhand scorers sample` and `estimate`: a rate from a scorer on all texts and a few labels."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evenhand.cli.options import ConfigFile, Json
from evenhand.cli.scored_texts import scoring_bar
from evenhand.cli.screen import err, out, print_json
from evenhand.experiments import config as configuration
from evenhand.experiments.labelling import LabelSample
from evenhand.experiments.labelling import estimate as estimated
from evenhand.experiments.labelling import sample as draw_labels
from evenhand.scorers.base import TOXICITY
from evenhand.views import terminal_of
from evenhand.views.files import plain


def sample(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A scorer that `list` shows, or KIND=URL[#MODEL].")
    ],
    texts: Annotated[
        Path, typer.Argument(metavar="TEXTS", help="JSONL with text, and id, cluster if wanted.")
    ],
    folder: Annotated[Path, typer.Option("--out", "-o", help="A new folder.")],
    labels: Annotated[int, typer.Option(min=2, help="About so many texts are drawn.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Draws the texts.")] = 0,
    attribute: Annotated[
        str, typer.Option(help="What the label is about, of what the scorer scores.")
    ] = TOXICITY,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Draw texts to be labelled by people or a judge, more where the scorer is unsure.

    Scores all texts, and writes labels.jsonl, to be filled in with 0 or 1 a line, beside the
    predictions and the chances, which `estimate` needs.

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
            f"{drawn.unscored:,} of {drawn.texts:,} texts got no score; they are drawn as unsure"
        )
    out.print(Text(f"{drawn.drawn:,} of {drawn.texts:,} texts are in {drawn.sheet}: fill in each "
                   f"label with 0 or 1. Next: evenhand scorers estimate {folder}"))  # fmt: skip


def estimate(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="What `sample` wrote, with labels filled in.")
    ],
    json: Json = False,
) -> None:
    """Estimate a rate from predictions for all texts and labels for some.

    The interval held the rate in 93.6 % to 99.9 % of simulated cases, for scorers from a coin to a
    word list that is sure and wrong. It is never wider than that of the labels alone where every
    label is there. Of few labels it is that of the labels alone. A label that is missing may be
    either, and the interval holds for both, so it can be wider then.

    Example: evenhand scorers estimate labels
    """
    result = estimated(folder)
    if json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result))
