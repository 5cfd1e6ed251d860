"""Sets of texts, measured by the log-probability that a model gives them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from evenhand.core.errors import UserError
from evenhand.experiments.watch import Watch
from evenhand.findings.report import Report, report
from evenhand.instruments._contract import DataFolder
from evenhand.instruments._options import OTHER_START, START_CHECK, OptionSource
from evenhand.instruments.likelihood_sets import SETS, set_named
from evenhand.models.likelihood import LikelihoodModel
from evenhand.runs.runners.likelihood import run_likelihood
from evenhand.runs.runners.progress import Progress
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.likelihood import OldLikelihoods
from evenhand.views.files import write_report


def draw_sets(
    names: Sequence[str], data: DataFolder, values: dict[str, Any]
) -> dict[str, OptionSource]:
    """Draw the samples of sets.

    Args:
        names: The names of the sets.
        data: The folder of data sets.
        values: Options. Each set takes those that it has.

    Returns:
        The sources by name.

    Raises:
        UserError: If no set is named, or there is none of a name.
    """
    if not names:
        raise UserError(f"--sets names no set; there are: {', '.join(SETS)}")
    sources = {}
    for instrument in map(set_named, dict.fromkeys(names)):
        option_names = {field.name for field in fields(instrument.options)}
        options = instrument.options_from(
            {name: values[name] for name in values if name in option_names}
        )
        sources[instrument.name] = instrument.source(data, options)
    return sources


def run_folders(out: str, sets: Sequence[str]) -> dict[str, str]:
    """Name the run folder of each set: `out` itself for one, a folder within for each of several.

    Raises:
        UserError: If `out` holds a run of another form.
    """
    _refuse_other_form(out, sets)
    return {name: f"{out.rstrip('/')}/{name}" if len(sets) > 1 else out for name in sets}


async def measure_sets(
    model: LikelihoodModel,
    sources: Mapping[str, OptionSource],
    folders: Mapping[str, str],
    watch: Watch,
) -> list[Report]:
    """Measure sets and report each.

    Args:
        model: Who gives log-probabilities.
        sources: The samples by the name of their set.
        folders: The run folder of each.
        watch: Receives progress events.

    Returns:
        A report for each set, also written into its folder.
    """
    for name, source in sources.items():
        progress = Progress()
        async with watch.progress(progress):
            await run_likelihood(model, source, folders[name], progress=progress)
        await _again_after_another_start(model, source, folders[name])
    return await asyncio.to_thread(_reports, folders)


def _reports(folders: Mapping[str, str]) -> list[Report]:
    reports = [report(SETS[name], RunReader(folder)) for name, folder in folders.items()]
    for set_report in reports:
        write_report(set_report, set_report.side.run)
    return reports


def _refuse_other_form(location: str, sets: Sequence[str]) -> None:
    """One folder holds one run, or one folder per set, never both."""
    folder = open_folder(location)
    single = folder.exists("run.json") and len(sets) > 1
    if single or OldLikelihoods.are_at(folder):
        raise UserError(
            f"{location} holds a run of another form already; `evenhand compare` still reads it. "
            "Give --out a new folder"
        )


async def _again_after_another_start(
    model: LikelihoodModel, source: OptionSource, folder: str
) -> None:
    other = model.after_another_start()
    if other is not None:
        part = source.part(START_CHECK)
        await run_likelihood(other, part, f"{folder}/{OTHER_START}", progress=Progress())
