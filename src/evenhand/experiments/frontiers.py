"""Several methods on the same items, as they are written or as objects, and the winner again on a
fresh sample: what was chosen as the best of several looks better than it is."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from evenhand.core.errors import UserError
from evenhand.experiments.measuring import Measurement, RunModels
from evenhand.experiments.request import Request, Watch, left_for
from evenhand.experiments.running import RunEnd
from evenhand.experiments.settings import RunSettings
from evenhand.experiments.sweep import MethodSeries, SweepMethod
from evenhand.findings.display import Remark
from evenhand.findings.forecast import FrontierForecast, forecast, whole
from evenhand.findings.frontier import VOTE, Frontier, frontier, odd, require_harm
from evenhand.findings.frontier import confirm as confirmed_by
from evenhand.findings.scoring import ScoringSpec
from evenhand.instruments._contract import DataFolder, Instrument
from evenhand.methods import Method, within
from evenhand.runs.runners import Source
from evenhand.views.files import plain

FOLDER = "confirm"  # of its runs, within that of the sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierRun:
    """The end of the runs of a frontier. A pilot has a forecast; runs that ended early have
    nothing."""

    ended: RunEnd
    frontier: Frontier | None = None
    forecast: FrontierForecast | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFrontier:
    """The methods of a frontier, and the request that they share."""

    series: MethodSeries
    chosen: Sequence[SweepMethod]
    waiting: tuple[str, ...]  # methods that borrow critiques
    data: DataFolder

    def requests(self) -> dict[str, Request]:
        """Give the request of each method, for a dry run."""
        return {
            entry.name: replace(self.series.request, method=entry.method) for entry in self.chosen
        }


def plan_frontier(
    instrument: Instrument,
    values: Mapping[str, Any],
    methods: Sequence[Method | str],
    calls: int,
    models: RunModels,
    settings: RunSettings,
    watch: Watch,
) -> PlannedFrontier:
    """Draw the items of a frontier and choose its methods.

    Args:
        instrument: The instrument, which must have a measure of harm.
        values: Its options by name.
        methods: The methods to compare; empty for the usual ones.
        calls: The calls per item to which each method is fitted.
        models: The models, the scorers and the data.
        settings: The settings of all runs together.
        watch: Receives progress and remarks.

    Returns:
        The methods and what they are asked.
    """
    require_harm(instrument)
    selected = chosen(methods, calls, instrument)
    measurement = Measurement(
        instrument=instrument, options=instrument.options_from(values), services=models.services
    )
    source = measurement.items(models.data)
    waiting = tuple(entry.name for entry in selected if entry.lender is not None)
    if settings.dry_run or settings.pilot:
        # a method that borrows critiques needs the whole run of its lender
        selected = [entry for entry in selected if entry.lender is None]
    settings = replace(settings, out=settings.out.rstrip("/"))
    request = models.request(source, selected[0].method, settings, None)
    request = replace(request, settings=measurement.limited(request.settings))
    series = MethodSeries(request=request, measurement=measurement, watch=watch, calls=calls)
    return PlannedFrontier(series=series, chosen=selected, waiting=waiting, data=models.data)


async def run_frontier(plan: PlannedFrontier, *, confirm: bool) -> FrontierRun:
    """Run several methods and compare harm, utility and cost.

    Args:
        plan: The methods and what they are asked.
        confirm: Whether the winner is confirmed on a fresh sample.

    Returns:
        The frontier, or the forecast of a pilot.
    """
    series, chosen, data = plan.series, plan.chosen, plan.data
    request, instrument = series.request, series.measurement.instrument
    prices = request.settings.prices
    try:
        fresh = None
        if confirm:
            fresh = await asyncio.to_thread(fresh_sample, series.measurement, data)
        ended = await series.run(chosen)
        if ended.pilot is not None:
            runs = series.runs(chosen).items()
            each = {name: plain(forecast(run, ended.pilot, prices).to_dict()) for name, run in runs}
            return FrontierRun(ended=ended, forecast=whole(each))
        if ended.early:
            return FrontierRun(ended=ended)
        arms = await series.arms(chosen)
        assert series.calls is not None
        compute = partial(frontier, instrument, arms, calls=series.calls, prices=prices)
        result = await asyncio.to_thread(compute)
        if fresh is not None:
            ended, result = await confirmed(series, chosen, result, fresh, data)
        return FrontierRun(ended=ended, frontier=result)
    finally:
        await series.measurement.services.close()


def fresh_sample(measurement: Measurement, data: DataFolder) -> Measurement:
    """The same measurement with the next sample seed, on items that the first does not have as far
    as the instrument can draw them; refused where that draws no other items."""
    name, options = measurement.instrument.name, measurement.options
    if not hasattr(options, "sample_seed"):
        raise UserError(
            f"{name} has no option sample_seed, so no fresh sample can confirm the winner. Leave "
            "out --confirm."
        )
    seed = options.sample_seed
    unlike = {"exclude_sample": seed} if hasattr(options, "exclude_sample") else {}
    fresh = replace(measurement, options=replace(options, sample_seed=seed + 1, **unlike))
    if _ids(fresh.items(data)) <= _ids(measurement.items(data)):
        raise UserError(
            f"Another seed selects the same items of {name}. Leave out --confirm, or use a sample "
            "that is smaller than the dataset."
        )
    return fresh


async def confirmed(
    series: MethodSeries,
    chosen: Sequence[SweepMethod],
    first_frontier: Frontier,
    fresh: Measurement,
    data: DataFolder,
) -> tuple[RunEnd, Frontier]:
    """Measure the winner and its references on a fresh sample, and confirm the frontier by it.

    The frontier stays as it is if it has no winner, or if the runs end early.

    Args:
        series: The request and the measurement of the first runs. Its caps include these runs.
        chosen: The methods that were compared.
        first_frontier: The frontier of the first runs.
        fresh: The measurement of the fresh sample.
        data: The folder of datasets.

    Returns:
        The end of the runs, and the frontier.
    """
    winner = first_frontier.winner()
    if winner is None:
        series.watch.note(Remark("frontier.nothing_to_confirm"))
        return RunEnd(), first_frontier
    lender = next(arm.lender for arm in chosen if arm.name == winner.name)
    names = {*first_frontier.instrument.compared_with(), winner.name, lender}
    again = [arm for arm in chosen if arm.name in names]
    source = await asyncio.to_thread(fresh.items, data)
    ids = await asyncio.to_thread(_ids, source)
    shared = len(ids & await asyncio.to_thread(_ids, series.request.source))
    confirming = Remark("frontier.confirming", method=winner.name, items=len(ids), shared=shared)
    series.watch.note(confirming)
    spent, request = series.spent(chosen), series.request
    request = replace(
        request,
        source=source,
        settings=replace(request.settings, out=f"{request.settings.out}/{FOLDER}"),
    )
    second = replace(series, request=left_for(request, request.settings, spent), measurement=fresh)
    ended = await second.run(again)
    if ended.early:
        return ended, first_frontier
    arms = await second.arms(again)
    measured = frontier(
        first_frontier.instrument, arms, calls=first_frontier.calls, prices=request.settings.prices
    )
    return ended, confirmed_by(first_frontier, measured, shared=shared)


def _ids(source: Source) -> set[str]:
    return {item.id for item in source.read(0, len(source))}


# All that answer with nothing but a chat endpoint. The last one is a control: if StarDTox without
# the words of its critique does as well, the critique does not matter.
_USUAL = (
    "cot",
    "self_debias_explanation",
    "self_debias_reprompting",
    "fair_thinking",
    "detect_first",
    "self_refine",
    "best_of_n",
    "stardtox",
    "mabrf",
    "stardtox:critique=empty",
)
USUAL = "usual"  # the word for all of them in a list that has others too
_ON_CHOICES_ALONE = {"cot", "self_debias_explanation", "detect_first", "mabrf"}


def chosen(
    methods: Sequence[Method | str], calls: int, instrument: ScoringSpec
) -> list[SweepMethod]:
    """List the methods to compare, after the instrument's references, which are always run.

    A method that lends its critiques comes before the one that borrows them.

    Args:
        methods: Objects, or names such as `stardtox:critique=empty+max_iterations=1`; empty for
            the usual ones.
        calls: The calls per item that the settings of a method have to fit.
        instrument: The instrument, which names the references.

    Returns:
        The methods, each with its folder.

    Raises:
        UserError: If two methods share a folder, or a lender is missing.
    """
    requested: list[Method | str] = []
    for method in methods or (USUAL,):
        requested += _usual(instrument) if method == USUAL else [method]
    objects = [SweepMethod.of(method) for method in requested if not isinstance(method, str)]
    names = (
        *instrument.compared_with(),
        *(method for method in requested if isinstance(method, str)),
    )
    fitted = {VOTE: odd(calls)}  # a tie decides nothing, so that a vote is of an odd number
    built = (_built(name, fitted.get(name, calls)) for name in dict.fromkeys(names))
    arms = [*built, *objects]
    for arm in arms:
        if arm.lender is not None and arm.lender not in names:
            raise UserError(
                f"{arm.name} borrows critiques that were made on other items. Add {arm.lender!r} "
                "to --methods."
            )
    folders = [arm.folder for arm in arms]
    twice = next((name for name in folders if folders.count(name) > 1), None)
    if twice:
        raise UserError(f"Two methods would share the folder {twice!r}. Leave one out.")
    return sorted(arms, key=lambda arm: arm.lender is not None)


def _usual(instrument: ScoringSpec) -> list[str]:
    on_text = "choice" not in instrument.columns
    return [name for name in _USUAL if not (on_text and name in _ON_CHOICES_ALONE)]


def _built(written: str, calls: int) -> SweepMethod:
    """With the largest settings that fit the calls; what was set by hand stays as it was set."""
    method = SweepMethod.of(written).method
    name, _, rest = written.partition(":")
    by_hand = {assignment.partition("=")[0].strip() for assignment in rest.split("+")}
    overrides = {f.name: getattr(method, f.name) for f in fields(method) if f.name in by_hand}  # type: ignore[arg-type]
    fitted: Method = replace(within(method, calls), **overrides)
    borrows = getattr(fitted, "critique", None) == "other"
    return SweepMethod(name=written, method=fitted, lender=name if borrows else None)
