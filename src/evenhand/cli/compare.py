"""`evenhand compare`: two runs over the same items, side by side, or several of each side."""

from typing import Annotated

import typer

from evenhand.cli.codes import UNFINISHED
from evenhand.cli.options import Full, Json
from evenhand.cli.screen import out, print_json
from evenhand.findings.comparison import compare as compared
from evenhand.instruments import instrument_of, same_instrument
from evenhand.instruments.likelihood_sets import compare_sets, runs_at
from evenhand.runs.store import RunReader
from evenhand.views import terminal_of
from evenhand.views.files import plain


def runs_named(text: str) -> list[RunReader]:
    """Open one run, or several that are named with commas between."""
    return [RunReader(name.strip()) for name in text.split(",") if name.strip()]


def compare(
    before: Annotated[
        str, typer.Argument(metavar="RUN_A", help="The run to compare with; several with commas.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="RUN_B", help="The run that is judged; several with commas.")
    ],
    full: Full = False,
    json: Json = False,
) -> None:
    """Compare two runs on the items they share.

    It says what is shown to be better, what worse, and what is not shown. Of several runs of
    one system (A1,A2,A3 B1,B2,B3) each item counts with its mean over them. Ends with code 2 if a
    run is not finished.

    Example: evenhand compare runs/bbq-default runs/bbq-stardtox
    """
    # A folder may hold the runs of several likelihood sets.
    sets = {} if "," in f"{before}{after}" else runs_at(after)
    if sets:
        comparisons = compare_sets(runs_at(before), sets)
    else:
        runs = runs_named(before), runs_named(after)
        for run in (*runs[0], *runs[1]):
            same_instrument(runs[0][0], run)
        comparisons = [compared(instrument_of(runs[1][0]), *runs)]
    if json:
        several = [plain(comparison.to_dict()) for comparison in comparisons]
        print_json(several[0] if len(several) == 1 else {"sets": several})
    else:
        for comparison in comparisons:
            out.print(terminal_of(comparison, full=full))
    if any(left for comparison in comparisons for left in comparison.not_run):
        raise typer.Exit(UNFINISHED)
