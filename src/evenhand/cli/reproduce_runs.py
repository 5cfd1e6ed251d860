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
from evenhand.cli.options import open_model
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
    in_flight: int
    replay: str | None
    take_over: bool
    reply_tokens: int | None
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
            reply_tokens=self.reply_tokens,
            answer_tokens=answer_tokens,
            prices=self.prices,
        )
        if model is None:
            return loaded
        named = loaded.models.get(model)
        default = named or loaded.default_model().model_copy(update={"model": model})
        return loaded.model_copy(update={"models": {**loaded.models, "default": default}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What will be run, and why the rest will not."""

    settings: Config
    models: tuple[str, ...]  # as folders are named by them
    jobs: tuple[Job, ...]
    missing: Mapping[Place, str]


def planned(asked: Asked) -> Planned:
    """The jobs of every model, each run after the one that it is played back from."""
    settings = asked.settings(None)
    names = _by_folder(_models(asked, settings))
    wanted = asked.paper.in_order(name for table in asked.tables for name in table.runs())
    for name in asked.only or ():
        if name not in wanted:
            raise UserError(f"--only {name}: there is no such run; there are: {', '.join(wanted)}")
    _check_sample(asked, wanted)
    jobs: list[Job] = []
    missing: dict[Place, str] = {}
    for label, model in names.items():
        for name in wanted:
            why = _why_not(asked, settings, name)
            if why:
                missing[label, name] = why
            else:
                jobs.append(_job(asked, label, model, name))
    chosen = [job for job in jobs if not asked.only or job.run in asked.only]
    if asked.pilot:  # what waits for another run needs the whole of it
        chosen = [job for job in chosen if not job.waits]
    jobs = [] if asked.show else chosen
    return Planned(settings=settings, models=tuple(names), jobs=tuple(jobs), missing=missing)


def laid_out(asked: Asked, plan: Planned) -> list[Reproduction]:
    """Every table that was asked for, from the run folders alone."""
    found: dict[Place, Found] = {}
    for model in plan.models:
        for name in asked.paper.in_order(name for table in asked.tables for name in table.runs()):
            one = found_in(asked.folder(model, name))
            if one is not None:
                found[model, name] = one
    missing = {place: why for place, why in plan.missing.items() if place not in found}
    return [
        reproduction(asked.paper, table, asked.size, found, missing, plan.models)
        for table in asked.tables
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


def _models(asked: Asked, settings: Config) -> Sequence[str]:
    """The models that were named; else those of the folder, or the one of the endpoint."""
    if asked.models:
        return asked.models
    place = asked.replay or (asked.out if asked.show else None)
    if place is not None:
        folder = Path(place) / asked.place
        found = sorted(one.name for one in folder.iterdir() if one.is_dir()) if (
            folder.is_dir()) else []  # fmt: skip
        if not found:
            raise UserError(f"{folder} has no runs; give --out as it was, or name --model")
        return found
    named = settings.default_model().model
    if asked.dry_run:  # nobody is asked, not even for a name
        return (named or "model",)
    return (named or asyncio.run(_only_model(settings)),)


async def _only_model(settings: Config) -> str:
    model = await open_model(settings.default_model())
    try:
        return model.name
    finally:
        await model.close()


def _why_not(asked: Asked, settings: Config, name: str) -> str | None:
    """Why a run cannot be made here, if it cannot."""
    spec = asked.paper.runs[name]
    if asked.replay is not None:
        return None
    if spec.trained is not None and _served(asked, spec.trained, "") is None:
        says = asked.paper.trained[spec.trained].says
        return f"it needs {says}, served and named: --trained {spec.trained}=MODEL"
    searched = settings.search is not None or SEARCH in settings.cast
    return NO_SEARCH if "search" in spec.needs and not searched else None


def _served(asked: Asked, weights: str, model: str) -> str | None:
    """Under which name weights are served: {model} and {name} are filled in, * is for all."""
    said = asked.trained.get(weights) or asked.trained.get("*")
    return None if said is None else said.replace("{model}", model).replace("{name}", weights)


def _job(asked: Asked, label: str, model: str, name: str) -> Job:
    spec = asked.paper.runs[name]
    if spec.trained is not None:
        model = _served(asked, spec.trained, model) or model  # a replay names nobody
    prepare = partial(_prepared, asked, label, model, name)
    waits = bool(asked.paper.waits_for(name))
    return Job(
        model=label,
        run=name,
        out=asked.folder(label, name),
        prepare=prepare,
        waits=waits,
        played_back=spec.replays is not None,
    )


def _prepared(
    asked: Asked, label: str, model: str, name: str
) -> tuple[Request, Measurement | None]:
    """The request of a run with one model, and what it measures."""
    spec = asked.paper.runs[name]
    sample = asked.paper.samples[spec.sample]
    if sample.kind == "audit":
        return _audit(asked, label, model, name), None
    instrument = _instrument(sample)
    options = instrument.options_from(_options(asked, label, sample))
    tokens = getattr(options, instrument.answer_tokens) if instrument.answer_tokens else None
    settings = asked.settings(model, answer_tokens=tokens)
    measurement = Measurement(
        instrument=instrument, options=options, services=ConfigServices(settings)
    )
    source = measurement.items(configuration.data_folder())
    return _order(asked, label, name, source, settings).request(), measurement


def _audit(asked: Asked, label: str, model: str, name: str) -> Request:
    """The request of an audit: the model is the judge, and nobody else is looked at."""
    sample = asked.paper.samples[asked.paper.runs[name].sample]
    data = MalibuData()
    design = TypeAdapter(Design).validate_python(_options(asked, label, sample))
    asked_of = MalibuSource(data.scenarios(None), data.labels(None), design)
    margins = {"score": SCORE_MARGIN, "win_rate": WIN_MARGIN}
    settings = asked.settings(model)
    alone = {"models": {"default": settings.default_model()}, "cast": {}, "search": None}
    source = AuditSource(asked_of, [], margins)
    order = _order(asked, label, name, source, settings.model_copy(update=alone))
    return replace(order, is_audit=True).request()


def _order(asked: Asked, label: str, name: str, source: Source, settings: Config) -> Order:
    spec = asked.paper.runs[name]
    words = asked.wording if has_wordings(method_named(spec.method)) else None
    replay = None if asked.replay is None else asked.folder(label, name, within=asked.replay)
    return Order(
        source=source,
        method=build_method(spec.method, spec.assignments, words),
        settings=settings,
        out=asked.folder(label, name),
        seed=asked.seed,
        in_flight=asked.in_flight,
        take_over=asked.take_over,
        max_cost=None,
        max_calls=None,
        replay=asked.folder(label, spec.replays) if spec.replays else replay,
        pilot=asked.pilot,
    )


def _options(asked: Asked, label: str, sample: Sample) -> dict[str, Any]:
    """The options of a sample, with the folders of the runs that it names, and what was given."""
    given = sample.at(asked.size)
    for option, value in given.items():
        if str(value).startswith(OF_RUN):
            given[option] = asked.folder(label, str(value).removeprefix(OF_RUN))
    return {**given, **{k: v for k, v in asked.sample.items() if k in _known(sample)}}


def _known(sample: Sample) -> set[str]:
    """The options that a sample can be given."""
    audit = sample.kind == "audit"
    return {one.name for one in fields(Design if audit else _instrument(sample).options)}


def _instrument(sample: Sample) -> Instrument:
    return instrument_named(sample.instrument)


def _check_sample(asked: Asked, runs: Sequence[str]) -> None:
    known = {
        name for run in runs for name in _known(asked.paper.samples[asked.paper.runs[run].sample])
    }
    for name in asked.sample:
        if name not in known:
            there = ", ".join(sorted(known))
            raise UserError(f"--sample {name}: no run has such an option; there are: {there}")
