"""`evenhand plan`: how many items, calls, tokens and how much money an answer needs."""

from typing import Annotated

import typer

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.errors import UserError
from evenhand.report import bbq_plan


def plan(
    benchmark: Annotated[str, typer.Argument(help="The benchmark: bbq.")],
    detect: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="The smallest change of s_amb to detect.")
    ] = 0.05,
    power: Annotated[float, typer.Option(min=0.5, max=0.99, help="The chance to see it.")] = 0.8,
    calls: Annotated[float, typer.Option(help="Calls an item (StarDTox on choices: 2 to 6).")] = 1,
    tokens: Annotated[float, typer.Option(help="Tokens a call, in and out.")] = 220,
    price: Annotated[
        float | None, typer.Option(help="Money for a million tokens, in your currency.")
    ] = None,
    json: Json = False,
) -> None:
    """Plan a paired comparison on BBQ before anything is spent.

    Also says what the samples of the StarDTox and MABRF papers can show.

    Example: evenhand plan bbq --detect 0.05 --calls 4
    """
    if benchmark != "bbq":
        raise UserError(f"there is no benchmark {benchmark!r}; there is: bbq")
    found = bbq_plan.plan(
        detect=detect, power=power, calls=calls, tokens=tokens, price_per_million=price
    )
    if json:
        print_json(found)
    else:
        out.print(bbq_plan.render(found))
