"""`evenhand compare`: two runs over the same items, side by side."""

from typing import Annotated

import typer

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.report import bbq_compare
from evenhand.store import RunReader


def compare(
    before: Annotated[str, typer.Argument(metavar="RUN_A", help="The run to compare with.")],
    after: Annotated[str, typer.Argument(metavar="RUN_B", help="The run that is judged.")],
    json: Json = False,
) -> None:
    """Compare two runs on the items they share: regressions first, then the primary endpoints.

    Example: evenhand compare runs/bbq-default runs/bbq-stardtox
    """
    found = bbq_compare.compare(RunReader(before), RunReader(after))
    if json:
        print_json(found)
    else:
        out.print(bbq_compare.render(found))
