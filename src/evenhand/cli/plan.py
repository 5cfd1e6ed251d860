"""`evenhand plan`: the items, calls, tokens and money that a result needs."""

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
    benchmark: Annotated[str, typer.Argument(help="Plan for this benchmark, such as bbq.")],
    detect: Annotated[
        float | None,
        typer.Option(
            help="Set the minimum detectable effect. Default: the smallest relevant change, 0.05."
        ),
    ] = None,
    power: Annotated[
        float, typer.Option(min=0.5, max=0.99, help="Set the statistical power.")
    ] = 0.8,
    family: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Set the number of simultaneous tests. Default: the number of `compare`, 3 on "
            "BBQ. For a frontier, set twice the number of methods.",
        ),
    ] = None,
    pilot: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--from",
            metavar="RUN_A RUN_B",
            help="Estimate the variance of a change from these two pilot runs.",
        ),
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="With --from: plan for a change of this metric.")
    ] = None,
    groups: Annotated[
        int | None,
        typer.Option(
            min=2, max=MOST_GROUPS, help="Plan an adverse-impact audit of this many equal groups."
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="With --groups: set the selection rate of the reference groups."),
    ] = None,
    ratio: Annotated[
        float | None, typer.Option(help="With --groups: detect this true impact ratio of a group.")
    ] = None,
    calls: Annotated[
        float, typer.Option(help="Set the calls per item (StarDTox on choices: 2 to 6).")
    ] = 1,
    tokens: Annotated[float, typer.Option(help="Set the tokens per call, in and out.")] = 220,
    price: Annotated[
        float | None,
        typer.Option(min=0.0, help="Set the price per million tokens, in your currency."),
    ] = None,
    batch: Annotated[
        bool, typer.Option(help="Assume runs with --batch, at half of --price.")
    ] = False,
    designs: Annotated[
        bool,
        typer.Option(
            "--designs",
            help="Compare designs: fixed, sequential, two-stage screening, prediction-powered.",
        ),
    ] = False,
    texts: Annotated[
        int | None, typer.Option(min=1, help="With --designs: set the number of your texts.")
    ] = None,
    screen: Annotated[
        Path | None,
        typer.Option(
            help="With --designs: read the output of `evenhand scorers screen calibrate`."
        ),
    ] = None,
    harmful: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="With --designs: set the share of harmful texts."),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            min=-1.0, max=1.0, help="With --designs: set the correlation of scores and labels."
        ),
    ] = None,
    label_price: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="With --designs: set the price per human label. Default: the judge labels.",
        ),
    ] = None,
    judge_tokens: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="With --designs: set the tokens per judge call, in and out. Default: 500."
        ),
    ] = None,
    calls_per_second: Annotated[
        float | None,
        typer.Option(min=1e-6, help="With --designs: set the call rate, to estimate the hours."),
    ] = None,
    json: Json = False,
) -> None:
    """Estimate the required sample size, power and cost.

    On BBQ, the command also estimates what the samples of the StarDTox and MABRF papers can detect.
    With --groups and --ratio, it plans an audit instead: the people per group of `decisions` (with
    --rate), or the number of rankings. With --designs, a table compares cheaper designs with the
    fixed design: calls, tokens, money, hours and guarantees.

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
