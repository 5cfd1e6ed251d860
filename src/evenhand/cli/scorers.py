"""`evenhand scorers …`: what scores texts, what it makes of some, and how far to trust it."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from evenhand import config as configuration
from evenhand import registry
from evenhand.cli.options import ConfigFile, Json
from evenhand.cli.scorer_labels import estimate, sample
from evenhand.cli.scorer_texts import SAMPLE, Texts, gathered, plan
from evenhand.cli.screen import err, out, print_json
from evenhand.cli.support_audit import audit_support
from evenhand.config import Config
from evenhand.errors import UserError
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.instruments.scorer import ToxicitySets
from evenhand.instruments.scorer.audit import ScorerAudits
from evenhand.instruments.scorer.audit import audit as audit_of
from evenhand.instruments.scorer.figures import Column, GivenScores, Tricks
from evenhand.instruments.scorer.scorer_card import write
from evenhand.scorers import Scorer, Scores
from evenhand.scorers.base import TOXICITY, Batched, score_all
from evenhand.scorers.kinds import BUILT_IN, SAYS, said_as
from evenhand.views import terminal_of

scorers = typer.Typer(
    help="Toxicity scorers: list them, score texts, audit them.", no_args_is_help=True
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


@scorers.command()
def audit(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Scorers that `list` shows, or KIND=URL[#MODEL]."),
    ],
    sets: Annotated[
        str | None,
        typer.Option(help="Names of sets with commas. Default: all in English that are at hand."),
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, help="Texts a set; a smaller set is taken whole.")
    ] = SAMPLE,
    threshold: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="From which score on a text counts as toxic.")
    ] = 0.5,
    attribute: Annotated[
        str, typer.Option(help="Which of its scores is held against the labels.")
    ] = TOXICITY,
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", help="A folder for a card per scorer.")
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Where a scorer can be trusted and where not: labels, calibration, identity mentions,
    implicit hate, Unicode tricks, speed, and agreement between several.

    Needs labelled sets: fetched once, or from the folder that EVENHAND_DATA names. Ends with code
    2 if a scorer gave no score to more than 5 % of the texts.

    Example: evenhand scorers audit wordlist --sample 300 --out audit
    """
    settings = configuration.load(config, None, None)
    set_names = sets.split(",") if sets else None
    result = asyncio.run(_audit(settings, names, set_names, sample, threshold, attribute))
    cards = write(result, out_) if out_ is not None else []
    if json:
        print_json(result.to_dict())
    else:
        out.print(terminal_of(result))
        for card in cards:
            out.print(str(card), style="dim")
    _end(min(scorer_audit.figures.coverage.coverage or 0.0 for scorer_audit in result.audits))


def _end(coverage: float) -> None:
    if coverage < COVERAGE_FLOOR:
        raise typer.Exit(2)


async def _audit(
    settings: Config,
    names: Sequence[str],
    sets: Sequence[str] | None,
    sample: int,
    threshold: float,
    attribute: str,
) -> ScorerAudits:
    opened = [configuration.scorer_by_name(settings, name) for name in dict.fromkeys(names)]
    try:
        for scorer in opened:
            if attribute not in scorer.attributes:
                has = ", ".join(scorer.attributes)
                raise UserError(f"{scorer.name} has no score for {attribute!r}, only for: {has}")
        data = configuration.data_folder()
        tables, left_out = gathered(ToxicitySets(local=data.local, cache=data.cache), sets)
        texts = plan(tables, opened, sample)
        scored = [await _columns(scorer, texts, attribute) for scorer in opened]
    finally:
        for scorer in opened:
            await scorer.close()
    return audit_of(
        texts.tables, scored, threshold=threshold, attribute=attribute, left_out=left_out
    )


async def _columns(scorer: Scorer, texts: Texts, attribute: str) -> GivenScores:
    """All texts of an audit through one scorer."""
    seconds = 0.0
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task(escape(scorer.name), total=texts.count)

        async def column(batch: Sequence[str]) -> Column:
            nonlocal seconds
            done = await score_all(scorer, batch, lambda n: progress.advance(bar, n))
            seconds += done.seconds
            return Column(done.values(attribute), done.reasons)

        sets = {name: await column(table["text"].to_list()) for name, table in texts.tables.items()}
        tricks = None
        if texts.toxic:
            tricked = {trick: await column(altered) for trick, altered in texts.tricked().items()}
            tricks = Tricks(await column(texts.toxic), tricked, await column(texts.emoji))
    return GivenScores(
        name=scorer.name,
        described=scorer.describe(),
        attributes=scorer.attributes,
        sets=sets,
        tricks=tricks,
        texts_per_second=texts.count / seconds if seconds else 0.0,
    )
