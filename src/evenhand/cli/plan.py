"""`evenhand plan`: how many items, calls, tokens and how much money an answer needs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.compare import runs_named
from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.errors import UserError
from evenhand.findings import plan as planning
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.designs import Designs, Rates, Texts
from evenhand.findings.designs import designs as side_by_side
from evenhand.findings.ratio_plan import RatioPlan, ratio_plan
from evenhand.findings.ratios import MOST_GROUPS
from evenhand.findings.scoring import Scored
from evenhand.findings.screen_file import read_screen
from evenhand.instruments import instrument_named
from evenhand.views import terminal_of
from evenhand.views.files import plain

_JUDGE_TOKENS = 500.0  # our choice: a prompt of a judge with a text of a few paragraphs


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
        Path | None, typer.Option(help="… what `evenhand screen calibrate` wrote.")
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
    """Plan a paired comparison before anything is spent.

    On BBQ it also says what the samples of the StarDTox and MABRF papers can show. With --groups
    and --ratio it plans an audit instead: how many people of each group of `decisions` (with
    --rate), or how many rankings. With --designs it sets cheaper ways beside the fixed one, in one
    table: calls, tokens, money, hours and what each promises.

    Example: evenhand plan bbq --detect 0.05 --calls 4
    """
    instrument = instrument_named(benchmark)
    result: planning.Plan | RatioPlan | Designs
    of_texts = {"--texts": texts, "--screen": screen, "--harmful": harmful,
                "--correlation": correlation, "--label-price": label_price,
                "--judge-tokens": judge_tokens}  # fmt: skip
    _refuse_idle(of_texts, calls_per_second, designs=designs)
    if groups is not None or rate is not None or ratio is not None:
        result = _of_ratios(instrument, groups, rate, ratio, power)
    else:
        result = planning.plan(
            instrument,
            detect=detect,
            power=power,
            family=family,
            price=planning.Price(calls=calls, tokens=tokens, per_million=price),
            pilot=None if pilot is None else _compared(instrument, *pilot),
            measure=measure,
        )
        if designs:
            judge = planning.Price(tokens=_JUDGE_TOKENS if judge_tokens is None else judge_tokens,
                                   per_million=price)  # fmt: skip
            rates = Rates(judge=judge, label_price=label_price, calls_per_second=calls_per_second)
            result = side_by_side(result, rates, _texts(texts, screen, harmful, correlation))
    if json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result))


def _refuse_idle(of_texts: dict[str, Any], speed: float | None, *, designs: bool) -> None:
    """Refuse an option that would change nothing."""
    names = [name for name, value in of_texts.items() if value is not None]
    if not designs and (names or speed is not None):
        raise UserError(
            f"{', '.join(names) or '--calls-per-second'}: only designs that are set side by side "
            "need it; add --designs"
        )
    if names and of_texts["--texts"] is None:
        raise UserError(f"{', '.join(names)}: say how many texts there are, as --texts 10000")


def _texts(
    count: int | None, screen: Path | None, harmful: float | None, correlation: float | None
) -> Texts | None:
    if count is None:
        return None
    screen_file = None if screen is None else read_screen(screen)
    return Texts(count=count, harmful=harmful, screen=screen_file, correlation=correlation)


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
