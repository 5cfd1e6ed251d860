"""`evenhand plan`: how many items, calls, tokens and how much money an answer needs."""

from typing import Annotated

import typer

from evenhand.cli.compare import runs_named
from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.errors import UserError
from evenhand.findings import plan as planning
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.ratio_plan import RatioPlan, ratio_plan
from evenhand.findings.ratios import MOST_GROUPS
from evenhand.findings.scored import Scored
from evenhand.instruments import instrument_named
from evenhand.views import terminal_of
from evenhand.views.files import plain


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
        float | None, typer.Option(help="Money for a million tokens, in your currency.")
    ] = None,
    json: Json = False,
) -> None:
    """Plan a paired comparison before anything is spent.

    On BBQ it also says what the samples of the StarDTox and MABRF papers can show. With --groups
    and --ratio it plans an audit instead: how many people of each group of `decisions` (with
    --rate), or how many rankings.

    Example: evenhand plan bbq --detect 0.05 --calls 4
    """
    instrument = instrument_named(benchmark)
    found: planning.Plan | RatioPlan
    if groups is not None or rate is not None or ratio is not None:
        found = _of_ratios(instrument, groups, rate, ratio, power)
    else:
        found = planning.plan(
            instrument,
            detect=detect,
            power=power,
            family=family,
            price=planning.Price(calls=calls, tokens=tokens, per_million=price),
            pilot=None if pilot is None else _compared(instrument, *pilot),
            measure=measure,
        )
    if json:
        print_json(plain(found.to_dict()))
    else:
        out.print(terminal_of(found))


def _of_ratios(
    instrument: Scored, groups: int | None, rate: float | None, ratio: float | None, power: float
) -> RatioPlan:
    if groups is None or ratio is None:
        raise UserError(
            "an audit of ratios is planned with --groups and --ratio: evenhand plan decisions "
            "--groups 14 --rate 0.3 --ratio 0.8"
        )
    return ratio_plan(instrument, groups=groups, ratio=ratio, rate=rate, power=power)


def _compared(instrument: Scored, before: str, after: str) -> Comparison:
    if before == after:
        raise UserError("--from takes two runs: one of each method that is to be compared")
    return compare(instrument, runs_named(before), runs_named(after))
