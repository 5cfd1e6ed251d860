"""`evenhand scorers sample` and `estimate`: a rate from a scorer on all texts and a few labels."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evenhand import config as configuration
from evenhand.cli.options import ConfigFile, Json
from evenhand.cli.scored_texts import scored
from evenhand.cli.screen import err, out, print_json
from evenhand.experiments.labelling import LABELS, draw, given_texts
from evenhand.experiments.labelling import estimate as estimated
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
    population = given_texts(texts)
    settings = configuration.load(config, None, None)
    scorer = configuration.scorer_by_name(settings, name)
    predictions = asyncio.run(scored(scorer, [entry.text for entry in population], attribute))
    size = draw(
        population,
        predictions,
        scorer=f"{scorer.name} ({attribute})",
        budget=labels,
        seed=seed,
        out=folder,
    )
    missing = sum(prediction is None for prediction in predictions)
    if json:
        print_json(
            {
                "out": str(folder),
                "texts": len(population),
                "drawn": size,
                "unscored": missing,
            }
        )
        return
    if missing:
        err.print(
            f"{missing:,} of {len(population):,} texts got no score; they are drawn as unsure"
        )
    out.print(Text(f"{size:,} of {len(population):,} texts are in {folder / LABELS}: fill in each "
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
