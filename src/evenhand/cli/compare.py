"""`evenhand compare`: two runs over the same items, side by side."""

from typing import Annotated

import typer

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.findings import comparison as findings
from evenhand.instruments.realtoxicityprompts.instrument import RealToxicityPrompts
from evenhand.report import bbq_compare, likelihood_compare, squad_compare
from evenhand.store import RunReader
from evenhand.store.likelihood import LikelihoodRun
from evenhand.views import terminal_of
from evenhand.views.files import plain

_BY_BENCHMARK = {"squad": squad_compare}
_INSTRUMENTS = {"rtp": RealToxicityPrompts()}


def compare(
    before: Annotated[str, typer.Argument(metavar="RUN_A", help="The run to compare with.")],
    after: Annotated[str, typer.Argument(metavar="RUN_B", help="The run that is judged.")],
    json: Json = False,
) -> None:
    """Compare two runs on the items they share: regressions first, then the primary endpoints.

    Example: evenhand compare runs/bbq-default runs/bbq-stardtox
    """
    if LikelihoodRun.is_at(after):
        changed = likelihood_compare.compare(LikelihoodRun(before), LikelihoodRun(after))
        if json:
            print_json(changed)
        else:
            out.print(likelihood_compare.render(changed))
        return
    runs = RunReader(before), RunReader(after)
    instrument = _INSTRUMENTS.get(runs[1].record.source.get("benchmark", ""))
    if instrument is not None:
        change = findings.compare(instrument, *runs)
        if json:
            print_json(plain(change.to_dict()))
        else:
            out.print(terminal_of(change))
        return
    # Of any other kind of run, and of two kinds, the one of BBQ says what is wrong.
    comparison = _BY_BENCHMARK.get(runs[1].record.source.get("benchmark", ""), bbq_compare)
    found = comparison.compare(*runs)
    if json:
        print_json(found)
    else:
        out.print(comparison.render(found))
