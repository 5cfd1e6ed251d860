"""A measurement takes an instrument's items through a method, adds what scoring needs, and reports.
Sets of texts are measured by the log-probability that a model gives them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.experiments.request import Request, Watch, left_for, spent_within, within
from evenhand.experiments.running import (
    RunEnd,
    execute,
    is_done,
    is_finished,
    require_certified,
)
from evenhand.experiments.settings import RunSettings
from evenhand.experiments.stopping import InBlocks, StoppingQuestion, next_block, until_decided
from evenhand.experiments.thinking import score_thinking
from evenhand.findings.audit import Audit, audit_of
from evenhand.findings.report import Report, report
from evenhand.instruments._contract import DataFolder, FurtherRun, Instrument, Services
from evenhand.instruments._options import OTHER_START, START_CHECK, OptionSource
from evenhand.instruments.likelihood_sets import all_sets, set_named, usual_sets
from evenhand.methods import Method
from evenhand.methods.build import of_stored_answers
from evenhand.models.likelihood import EchoedLikelihood, LikelihoodModel
from evenhand.runs.runners import Source
from evenhand.runs.runners.likelihood import run_likelihood
from evenhand.runs.runners.progress import Progress
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.views.files import write_report


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measurement is an instrument with its options and the services that it may use."""

    instrument: Instrument
    options: Any
    services: Services

    def __post_init__(self) -> None:
        equipped = self.instrument.with_services(self.options, self.services)
        object.__setattr__(self, "instrument", equipped)

    def items(self, data: DataFolder) -> Source:
        """The items that are asked, drawn by the options."""
        return self.instrument.questions(data, self.options)

    def method(self, requested: Method) -> Method:
        """Give the method as the items want it worded; of stored answers, the one that returns or
        repairs them."""
        if self.instrument.stores_answers(self.options):
            return of_stored_answers(requested)
        return self.instrument.worded(requested, self.options)

    def limited(self, settings: RunSettings) -> RunSettings:
        """Return the settings with the longest answer that the instrument's options say, if any."""
        name = self.instrument.answer_tokens
        tokens = getattr(self.options, name) if name else None
        limits = settings.limits
        if tokens:
            limits = replace(limits, answer_tokens=tokens)
        return replace(settings, limits=limits)


MakeRequest = Callable[[Source, Method, RunSettings, Measurement | None], Request]
"""Makes the request of a run. An audit asks the models that its measurement names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunModels:
    """The models, the scorers and the data of the caller."""

    request: MakeRequest
    services: Services
    data: DataFolder


def prepared(
    instrument: Instrument,
    values: Mapping[str, Any],
    requested: Method,
    models: RunModels,
    settings: RunSettings,
    question: StoppingQuestion | None = None,
) -> tuple[Measurement, Request]:
    """Make a measurement, and the request for its items.

    Args:
        instrument: The instrument.
        values: Its options by name.
        requested: The method, as the caller names it.
        models: The models, the scorers and the data.
        settings: The settings of the run.
        question: The question that may end the run early; None to ask all items.

    Returns:
        The measurement and the request.
    """
    measurement = Measurement(
        instrument=instrument, options=instrument.options_from(values), services=models.services
    )
    method, source = measurement.method(requested), measurement.items(models.data)
    if question is not None:
        source = until_decided(instrument, source, question, seed=settings.seed)
    request = models.request(source, method, settings, measurement)
    return measurement, replace(request, settings=measurement.limited(request.settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementResult:
    """The end of a measurement. Without a report nothing was finished, or it was a dry run."""

    ended: RunEnd
    report: Report | None = None


async def measure(measurement: Measurement, request: Request, watch: Watch) -> MeasurementResult:
    """Run a measurement and write `report.json` and `report.parquet` into the run folder.

    Args:
        measurement: The instrument, its options and its services, which are closed at the end.
        request: The items, the method, the models and the settings of the run.
        watch: Receives progress and remarks.

    Returns:
        How the run ended, and the report if anything was finished.
    """
    try:
        return await _measure(measurement, request, watch)
    finally:
        await measurement.services.close()


async def _measure(measurement: Measurement, request: Request, watch: Watch) -> MeasurementResult:
    if isinstance(request.source, InBlocks) and request.following is None:
        out = request.settings.out  # looked into after each block
        look = partial(asyncio.to_thread, next_block, measurement.instrument, request.source, out)
        request = replace(request, following=look)
    await check(measurement, request)
    await _certified(measurement, request, watch)
    for remark in measurement.instrument.remarks(measurement.options, len(request.source)):
        watch.note(remark)
    ended = RunEnd() if await is_done(request) else await execute(request, watch)
    if ended.pilot is not None:
        return MeasurementResult(ended=ended)
    run = RunReader(request.settings.out)
    if not run.totals().items:  # stopped before the first: nothing to report
        return MeasurementResult(ended=ended)
    instrument, options = measurement.instrument, measurement.options
    await instrument.complete(run, options, measurement.services)
    if (by := getattr(options, "thinking", None)) is not None:
        await score_thinking(run, request.method, measurement.services.scorer(by))
    further = instrument.further(run, options)
    if further is not None and not ended.early:
        ended = await _further(further, request, watch)
    result = report(instrument, run, request.settings.prices)
    write_report(result, request.settings.out)
    return MeasurementResult(ended=ended, report=result)


async def check(measurement: Measurement, request: Request) -> None:
    """Let the instrument refuse, before anything is asked, by who would play which role."""
    instrument = measurement.instrument
    if request.settings.dedupe and instrument.asks_again:
        raise UserError(
            f"{instrument.name} repeats the same prompt on purpose, and --dedupe would send it "
            "once. Leave out --dedupe."
        )
    overridden = type(instrument).check is not Instrument.check
    players = {} if request.asks_nobody or not overridden else await _players(request)
    instrument.check(measurement.options, request.method, players, measurement.services)


async def _certified(measurement: Measurement, request: Request, watch: Watch) -> None:
    """Refuse judges of the second run that lack a certificate, before the first run is paid for."""
    method = measurement.instrument.must_certify(measurement.options)
    if method is not None and request.settings.replay is None:
        settings = replace(request.settings, require_certified_judges=True)
        await require_certified(replace(request, settings=settings), [method], watch)


async def _players(request: Request) -> dict[str, str]:
    """Who plays each role that the method asks: by the record, where the run is finished."""
    roles = [agent.role for agent in request.method.agents()]
    if is_finished(request):
        recorded = RunReader(request.settings.out).record.cast
        return {role: str(recorded.get(role, recorded["default"])["model"]) for role in roles}
    cast = await request.open_cast(request.method)
    try:
        return {role: cast.model_for(role).name for role in roles}
    finally:
        await request.close(cast)


async def _further(further: FurtherRun, request: Request, watch: Watch) -> RunEnd:
    """Run the second run, in a folder within, with what the first left of the caps."""
    settings = request.settings
    used = spent_within(settings, [settings.out])
    # Where the first run has a system prompt, the second may ask judges alone. It is about what the
    # first wrote: a second run about other texts cannot be reused.
    of_second = replace(within(settings, further.folder), system=None)
    source = orjson.loads(orjson.dumps(further.source.fingerprint()))
    equal = tuple(run for run in of_second.reuse if RunReader(run).record.source == source)
    of_second = replace(of_second, reuse=equal)
    inner = replace(request, source=further.source, method=further.method, settings=of_second)
    inner = left_for(inner, settings, used)
    return RunEnd() if await is_done(inner) else await execute(inner, watch)


def concluded(
    instrument: Instrument, options: Any, report: Report, certificates: Path | None = None
) -> Audit:
    """Make the audit of a report, and keep what follows from it.

    Args:
        instrument: The audit that was run.
        options: Its own options.
        report: Of its run.
        certificates: The folder that certificates are kept in, if there is one.
    """
    audit = audit_of(report)
    instrument.keep(audit, options, certificates)
    return audit


async def open_likelihood(
    config: Config, weights: Path | None = None, start: str | None = None
) -> LikelihoodModel:
    """Open what gives log-probabilities: local weights, or else the endpoint of the config.

    Args:
        config: The config.
        weights: A folder of weights.
        start: The token that every text starts with; only of weights.

    Returns:
        The model. Whoever opens it closes it.

    Raises:
        UserError: If `start` is given for an endpoint, or the endpoint does not echo prompts.
    """
    if weights is not None:
        from evenhand.training.local_likelihood import LocalLikelihood  # noqa: PLC0415 torch

        return LocalLikelihood(weights, start=start)
    if start is not None:
        raise UserError(
            "--start needs --weights: an endpoint adds its own start token. Omit --start"
        )
    opened = EchoedLikelihood(await configuration.open_model(config.default_model()))
    try:
        await opened.check()
    except BaseException:
        await opened.close()
        raise
    return opened


def draw_sets(
    names: Sequence[str] | None, data: DataFolder, values: dict[str, Any]
) -> dict[str, OptionSource]:
    """Draw the samples of sets.

    Args:
        names: The names of the sets; None for the usual ones.
        data: The folder of data sets.
        values: Options. Each set takes those that it has.

    Returns:
        The sources by name.

    Raises:
        UserError: If no set is named, or there is none of a name.
    """
    names = usual_sets() if names is None else names
    if not names:
        raise UserError(f"--sets names no dataset. Available: {', '.join(all_sets())}")
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
    An `out` that holds a single run is refused where several are asked for."""
    if len(sets) > 1 and open_folder(out).exists("run.json"):
        raise UserError(f"{out} already has the run of one dataset. Pass a new folder as --out.")
    return {name: f"{out.rstrip('/')}/{name}" if len(sets) > 1 else out for name in sets}


async def measure_sets(
    model: LikelihoodModel,
    sources: Mapping[str, OptionSource],
    folders: Mapping[str, str],
    watch: Watch,
) -> list[Report]:
    """Measure sets and report each.

    Args:
        model: Who gives log-probabilities; closed at the end.
        sources: The samples by the name of their set.
        folders: The run folder of each.
        watch: Receives progress events.

    Returns:
        A report for each set, also written into its folder.
    """
    try:
        for name, source in sources.items():
            progress = Progress()
            async with watch.progress(progress):
                await run_likelihood(model, source, folders[name], progress=progress)
            await _again_after_another_start(model, source, folders[name])
    finally:
        await model.close()
    return await asyncio.to_thread(_reports, folders)


def _reports(folders: Mapping[str, str]) -> list[Report]:
    reports = [report(all_sets()[name], RunReader(folder)) for name, folder in folders.items()]
    for set_report in reports:
        write_report(set_report, set_report.side.run)
    return reports


async def _again_after_another_start(
    model: LikelihoodModel, source: OptionSource, folder: str
) -> None:
    other = model.after_another_start()
    if other is not None:
        part = source.part(START_CHECK)
        await run_likelihood(other, part, f"{folder}/{OTHER_START}", progress=Progress())
