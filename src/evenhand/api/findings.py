"""Read runs that were made: compare them, look how reliable they are, report them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from evenhand.api import inputs
from evenhand.api.inputs import Given
from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.experiments.dossiers import dossier_of
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.comparison import Comparison
from evenhand.findings.reliability import Reliability
from evenhand.findings.reliability import reliability as reliability_of
from evenhand.findings.run import Run
from evenhand.instruments import Instrument, instrument_of
from evenhand.runs.store import RunReader


async def compare(
    before: Given | Sequence[Given],
    after: Given | Sequence[Given],
    *,
    instrument: Instrument | None = None,
) -> Comparison:
    """Compare two runs on the items that they share.

    Args:
        before: A path, URL, run or report. A list is several runs of one system, of which each
            item counts with its mean.
        after: The other side, in the same forms.
        instrument: The instrument of the runs, where it is not installed as a package and no
            report has it.

    Returns:
        The comparison: each measure improved, regressed, or inconclusive.

    Raises:
        UserError: If the runs are of different instruments or share no item.

    Example:
        >>> diff = evenhand.compare("runs/before", "runs/after")
        >>> diff.verdict, diff.guardrails, diff.frame()
    """
    return await asyncio.to_thread(inputs.compared, before, after, instrument)


async def stability(runs: Sequence[Given], *, instrument: Instrument | None = None) -> Reliability:
    """Estimate how much of a score is due to the order, the wording or the seed.

    Args:
        runs: Two or more runs over the same items, as paths, URLs, runs or reports.
        instrument: The instrument of the runs, where it is not installed as a package.

    Returns:
        The reliability of each measure.

    Raises:
        UserError: If there are fewer than two runs, or they are of other items.

    Example:
        >>> evenhand.stability(["runs/order0", "runs/order1", "runs/order2"])["s_amb"].one_run
    """

    def studied() -> Reliability:
        readers = [inputs.reader_of(run) for run in runs]
        if not readers:
            raise UserError(
                "`stability` compares runs. Pass a list of two or more over the same items."
            )
        return reliability_of(instrument or instrument_of(readers[0]), readers)

    return await asyncio.to_thread(studied)


async def report(
    *runs: Given,
    title: str | None = None,
    prices: Prices | str | Path | None = None,
    certificates: str | Path | None = None,
) -> CombinedReport:
    """Collect what several runs showed in one report.

    Args:
        *runs: Paths, URLs, runs or reports. The first of an instrument is what the others are
            compared with, where they have the same items. Audits of judges may be among them.
        title: Title of the report.
        prices: Price table or a TOML file of one.
        certificates: Folder to look for judges' certificates in.

    Returns:
        The report, to be saved as HTML, PDF, Markdown or JSON.

    Raises:
        UserError: If a run cannot be read.

    Example:
        >>> evenhand.report("runs/before", "runs/after").save("report.html")
    """

    def collected() -> CombinedReport:
        opened = [
            (run, inputs.instrument_in(entry)) for entry in runs for run in inputs.readers_of(entry)
        ]
        return dossier_of(
            opened,
            title=title,
            prices=inputs.prices_of(prices),
            certificates=inputs.path_of(certificates),
        )

    return await asyncio.to_thread(collected)


async def open_run(path: str | Path) -> Run:
    """Open a run folder: its results, its model calls, and its report.

    Args:
        path: Path or URL of the run folder.

    Returns:
        The run.

    Raises:
        UserError: If no run is given.

    Example:
        >>> evenhand.open_run("runs/now").results()
    """
    return await asyncio.to_thread(lambda: Run(RunReader(path)))
