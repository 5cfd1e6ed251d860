"""`evenhand compare`: two runs over the same items, side by side."""

from typing import Annotated

import typer

from evenhand.cli.options import Full, Json
from evenhand.cli.screen import out, print_json
from evenhand.findings.comparison import compare as compared
from evenhand.instruments import instrument_of, same_instrument
from evenhand.store import RunReader
from evenhand.views import terminal_of
from evenhand.views.files import plain


def compare(
    before: Annotated[str, typer.Argument(metavar="RUN_A", help="The run to compare with.")],
    after: Annotated[str, typer.Argument(metavar="RUN_B", help="The run that is judged.")],
    full: Full = False,
    json: Json = False,
) -> None:
    """Compare two runs on the items they share: what is shown better, worse, or neither.

    Example: evenhand compare runs/bbq-default runs/bbq-stardtox
    """
    runs = RunReader(before), RunReader(after)
    same_instrument(*runs)
    found = compared(instrument_of(runs[1]), *runs)
    if json:
        print_json(plain(found.to_dict()))
    else:
        out.print(terminal_of(found, full=full))
