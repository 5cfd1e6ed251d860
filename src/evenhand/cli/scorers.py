"""`evenhand scorers …`: what scores texts, what it makes of some, how far the judge of support is
to be trusted, and a rate from a scorer on all texts and a few labels."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track
from rich.table import Table
from rich.text import Text

from evenhand.cli.options import ConfigFile, Json
from evenhand.cli.screen import err, out, print_finding, print_json, scoring_bar
from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.labelling import LabelSample
from evenhand.experiments.labelling import estimate as estimated
from evenhand.experiments.labelling import sample as draw_labels
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.instruments.bbq.data import BbqData
from evenhand.instruments.scorer.support import audit, claims_of, drawn
from evenhand.scorers import Scorer, Scores
from evenhand.scorers.base import TOXICITY, Batched, score_all
from evenhand.scorers.kinds import BUILT_IN, SAYS, said_as
from evenhand.scorers.support import SupportJudge

_BATCH = 256


def audit_support(
    sample: Annotated[
        int, typer.Option(min=0, help="Questions of each template and condition; 0: all.")
    ] = 4,
    json: Json = False,
) -> None:
    """Where the judge of support can be trusted: AUC on BBQ over templates and by category, and
    what a bound lets pass. It was neither trained on BBQ nor chosen by it.

    Needs BBQ: fetched once, or from the folder that EVENHAND_DATA names. Asks no model.

    Example: evenhand scorers audit-support --sample 1
    """
    data = configuration.data_folder()
    records = BbqData(local=data.local, cache=data.cache).records()
    claim_set = claims_of(drawn(records, sample or None))
    judge, scores = SupportJudge(), list[float]()
    batches = range(0, len(claim_set.claims), _BATCH)
    for start in track(
        batches, judge.name, console=err, transient=True, disable=not err.is_terminal
    ):
        scores += judge.of(claim_set.claims[start : start + _BATCH])
    audited = audit(judge.name, claim_set.known, scores)
    print_finding(audited, json=json)


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
    print_finding(result, json=json)


scorers = typer.Typer(
    help="List, run, check and combine toxicity scorers.\n\nTo audit one: evenhand audit scorer.",
    no_args_is_help=True,
)
scorers.command("audit-support")(audit_support)
scorers.command("sample")(sample)
scorers.command("estimate")(estimate)

_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A scorer that `list` shows, or KIND=URL[#MODEL].")
]


@scorers.command("list")
def list_(config: ConfigFile = None, json: Json = False) -> None:
    """The built-in scorers, those of the config file, and those that other packages bring.

    Example: evenhand scorers list
    """
    settings = configuration.load(config, None, None)
    rows = [{"name": name, "kind": "built in", "says": SAYS[name]} for name in BUILT_IN]
    rows += [{"name": name, "kind": entry.kind} for name, entry in settings.scorers.items()]
    rows += _of_other_packages()
    if json:
        print_json(rows)
        return
    table = Table("scorer", "kind", "what it says", box=None)
    for row in rows:
        table.add_row(row["name"], row["kind"], row.get("says", ""))
    out.print(table)


def _of_other_packages() -> Iterator[dict[str, str]]:
    for name in registry.names("scorers"):
        if distribution := registry.distribution_of("scorers", name):
            try:
                yield {"name": said_as(name), "kind": f"from {' '.join(distribution)}"}
            except UserError as problem:  # with this one; the others are listed all the same
                yield {"name": name, "kind": str(problem)}


@scorers.command()
def score(
    name: _Name,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="Texts; without any, the lines of stdin."),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Score texts. Ends with code 2 if fewer than 95 % got a score.

    Example: evenhand scorers score wordlist "You are no idiot."
    """
    inputs = texts or [line for line in sys.stdin.read().splitlines() if line.strip()]
    if not inputs:
        raise UserError("no texts: give some behind the scorer's name, or on stdin")
    settings = configuration.load(config, None, None)
    scored = asyncio.run(_score(configuration.scorer_by_name(settings, name), inputs))
    if json:
        print_json(
            [_said(text, outcome) for text, outcome in zip(inputs, scored.outcomes, strict=True)]
        )
    else:
        out.print(_scores(inputs, scored))
    missing = sum(scored.reasons.values())
    if missing:
        err.print(f"{missing} of {len(inputs)} without a score: {scored.reasons}")
    _end(1 - missing / len(inputs))


async def _score(scorer: Scorer, texts: Sequence[str]) -> Batched:
    try:
        return await score_all(scorer, texts)
    finally:
        await scorer.close()


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


def _end(coverage: float) -> None:
    if coverage < COVERAGE_FLOOR:
        raise typer.Exit(2)
