"""The runs of a recipe as jobs: which model, which folder, and what cannot be run here."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from evenhand import config as configuration
from evenhand.cli.execution import Order
from evenhand.cli.services import ConfigServices
from evenhand.config import Config
from evenhand.errors import UserError
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.reproducing import Job, Place, found_in
from evenhand.experiments.request import Request
from evenhand.findings.reproduction import Found, Reproduction, reproduction
from evenhand.instruments import Instrument, instrument_named
from evenhand.instruments.judge import Design, MalibuData, MalibuSource
from evenhand.instruments.judge.effects import SCORE_MARGIN, WIN_MARGIN
from evenhand.instruments.judge.probes import AuditSource
from evenhand.methods import named as method_named
from evenhand.methods.build import build_method
from evenhand.methods.wording import Wording, has_wordings
from evenhand.papers import OF_RUN, Paper, Sample, Size, Table
from evenhand.runners import Source
from evenhand.store.folder import as_file_name
from evenhand.tools.search.base import ROLE as SEARCH

NO_SEARCH = "it needs a search engine: write [search] into the config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for on the command line."""

    paper: Paper
    tables: Sequence[Table]
    out: str
    size: Size
    models: Sequence[str]
    trained: Mapping[str, str]
    only: Sequence[str] | None
    show: bool
    dry_run: bool
    pilot: int | None
    prices: Path | None
    seed: int | None
    concurrency: int
    replay: str | None
    steal_lock: bool
    max_tokens: int | None
    base_url: str | None
    config: Path | None
    wording: Wording
    sample: Mapping[str, str]  # options of instruments, in the place of the recipe's

    @property
    def place(self) -> str:
        """The folder of the paper's runs and tables within --out, of this size and wording."""
        words = "" if self.wording == "ours" else f"-{self.wording}-wording"
        return f"{self.paper.name}/{self.size}{words}"

    def folder(self, model: str, run: str, within: str | None = None) -> str:
        """The run folder. Runs of one paper have one name each, so that tables share them."""
        return f"{within or self.out}/{self.place}/{model}/{run}"

    def settings(self, model: str | None, answer_tokens: int | None = None) -> Config:
        """The config in which this model plays by default: one that the config names, or a model
        of the default endpoint."""
        loaded = configuration.load(
            self.config,
            self.base_url,
            None,
            max_tokens=self.max_tokens,
            answer_tokens=answer_tokens,
            prices=self.prices,
        )
        if model is None:
            return loaded
        configured = loaded.models.get(model)
        default = configured or loaded.default_model().model_copy(update={"model": model})
        return loaded.model_copy(update={"models": {**loaded.models, "default": default}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What will be run, and why the rest will not."""

    settings: Config
    models: tuple[str, ...]  # as folders are named by them
    jobs: tuple[Job, ...]
    missing: Mapping[Place, str]


def planned(arguments: Asked) -> Planned:
    """The jobs of every model, each run after the one that it is played back from."""
    settings = arguments.settings(None)
    names = _by_folder(_models(arguments, settings))
    run_names = arguments.paper.in_order(
        name for table in arguments.tables for name in table.runs()
    )
    for name in arguments.only or ():
        if name not in run_names:
            raise UserError(
                f"--only {name}: there is no such run; there are: {', '.join(run_names)}"
            )
    _check_sample(arguments, run_names)
    jobs: list[Job] = []
    missing: dict[Place, str] = {}
    for label, model in names.items():
        for name in run_names:
            why = _why_not(arguments, settings, name)
            if why:
                missing[label, name] = why
            else:
                jobs.append(_job(arguments, label, model, name))
    chosen = [job for job in jobs if not arguments.only or job.run in arguments.only]
    if arguments.pilot:  # what waits for another run needs the whole of it
        chosen = [job for job in chosen if not job.waits]
    jobs = [] if arguments.show else chosen
    return Planned(settings=settings, models=tuple(names), jobs=tuple(jobs), missing=missing)


def laid_out(arguments: Asked, plan: Planned) -> list[Reproduction]:
    """Every table that was asked for, from the run folders alone."""
    results: dict[Place, Found] = {}
    for model in plan.models:
        for name in arguments.paper.in_order(
            name for table in arguments.tables for name in table.runs()
        ):
            result = found_in(arguments.folder(model, name))
            if result is not None:
                results[model, name] = result
    missing = {key: why for key, why in plan.missing.items() if key not in results}
    return [
        reproduction(arguments.paper, table, arguments.size, results, missing, plan.models)
        for table in arguments.tables
    ]


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


def _models(arguments: Asked, settings: Config) -> Sequence[str]:
    """The models that were named; else those of the folder, or the one of the endpoint."""
    if arguments.models:
        return arguments.models
    root = arguments.replay or (arguments.out if arguments.show else None)
    if root is not None:
        folder = Path(root) / arguments.place
        names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if (
            folder.is_dir()) else []  # fmt: skip
        if not names:
            raise UserError(f"{folder} has no runs; give --out as it was, or name --model")
        return names
    name = settings.default_model().model
    if arguments.dry_run:  # nobody is asked, not even for a name
        return (name or "model",)
    return (name or asyncio.run(_only_model(settings)),)


async def _only_model(settings: Config) -> str:
    model = await configuration.open_model(settings.default_model())
    try:
        return model.name
    finally:
        await model.close()


def _why_not(arguments: Asked, settings: Config, name: str) -> str | None:
    """Why a run cannot be made here, if it cannot."""
    spec = arguments.paper.runs[name]
    if arguments.replay is not None:
        return None
    if spec.trained is not None and _served(arguments, spec.trained, "") is None:
        description = arguments.paper.trained[spec.trained].says
        return f"it needs {description}, served and named: --trained {spec.trained}=MODEL"
    searched = settings.search is not None or SEARCH in settings.cast
    return NO_SEARCH if "search" in spec.needs and not searched else None


def _served(arguments: Asked, weights: str, model: str) -> str | None:
    """Under which name weights are served: {model} and {name} are filled in, * is for all."""
    template = arguments.trained.get(weights) or arguments.trained.get("*")
    return (
        None if template is None else template.replace("{model}", model).replace("{name}", weights)
    )


def _job(arguments: Asked, label: str, model: str, name: str) -> Job:
    spec = arguments.paper.runs[name]
    if spec.trained is not None:
        model = _served(arguments, spec.trained, model) or model  # a replay names nobody
    prepare = partial(_prepared, arguments, label, model, name)
    waits = bool(arguments.paper.waits_for(name))
    return Job(
        model=label,
        run=name,
        out=arguments.folder(label, name),
        prepare=prepare,
        waits=waits,
        played_back=spec.replays is not None,
    )


def _prepared(
    arguments: Asked, label: str, model: str, name: str
) -> tuple[Request, Measurement | None]:
    """The request of a run with one model, and what it measures."""
    spec = arguments.paper.runs[name]
    sample = arguments.paper.samples[spec.sample]
    if sample.kind == "audit":
        return _audit(arguments, label, model, name), None
    instrument = _instrument(sample)
    options = instrument.options_from(_options(arguments, label, sample))
    tokens = getattr(options, instrument.answer_tokens) if instrument.answer_tokens else None
    settings = arguments.settings(model, answer_tokens=tokens)
    measurement = Measurement(
        instrument=instrument, options=options, services=ConfigServices(settings)
    )
    source = measurement.items(configuration.data_folder())
    return _order(arguments, label, name, source, settings).request(), measurement


def _audit(arguments: Asked, label: str, model: str, name: str) -> Request:
    """The request of an audit: the model is the judge, and nobody else is looked at."""
    sample = arguments.paper.samples[arguments.paper.runs[name].sample]
    data = MalibuData()
    design = TypeAdapter(Design).validate_python(_options(arguments, label, sample))
    asked_of = MalibuSource(data.scenarios(None), data.labels(None), design)
    margins = {"score": SCORE_MARGIN, "win_rate": WIN_MARGIN}
    settings = arguments.settings(model)
    alone = {"models": {"default": settings.default_model()}, "cast": {}, "search": None}
    source = AuditSource(asked_of, [], margins)
    order = _order(arguments, label, name, source, settings.model_copy(update=alone))
    return replace(order, is_audit=True).request()


def _order(arguments: Asked, label: str, name: str, source: Source, settings: Config) -> Order:
    spec = arguments.paper.runs[name]
    words = arguments.wording if has_wordings(method_named(spec.method)) else None
    replay = (
        None if arguments.replay is None else arguments.folder(label, name, within=arguments.replay)
    )
    return Order(
        source=source,
        method=build_method(spec.method, spec.assignments, words),
        settings=settings,
        out=arguments.folder(label, name),
        seed=arguments.seed,
        concurrency=arguments.concurrency,
        steal_lock=arguments.steal_lock,
        max_cost=None,
        max_calls=None,
        replay=arguments.folder(label, spec.replays) if spec.replays else replay,
        pilot=arguments.pilot,
    )


def _options(arguments: Asked, label: str, sample: Sample) -> dict[str, Any]:
    """The options of a sample, with the folders of the runs that it names, and what was given."""
    values = sample.at(arguments.size)
    for option, value in values.items():
        if str(value).startswith(OF_RUN):
            values[option] = arguments.folder(label, str(value).removeprefix(OF_RUN))
    return {**values, **{k: v for k, v in arguments.sample.items() if k in _known(sample)}}


def _known(sample: Sample) -> set[str]:
    """The options that a sample can be given."""
    audit = sample.kind == "audit"
    return {field.name for field in fields(Design if audit else _instrument(sample).options)}


def _instrument(sample: Sample) -> Instrument:
    return instrument_named(sample.instrument)


def _check_sample(arguments: Asked, runs: Sequence[str]) -> None:
    available = {
        name
        for run in runs
        for name in _known(arguments.paper.samples[arguments.paper.runs[run].sample])
    }
    for name in arguments.sample:
        if name not in available:
            there = ", ".join(sorted(available))
            raise UserError(f"--sample {name}: no run has such an option; there are: {there}")
