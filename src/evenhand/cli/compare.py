"""`evenhand compare`: two runs over the same items, side by side."""

from typing import Annotated

import typer

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.instruments.likelihood_sets import compare_sets, runs_at
from evenhand.report import bbq_compare, rtp_compare, squad_compare
from evenhand.store import RunReader
from evenhand.views import terminal_of
from evenhand.views.files import plain

_BY_BENCHMARK = {"rtp": rtp_compare, "squad": squad_compare}


def compare(
    before: Annotated[str, typer.Argument(metavar="RUN_A", help="The run to compare with.")],
    after: Annotated[str, typer.Argument(metavar="RUN_B", help="The run that is judged.")],
    json: Json = False,
) -> None:
    """Compare two runs on the items they share: regressions first, then the primary endpoints.

    Example: evenhand compare runs/bbq-default runs/bbq-stardtox
    """
    if sets := runs_at(after):
        found = compare_sets(runs_at(before), sets)
        if json:
            several = [plain(one.to_dict()) for one in found]
            print_json(several[0] if len(found) == 1 else {"sets": several})
        else:
            for one in found:
                out.print(terminal_of(one), "")
        return
    runs = RunReader(before), RunReader(after)
    # Of any other kind of run, and of two kinds, the one of BBQ says what is wrong.
    comparison = _BY_BENCHMARK.get(runs[1].record.source.get("benchmark", ""), bbq_compare)
    changed = comparison.compare(*runs)
    if json:
        print_json(changed)
    else:
        out.print(comparison.render(changed))
