"""`evenhand reliability`: how much of a score is the order, the wording or the seed."""

from typing import Annotated

import typer

from evenhand.cli.options import Full, Json
from evenhand.cli.screen import out, print_json
from evenhand.findings.reliability import reliability as studied
from evenhand.instruments import instrument_of
from evenhand.runs.store import RunReader
from evenhand.views import terminal_of
from evenhand.views.files import plain


def reliability(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN…", help="Runs over the same items, of one system or several."),
    ],
    full: Full = False,
    json: Json = False,
) -> None:
    """Say how much of a score is the order, the wording or the seed.

    Takes runs over the same items that differ in --order-seed, --wording N or --seed, best in
    every combination. Of several systems it says which are told apart, two by two, and only where
    the dependability is shown to be 0.5 or more.

    Example: evenhand reliability runs/order0 runs/order1 runs/order2
    """
    readers = [RunReader(run) for run in runs]
    result = studied(instrument_of(readers[0]), readers)
    if json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result, full=full))
