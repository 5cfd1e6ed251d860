"""`evenhand plan`: how many items, calls, tokens and how much money an answer needs."""

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.options import Json, names_in
from evenhand.cli.screen import print_finding
from evenhand.experiments.planning import DesignQuestion, PlanRequest, RatioQuestion, planned
from evenhand.findings.plan import ItemPrice
from evenhand.findings.ratios import MOST_GROUPS
from evenhand.instruments import instrument_named


def plan(
    benchmark: Annotated[str, typer.Argument(help="The benchmark, such as bbq.")],
    detect: Annotated[
        float | None,
        typer.Option(help="The smallest change to detect. Default: what matters there, 0.05."),
    ] = None,
    power: Annotated[float, typer.Option(min=0.5, max=0.99, help="The chance to see it.")] = 0.8,
    family: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many changes will be looked at at once. Default: as many as `compare` "
            "judges, 3 on BBQ; for a frontier, twice its methods.",
        ),
    ] = None,
    pilot: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--from",
            metavar="RUN_A RUN_B",
            help="Two pilot runs: how much a change varies is taken from them.",
        ),
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="The measure whose change is to be seen, with --from.")
    ] = None,
    groups: Annotated[
        int | None,
        typer.Option(min=2, max=MOST_GROUPS, help="Of an audit of ratios: so many equal groups."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="… the share selected of those who are not behind.")
    ] = None,
    ratio: Annotated[
        float | None, typer.Option(help="… the true ratio of one group, to be shown.")
    ] = None,
    calls: Annotated[float, typer.Option(help="Calls an item (StarDTox on choices: 2 to 6).")] = 1,
    tokens: Annotated[float, typer.Option(help="Tokens a call, in and out.")] = 220,
    price: Annotated[
        float | None, typer.Option(min=0.0, help="Money for a million tokens, in your currency.")
    ] = None,
    batch: Annotated[
        bool, typer.Option(help="The runs are made with --batch: half of --price.")
    ] = False,
    designs: Annotated[
        bool,
        typer.Option(
            "--designs",
            help="Set designs side by side: fixed, sequential, screened, labels with predictions.",
        ),
    ] = False,
    texts: Annotated[
        int | None, typer.Option(min=1, help="With --designs: so many texts of your own.")
    ] = None,
    screen: Annotated[
        Path | None, typer.Option(help="… what `evenhand scorers screen calibrate` wrote.")
    ] = None,
    harmful: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="… which share of them is harmful.")
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(min=-1.0, max=1.0, help="… of a scorer's numbers with the labels."),
    ] = None,
    label_price: Annotated[
        float | None,
        typer.Option(min=0.0, help="… money for a label by people. Default: the judge labels."),
    ] = None,
    judge_tokens: Annotated[
        float | None,
        typer.Option(min=0.0, help="… tokens a call of the judge, in and out. Default: 500."),
    ] = None,
    calls_per_second: Annotated[
        float | None, typer.Option(min=1e-6, help="… how fast calls are answered, for the hours.")
    ] = None,
    json: Json = False,
) -> None:
    """Estimate the required sample size, power and cost.

    On BBQ it also says what the samples of the StarDTox and MABRF papers can show. With --groups
    and --ratio it plans an audit instead: how many people of each group of `decisions` (with
    --rate), or how many rankings. With --designs it sets cheaper ways beside the fixed one, in one
    table: calls, tokens, money, hours and what each promises.

    Example: evenhand plan bbq --detect 0.05 --calls 4
    """
    request = PlanRequest(
        detect=detect,
        power=power,
        family=family,
        pilot=None if pilot is None else (names_in(pilot[0]), names_in(pilot[1])),
        measure=measure,
        price=ItemPrice(calls=calls, tokens=tokens, per_million=price, batched=batch),
        ratios=RatioQuestion(groups=groups, rate=rate, ratio=ratio),
        designs=designs,
        texts=DesignQuestion(
            texts=texts,
            screen=screen,
            harmful=harmful,
            correlation=correlation,
            label_price=label_price,
            judge_tokens=judge_tokens,
            calls_per_second=calls_per_second,
        ),
    )
    result = planned(instrument_named(benchmark), request)
    print_finding(result, json=json)
