"""`evenhand compare`: two runs over the same items, side by side."""

from typing import Annotated

import typer

from evenhand.cli.options import UNFINISHED, Full, Json
from evenhand.cli.screen import out, print_json
from evenhand.findings.comparison import compare as compared
from evenhand.instruments import instrument_of, same_instrument
from evenhand.instruments.likelihood_sets import compare_sets, runs_at
from evenhand.store import RunReader
from evenhand.views import terminal_of
from evenhand.views.files import plain


def compare(
    before: Annotated[str, typer.Argument(metavar="RUN_A", help="The run to compare with.")],
    after: Annotated[str, typer.Argument(metavar="RUN_B", help="The run that is judged.")],
    full: Full = False,
    json: Json = False,
) -> None:
    """Compare two runs on the items they share.

    It says what is shown to be better, what worse, and what could be either way. Ends with code 2
    if a run is not finished.

    Example: evenhand compare runs/bbq-default runs/bbq-stardtox
    """
    sets = runs_at(after)  # a folder may hold the runs of several likelihood sets
    if sets:
        found = compare_sets(runs_at(before), sets)
    else:
        runs = RunReader(before), RunReader(after)
        same_instrument(*runs)
        found = [compared(instrument_of(runs[1]), *runs)]
    if json:
        several = [plain(one.to_dict()) for one in found]
        print_json(several[0] if len(several) == 1 else {"sets": several})
    else:
        for one in found:
            out.print(terminal_of(one, full=full))
    if any(left for one in found for left in one.not_run):
        raise typer.Exit(UNFINISHED)
