"""`evenhand train pairs …`: preference pairs from debates, repairs and written items."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.api.preference_data import (
    train_pairs_from_debates,
    train_pairs_from_items,
    train_pairs_from_run,
)
from evenhand.cli.options import Json
from evenhand.cli.screen import err, print_finding
from evenhand.training.debates.dataset import UNKNOWN_LICENSE
from evenhand.training.debates.pairs import Openers, PairsReport, Strategy

pairs = typer.Typer(
    help="Build preference pairs from debates, repairs or datasets.",
    no_args_is_help=True,
)


Out = Annotated[Path, typer.Option("--out", "-o", help="Write the dataset into this new folder.")]
Runs = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Read these run folders: paths or URLs.")
]
TestShare = Annotated[
    float, typer.Option(min=0.0, max=0.9, help="Hold out this share of the topics.")
]
MatchLengths = Annotated[
    bool,
    typer.Option("--match-lengths", help="Drop pairs until length does not predict the choice."),
]
PerTopic = Annotated[
    int | None, typer.Option(min=1, help="Limit the pairs per topic. Default: all.")
]
TrainPairs = Annotated[
    int | None,
    typer.Option(
        min=1, help="Limit the training pairs, taking topics in turn. Held-out pairs stay."
    ),
]
DrawSeed = Annotated[
    int, typer.Option("--seed", help="Set the random seed for the split and the sample of pairs.")
]
License = Annotated[
    str,
    typer.Option(
        help="Set the license in the data card: the terms of the model that wrote the texts."
    ),
]


@pairs.command("from-debates", no_args_is_help=True)
def from_debates(
    runs: Runs,
    out_: Out,
    strategy: Annotated[
        Strategy, typer.Option(help="Choose what the two statements of a pair share.")
    ] = "same_topic",
    threshold: Annotated[
        float,
        typer.Option(
            min=0, max=10, help="Treat scores above this threshold as high, others as low."
        ),
    ] = 3.0,
    min_gap: Annotated[
        float, typer.Option(min=0, max=10, help="Require at least this gap between the two scores.")
    ] = 0.0,
    per_topic: Annotated[int, typer.Option(min=1, help="Limit the pairs per topic.")] = 10,
    openers: Annotated[
        Openers,
        typer.Option(
            help="Remove persona prefixes like “As a 60-year-old, …”, leave them, or "
            "drop such statements."
        ),
    ] = "strip",
    match_lengths: MatchLengths = False,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Use only this many first rounds of each debate.")
    ] = None,
    topics: Annotated[
        int | None, typer.Option(min=1, help="Use only this many first topics of each bias type.")
    ] = None,
    train_pairs: TrainPairs = None,
    test_share: TestShare = 0.1,
    seed: DrawSeed = 0,
    license: License = UNKNOWN_LICENSE,
    json: Json = False,
) -> None:
    """Pair the statements of debates: the less biased one is chosen.

    Example: evenhand train pairs from-debates runs/debate --out data/pairs
    """
    paired = train_pairs_from_debates(
        runs,
        out_,
        strategy=strategy,
        threshold=threshold,
        min_gap=min_gap,
        per_topic=per_topic,
        openers=openers,
        match_lengths=match_lengths,
        rounds=rounds,
        topics=topics,
        train_pairs=train_pairs,
        test_share=test_share,
        seed=seed,
        license=license,
        note=_note,
    )
    _show(paired, out_, json=json)


@pairs.command("from-run", no_args_is_help=True)
def from_run(
    runs: Runs,
    out_: Out,
    keep: Annotated[
        bool,
        typer.Option(
            help="Also choose answers accepted at once over “unknown”, as often as repairs choose "
            "“unknown”."
        ),
    ] = True,
    per_topic: PerTopic = None,
    match_lengths: MatchLengths = False,
    test_share: TestShare = 0.1,
    seed: DrawSeed = 0,
    license: License = UNKNOWN_LICENSE,
    json: Json = False,
) -> None:
    """Pair what stardtox or mabrf refused with what they accepted instead.

    Example: evenhand train pairs from-run runs/first --out data/repairs
    """
    paired = train_pairs_from_run(
        runs, out_, keep=keep, per_topic=per_topic, match_lengths=match_lengths,
        test_share=test_share, seed=seed, license=license, note=_note,
    )  # fmt: skip
    _show(paired, out_, json=json)


@pairs.command("from-items", no_args_is_help=True)
def from_items(
    file: Annotated[
        Path, typer.Argument(help="Read items with a blank from this .csv or .csv.gz file.")
    ],
    out_: Out,
    per_topic: PerTopic = None,
    match_lengths: MatchLengths = False,
    test_share: TestShare = 0.1,
    seed: DrawSeed = 0,
    license: License = UNKNOWN_LICENSE,
    json: Json = False,
) -> None:
    """Pair sentences filled with a stereotype with the same sentences filled otherwise.

    The file needs the columns bias_type, context (with BLANK), stereotype, anti_stereotype and
    unrelated, as in the subtler_biases dataset.

    Example: evenhand train pairs from-items dataset.csv.gz --out data/items
    """
    paired = train_pairs_from_items(
        file, out_, per_topic=per_topic, match_lengths=match_lengths, test_share=test_share,
        seed=seed, license=license, note=_note,
    )  # fmt: skip
    _show(paired, out_, json=json)


def _note(text: str) -> None:
    err.print(text, style="dim", soft_wrap=True)


def _show(paired: Coroutine[Any, Any, PairsReport], folder: Path, *, json: bool) -> None:
    files = f"{folder}: README.md, pairs.json, parquet files"
    print_finding(asyncio.run(paired), json=json, written=files)
