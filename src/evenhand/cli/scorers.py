"""`evenhand scorers …`: what scores texts, and what it makes of some."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from evenhand.cli.options import ConfigFile, Json
from evenhand.cli.scorer_labels import estimate, sample
from evenhand.cli.screen import err, out, print_json
from evenhand.cli.support_audit import audit_support
from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.scorers import Scorer, Scores
from evenhand.scorers.base import Batched, score_all
from evenhand.scorers.kinds import BUILT_IN, SAYS, said_as

scorers = typer.Typer(
    help="Toxicity scorers: list them, score texts. To audit one: evenhand audit scorer.",
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
