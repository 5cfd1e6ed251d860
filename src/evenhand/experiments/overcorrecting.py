"""Several methods on benign texts, and what each spoils."""

import asyncio
from collections.abc import Sequence

from evenhand.core.errors import UserError
from evenhand.experiments.running import RunEnd
from evenhand.experiments.sweep import MethodSeries, SweepMethod
from evenhand.findings.sweep import Sweep, outcomes, sweep
from evenhand.instruments.overcorrection.instrument import refuse_what_repairs_no_text
from evenhand.methods import Method
from evenhand.methods.build import build_method
from evenhand.runs.store.folder import open_folder
from evenhand.views.files import to_json, to_parquet

FILES = ("overcorrection.json", "overcorrection.parquet")
_REFERENCE = "default"  # the model as it is: what it spoils without any method


def methods_of(methods: Sequence[Method | str]) -> list[SweepMethod]:
    """List methods under the names by which they were asked for.

    Args:
        methods: Names, with settings after a colon, joined by a plus; or objects.

    Returns:
        The methods, each once.

    Raises:
        UserError: If there is none, or one does not repair texts.
    """
    if not methods:
        raise UserError("--method names no method")
    listed = [_listed(method) for method in methods]
    for entry in listed:
        refuse_what_repairs_no_text(entry.method)
    return list({entry.name: entry for entry in listed}.values())


def _listed(method: Method | str) -> SweepMethod:
    if not isinstance(method, str):
        return SweepMethod(name=method.name, method=method)
    name, _, rest = method.partition(":")
    return SweepMethod(name=method, method=build_method(name, rest.split("+") if rest else []))


async def run_overcorrection(
    series: MethodSeries, chosen: Sequence[SweepMethod]
) -> tuple[RunEnd, Sweep | None]:
    """Run the methods and count the texts that each made worse; write the files of it.

    Args:
        series: The request and the measurement, for all methods.
        chosen: The methods.

    Returns:
        How the runs ended, and what was found: nothing where they ended early.
    """
    try:
        ended = await series.run(chosen)
        if ended.early:
            return ended, None
        return ended, await asyncio.to_thread(_counted, series, chosen)
    finally:
        await series.measurement.services.close()


def _counted(series: MethodSeries, chosen: Sequence[SweepMethod]) -> Sweep:
    instrument, settings = series.measurement.instrument, series.request.settings
    runs = series.runs(chosen)
    result = sweep(instrument, runs, _REFERENCE, settings.prices)
    folder, (summary, rows) = open_folder(settings.out), FILES
    folder.replace(summary, to_json(result))
    folder.replace(rows, to_parquet(outcomes(instrument, runs)))
    return result
