"""What a pilot shows at its end: the forecast, and the command that goes on from it."""

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace

from evenhand.cli.execution import RunEnd, end
from evenhand.cli.screen import out, print_json
from evenhand.core.errors import UserError
from evenhand.experiments.settings import RunSettings
from evenhand.findings.forecast import COST, Forecast, forecast
from evenhand.runs.store import RunReader
from evenhand.views import terminal_of


def show_forecast(settings: RunSettings, ended: RunEnd, *, json: bool) -> None:
    """Print it, and leave with the code of a run that was stopped or capped."""
    try:
        expected = forecast(RunReader(settings.out), ended.pilot or (), settings.prices)
    except UserError:
        end(ended, below_floor=False)  # if it was stopped, that is why
        raise
    expected = replace(
        expected,
        concurrency=settings.concurrency,
        limits=ended.limits,
        next=_next_command(settings, expected),
    )
    if json:
        print_json(expected.to_dict())
    else:
        out.print(terminal_of(expected))
    end(ended, below_floor=False)


def _next_command(settings: RunSettings, expected: Forecast) -> str:
    """What was typed, without the pilot; with a cap where there is a price and none was set."""
    typed = _without_pilot(sys.argv[1:])
    cost = expected.totals.get(COST)
    most = cost.high if cost is not None else None
    if most and settings.max_cost is None:
        typed += ["--max-cost", f"{two_digits_up(most):g}"]
    return shlex.join(["evenhand", *typed])


def _without_pilot(words: Sequence[str]) -> list[str]:
    """The words of a command less `--pilot N` or `--pilot=N`."""
    return [
        word
        for before, word in zip(("", *words), words, strict=False)
        if before != "--pilot" and word.partition("=")[0] != "--pilot"
    ]


def two_digits_up(amount: float) -> float:
    """Rounded up: a cap below the forecast's upper end would stop the run for nothing."""
    unit = 10.0 ** (math.floor(math.log10(amount)) - 1)
    return math.ceil(amount / unit) * unit
