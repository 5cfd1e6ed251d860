"""The options that say which items of a benchmark are asked."""

from enum import StrEnum
from typing import Annotated

import typer

from evenhand.errors import UserError


class Preset(StrEnum):
    TEMPLATES = "templates"
    ALL = "all"
    STARDTOX = "stardtox"
    MABRF = "mabrf"


PresetName = Annotated[
    Preset,
    typer.Option(
        "--preset",
        help="templates: a block of each of the 343 (1,372 items); all: 58,492; "
        "stardtox: 100 x 11 at random; mabrf: that paper's 110.",
    ),
]
PerCategory = Annotated[
    int | None, typer.Option(min=4, help="So many items of each category, in whole blocks.")
]
SampleSeed = Annotated[int, typer.Option(help="Draws the sample and the option order.")]
DrawSeed = Annotated[int, typer.Option("--sample-seed", help="Draws the sample.")]


def require_bbq(benchmark: str) -> None:
    if benchmark != "bbq":
        raise UserError(f"there is no benchmark {benchmark!r}; there is: bbq")
