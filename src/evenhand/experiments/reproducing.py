"""The runs of a recipe as jobs: which model, which folder, and what cannot be run here. They are
run one after the other, with caps for all of them together, and what they show is laid out as the
paper's table."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from evenhand.agents.method import of_record
from evenhand.core.errors import UserError, choices_for
from evenhand.core.prices import Prices
from evenhand.experiments.measuring import Measurement, measure
from evenhand.experiments.request import Request, Watch, left_for, spent_within
from evenhand.experiments.running import RunEnd
from evenhand.experiments.settings import RunSettings
from evenhand.findings.audit import audit_of, is_audit
from evenhand.findings.forecast import FrontierForecast, forecast, whole
from evenhand.findings.papers import OF_RUN, Paper, RecipeSample, Size, Table
from evenhand.findings.report import Report, report
from evenhand.findings.reproduction import Found, Reproduction, catalogue, reproduction
from evenhand.instruments import instrument_named, instrument_of
from evenhand.instruments._contract import DataFolder, Services
from evenhand.methods import Method
from evenhand.methods import named as method_named
from evenhand.methods.build import build_method
from evenhand.methods.shared_settings import Wording, has_wordings
from evenhand.runs.runners import Source
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import as_file_name, open_folder
from evenhand.runs.store.spending import Spent
from evenhand.views import html, markdown, page_of
from evenhand.views.files import plain, to_json

Place = tuple[str, str]  # the model, and the name of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeJob:
    """A job is one run of a recipe with one model. It is prepared when its turn comes: its items
    may be the texts of an earlier one."""

    model: str
    run: str
    out: str
    prepare: Callable[[], tuple[Request, Measurement]]
    waits: bool = False  # for an earlier run
    reuses: bool = False  # the replies of that run

    @property
    def place(self) -> Place:
        return self.model, self.run


async def run_all(
    jobs: Sequence[RecipeJob], watch: Watch, caps: RunSettings
) -> tuple[RunEnd, Mapping[Place, tuple[int, ...]]]:
    """Run jobs one after the other until all are done, a signal comes or a cap is reached.

    Args:
        jobs: The jobs, in order.
        watch: Receives progress and remarks.
        caps: The settings whose caps are for all jobs together.

    Returns:
        How the last run ended, and the positions that each pilot has answered.
    """
    pilots: dict[Place, tuple[int, ...]] = {}
    ended = RunEnd()
    for number, job in enumerate(jobs, 1):
        watch.note(f"run {number} of {len(jobs)}: {job.run} with {job.model}")
        others = spent_within(caps, (other.out for other in jobs if other is not job))
        ended = await _run(job, watch, caps, others)
        if ended.pilot is not None:
            pilots[job.place] = ended.pilot
        if ended.early:
            return replace(
                ended, calls=spent_within(caps, (other.out for other in jobs)).calls
            ), pilots
    return ended, pilots


async def _run(job: RecipeJob, watch: Watch, caps: RunSettings, others: Spent) -> RunEnd:
    try:
        request, measurement = job.prepare()
    except UserError as why:
        if not job.waits:
            raise
        watch.note(f"{job.run} is passed over: {why}")  # the run before gave it nothing to ask
        return RunEnd()
    request = left_for(request, caps, others)
    return (await measure(measurement, request, watch)).ended


async def forecasts(
    jobs: Sequence[RecipeJob],
    pilots: Mapping[Place, tuple[int, ...]],
    prices: Prices | None,
    of: str = "table",
    played_back: Sequence[str] = (),
) -> FrontierForecast:
    """Forecast the calls, tokens and cost of all runs from a pilot of each.

    Args:
        jobs: The jobs to forecast; those without a pilot are left out.
        pilots: The positions that each pilot has answered.
        prices: The prices for costs; None to leave costs out.
        of: What the forecast is for, as the report names it.
        played_back: The runs whose equal calls come from another run, and are not counted.

    Returns:
        The sum of the forecasts.
    """
    each = {}
    for job in jobs:
        if job.place in pilots:
            pilot = pilots[job.place]
            expected = await asyncio.to_thread(forecast, RunReader(job.out), pilot, prices)
            each[f"{job.model}: {job.run}"] = plain(expected.to_dict())
    return whole(each, of=of, played_back=played_back)


def found_in(folder: str) -> Found | None:
    """Read what a run shows, from its folder alone; None where nothing of it was run."""
    if not open_folder(folder).exists("run.json"):
        return None
    run = RunReader(folder)
    if not run.totals().items:
        return None
    result = report(instrument_of(run), run)
    return audit_of(result) if is_audit(result.instrument) else result


NO_SEARCH = "it needs a search engine: write [search] into the config"


class RecipeModels(Protocol):
    """The models of the caller, by name."""

    searches: bool  # whether there is a search engine

    def usual(self) -> Sequence[str]:
        """Name the models that are run where none is named."""

    def services(self, model: str) -> Services:
        """Return what an instrument may ask for in a run of this model."""

    def request(
        self, model: str, source: Source, method: Method, settings: RunSettings, *, is_audit: bool
    ) -> Request:
        """Make the request of a run with one of the models. An audit asks the judge alone.

        Args:
            model: The model's name.
            source: The items.
            method: The method.
            settings: The settings of the run.
            is_audit: Whether the run audits the model as a judge.

        Returns:
            The request.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproducing:
    """Which tables of a paper are made, by whom, and how."""

    paper: Paper
    tables: Sequence[Table]
    models: RecipeModels
    settings: RunSettings  # its folder is that of it all, as is the one of a replay
    data: DataFolder
    size: Size = "small"
    named: Sequence[str] = ()  # models
    trained: Mapping[str, str] = field(default_factory=dict)
    only: Sequence[str] | None = None
    show: bool = False
    wording: Wording = "ours"
    sample: Mapping[str, str] = field(default_factory=dict)  # instead of the recipe's
    repeats: int = 1  # of every run, each with the next seed

    @property
    def place(self) -> str:
        """The folder of the paper's runs and tables within --out, of this size and wording."""
        words = "" if self.wording == "ours" else f"-{self.wording}-wording"
        return f"{self.paper.name}/{self.size}{words}"

    @property
    def run_names(self) -> tuple[str, ...]:
        """The runs of all tables, each after the one that it is played back from."""
        runs = (name for table in self.tables for name in table.runs())
        return tuple(self.paper.in_order(runs))

    def folder(self, model: str, run: str, within: str | None = None) -> str:
        """Give the folder of a run, which all tables of the paper share.

        Args:
            model: The model's name, as folders have it.
            run: The run's name in the paper's recipes.
            within: The folder above it; None for the one in the settings.

        Returns:
            The path of the run folder.
        """
        return f"{within or self.settings.out}/{self.place}/{model}/{run}"


def tables_of(paper: Paper, name: str | None) -> tuple[Table, ...]:
    """Choose the tables that are made: the one of this name, or all that have a recipe."""
    if name is None:
        return tuple(table for table in paper.tables if not table.reason)
    chosen = paper.table(name)
    if chosen is None or chosen.reason:
        entries = {entry.table: entry for entry in catalogue([paper.name]).entries}
        why = f"{entries[name].where}: {entries[name].reason} " if name in entries else ""
        there = ", ".join(table for table, entry in entries.items() if entry.runnable)
        raise UserError(f"{paper.name} has no {name} to run. {why}There are: {there}")
    return (chosen,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJobs:
    """What will be run, and why the rest will not."""

    models: tuple[str, ...]  # as folders are named by them; repeats follow their model
    jobs: tuple[RecipeJob, ...]
    missing: Mapping[Place, str]


def planned(arguments: Reproducing) -> PlannedJobs:
    """The jobs of every model, each run after the one that it is played back from."""
    names = _by_folder(_models(arguments))
    run_names = arguments.run_names
    for name in arguments.only or ():
        if name not in run_names:
            raise UserError(f"--only {name}: unknown run. {choices_for(name, run_names)}")
    _check_sample(arguments)
    jobs: list[RecipeJob] = []
    missing: dict[Place, str] = {}
    labels = {
        label if repeat == 1 else f"{label}-{repeat}": (model, repeat)
        for label, model in names.items()
        for repeat in range(1, arguments.repeats + 1)
    }
    for label, (model, repeat) in labels.items():
        for name in run_names:
            why = _why_not(arguments, name)
            if why:
                missing[label, name] = why
            else:
                jobs.append(_job(arguments, label, model, name, repeat))
    chosen = [job for job in jobs if not arguments.only or job.run in arguments.only]
    if arguments.settings.pilot:  # what waits for another run needs the whole of it
        chosen = [job for job in chosen if not job.waits]
    jobs = [] if arguments.show else chosen
    return PlannedJobs(models=tuple(labels), jobs=tuple(jobs), missing=missing)


def laid_out(arguments: Reproducing, plan: PlannedJobs) -> list[Reproduction]:
    """Every table that was asked for, from the run folders alone."""
    places = ((model, name) for model in plan.models for name in arguments.run_names)
    found = {place: found_in(arguments.folder(*place)) for place in places}
    results = {place: result for place, result in found.items() if result is not None}
    missing = {key: why for key, why in plan.missing.items() if key not in results}
    tables = [
        reproduction(
            arguments.paper, table, arguments.size, results, missing, plan.models, arguments.repeats
        )
        for table in arguments.tables
    ]
    others = [other_settings(arguments.paper, table, results) for table in arguments.tables]
    return [
        replace(table, notes=(*table.notes, *notes))
        for table, notes in zip(tables, others, strict=True)
    ]


def other_settings(paper: Paper, table: Table, results: Mapping[Place, Found]) -> list[str]:
    """Name the settings of the runs of a table that are not those of its recipe.

    Args:
        paper: The paper.
        table: The table, whose runs are looked at.
        results: What each run showed, by model and name of the run.

    Returns:
        One note per run with other settings.
    """
    notes = []
    for (model, name), result in results.items():
        if name not in table.runs() or not isinstance(result, Report):
            continue
        method, recipe = of_record(result.side.method), paper.runs[name].settings
        own = {key: getattr(method, key) for key in recipe}
        others = [
            f"{key}={own[key]} where the recipe has {value}"
            for key, value in recipe.items()
            if own[key] != value
        ]
        if others:
            notes.append(f"{model}: {name} was run with {', '.join(others)}")
    return notes


def write_tables(arguments: Reproducing, plan: PlannedJobs) -> list[Reproduction]:
    """Lay out every table from the run folders alone, and write each as JSON, Markdown and HTML."""
    reproductions = laid_out(arguments, plan)
    folder = open_folder(f"{arguments.settings.out}/{arguments.place}")
    for table in reproductions:
        folder.replace(f"{table.table}.json", to_json(table))
        folder.replace(f"{table.table}.md", markdown.render(page_of(table)).encode())
        whole_page = html.document(page_of(table, full=True), table.title)
        folder.replace(f"{table.table}.html", whole_page.encode())
    return reproductions


def reusing(arguments: Reproducing) -> list[str]:
    """Name the runs of these tables whose equal calls come from another run."""
    return [
        name
        for name, run in arguments.paper.runs.items()
        if run.reuses and any(name in table.runs() for table in arguments.tables)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionResult:
    """The end of a reproduction. Without tables its runs ended early, or were pilots."""

    ended: RunEnd
    tables: tuple[Reproduction, ...] = ()
    forecast: FrontierForecast | None = None


async def run_jobs(arguments: Reproducing, plan: PlannedJobs, watch: Watch) -> ReproductionResult:
    """Run what was planned, and write the tables; of pilots, forecast the runs.

    Args:
        arguments: Which tables are made, by whom, and how.
        plan: What `planned` made of them.
        watch: Receives progress and remarks.

    Returns:
        How the last run ended, and the tables or the forecast.
    """
    settings = arguments.settings
    ended, pilots = await run_all(plan.jobs, watch, settings)
    expected = None
    if settings.pilot and pilots:
        free = reusing(arguments)
        expected = await forecasts(plan.jobs, pilots, settings.prices, played_back=free)
    if settings.pilot or ended.early:
        return ReproductionResult(ended=ended, forecast=expected)
    tables = await asyncio.to_thread(write_tables, arguments, plan)
    return ReproductionResult(ended=ended, tables=tuple(tables))


def _by_folder(models: Sequence[str]) -> dict[str, str]:
    """The models by the names of their folders, which no two may share."""
    names: dict[str, str] = {}
    for model in models:
        other = names.setdefault(as_file_name(model), model)
        if other != model:
            raise UserError(
                f"--model {other} and --model {model} would share a folder: give one of them "
                "another name under [models] in the config, or run each with an --out of its own"
            )
    return names


def _models(arguments: Reproducing) -> Sequence[str]:
    """The models that were named; else those of the folder, or the usual ones."""
    if arguments.named:
        return arguments.named
    settings = arguments.settings
    root = settings.replay or (settings.out if arguments.show else None)
    if root is None:
        return arguments.models.usual()
    folder = Path(root) / arguments.place
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if (
        folder.is_dir()) else []  # fmt: skip
    if not names:
        raise UserError(
            f"{folder} has no runs. Pass the --out of the reproduction, or name --model."
        )
    numbers = range(2, arguments.repeats + 1)
    again = {f"{name}-{number}" for name in names for number in numbers}
    return [name for name in names if name not in again]


def _why_not(arguments: Reproducing, name: str) -> str | None:
    """Why a run cannot be made here, if it cannot."""
    spec = arguments.paper.runs[name]
    if arguments.settings.replay is not None:
        return None
    if spec.trained is not None and _served(arguments, spec.trained, "", 1) is None:
        description = arguments.paper.trained[spec.trained].says
        return f"it needs {description}, served and named: --trained {spec.trained}=MODEL"
    return NO_SEARCH if "search" in spec.needs and not arguments.models.searches else None


def _served(arguments: Reproducing, weights: str, model: str, repeat: int) -> str | None:
    """Under which name weights are served: {model}, {name} and {repeat} are filled in, * is for
    all."""
    template = arguments.trained.get(weights) or arguments.trained.get("*")
    if template is None:
        return None
    values = {"model": model, "name": weights, "repeat": str(repeat)}
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def _job(arguments: Reproducing, label: str, model: str, name: str, repeat: int) -> RecipeJob:
    spec = arguments.paper.runs[name]
    if spec.trained is not None:
        model = _served(arguments, spec.trained, model, repeat) or model  # a replay names nobody
    prepare = partial(_prepared, arguments, label, model, name, repeat)
    waits = bool(arguments.paper.waits_for(name))
    return RecipeJob(
        model=label,
        run=name,
        out=arguments.folder(label, name),
        prepare=prepare,
        waits=waits,
        reuses=spec.reuses is not None,
    )


def _prepared(
    arguments: Reproducing, label: str, model: str, name: str, repeat: int
) -> tuple[Request, Measurement]:
    """The request of a run with one model, and what it measures."""
    sample = arguments.paper.samples[arguments.paper.runs[name].sample]
    instrument = instrument_named(sample.instrument)
    measurement = Measurement(
        instrument=instrument,
        options=instrument.options_from(_options(arguments, label, sample)),
        services=arguments.models.services(model),
    )
    spec, whole = arguments.paper.runs[name], arguments.settings
    words = arguments.wording if has_wordings(method_named(spec.method)) else None
    replay = None if whole.replay is None else arguments.folder(label, name, within=whole.replay)
    settings = replace(
        whole,
        out=arguments.folder(label, name),
        seed=None if whole.seed is None else whole.seed + repeat - 1,
        max_cost=None,  # caps are for all runs together
        max_calls=None,
        replay=replay,
        reuse=(arguments.folder(label, spec.reuses),) if spec.reuses and not replay else (),
    )
    request = arguments.models.request(
        model,
        measurement.items(arguments.data),
        build_method(spec.method, spec.assignments, words),
        settings,
        is_audit=is_audit(instrument),
    )
    return replace(request, settings=measurement.limited(request.settings)), measurement


def _options(arguments: Reproducing, label: str, sample: RecipeSample) -> dict[str, Any]:
    """The options of a sample, with the folders of the runs that it names, and what was given."""
    values = sample.at(arguments.size)
    for option, value in values.items():
        if str(value).startswith(OF_RUN):
            values[option] = arguments.folder(label, str(value).removeprefix(OF_RUN))
    return {**values, **{k: v for k, v in arguments.sample.items() if k in _known(sample)}}


def _known(sample: RecipeSample) -> set[str]:
    """The options that a sample can be given."""
    return {field.name for field in fields(instrument_named(sample.instrument).options)}


def _check_sample(arguments: Reproducing) -> None:
    available = {
        name
        for run in arguments.run_names
        for name in _known(arguments.paper.samples[arguments.paper.runs[run].sample])
    }
    for name in arguments.sample:
        if name not in available:
            there = ", ".join(sorted(available))
            raise UserError(f"--sample {name}: no run has such an option; there are: {there}")
