"""The options that say which items of a benchmark are asked."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.instruments._contract import Instrument
from evenhand.runs.runners.source import Source


class BbqPreset(StrEnum):
    TEMPLATES = "templates"
    ALL = "all"
    STARDTOX = "stardtox"
    MABRF = "mabrf"


PresetName = Annotated[
    BbqPreset | None,
    typer.Option(
        "--preset",
        help="templates: an aligned and a non-aligned block of each of the 343 (2,728 items); "
        "all: 58,492; "
        "stardtox: 100 x 11 at random; mabrf: that paper's 110.",
    ),
]
PerCategory = Annotated[
    int | None, typer.Option(min=4, help="So many items of each category, in whole blocks.")
]
SampleSeed = Annotated[int | None, typer.Option(help="Draws the sample and the option order.")]
DrawSeed = Annotated[int, typer.Option("--sample-seed", help="Draws the sample.")]


Sample = Annotated[
    list[str] | None,
    typer.Option(
        "--sample",
        help="An option of the benchmark as NAME=VALUE, such as questions=50; repeat it.",
    ),
]


def sampled(
    instrument: Instrument, assignments: Sequence[str], requested: Mapping[str, Any]
) -> tuple[Source, Any]:
    """The items that an instrument draws with these options, and the options themselves."""
    values = {name: value for name, value in requested.items() if value is not None}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--sample {assignment}: write it as NAME=VALUE")
        values[name.strip()] = value.strip()
    options = instrument.options_from(values)
    return instrument.source(configuration.data_folder(), options), options
