"""The arguments of the Python functions, checked and made into what an experiment needs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from inspect import isclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from evenhand.agents import Cast, Limits
from evenhand.core import Item, environment
from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.experiments import config as configuration
from evenhand.experiments.dossiers import runs_in
from evenhand.experiments.measuring import Measurement, RunModels
from evenhand.experiments.request import OpenCast, Request
from evenhand.experiments.running import RunEnd
from evenhand.experiments.settings import RunSettings, settings_from
from evenhand.experiments.stopping import StoppingQuestion
from evenhand.findings.audit import is_audit
from evenhand.findings.comparison import Comparison
from evenhand.findings.comparison import compare as comparison_of
from evenhand.findings.report import Report
from evenhand.findings.run import Run
from evenhand.findings.scoring import ScoringSpec
from evenhand.instruments import (
    DataFolder,
    Instrument,
    instrument_named,
    instrument_of,
    same_instrument,
)
from evenhand.instruments.likelihood_sets import compare_sets, runs_at
from evenhand.methods import Method
from evenhand.methods.build import build_method
from evenhand.models.base import ChatModel
from evenhand.models.endpoint import sendable_params
from evenhand.models.libraries import library_of, open_by_name
from evenhand.runs.runners import ItemList, Source
from evenhand.runs.runners.source import item_of, read_item
from evenhand.runs.store import RunReader
from evenhand.scorers import Scorer

Model = ChatModel | Cast | str
"""A model, a cast of several, or the name of one: `litellm:PROVIDER/MODEL`."""
Given = str | Path | Run | Report
_ENDPOINT = 'evenhand.Endpoint("http://…/v1", model="gpt-4o")'


def cast_of(
    model: Model | None, system: str | None = None, params: Mapping[str, JsonValue] | None = None
) -> Cast:
    """The cast that a model is, whose every role it then plays.

    Args:
        model: A model, a cast of several, or a model's name.
        system: A system prompt for the default model; None for none.
        params: Further fields of every request to a model that is given by its name.

    Returns:
        The cast.
    """
    if system is not None and not (isinstance(system, str) and system.strip()):
        raise UserError("system is empty: give the words of a system prompt, or leave it out")
    if model is None:
        raise UserError(f"this asks a model: give model={_ENDPOINT}")
    if isinstance(model, str) and library_of(model):
        return Cast(open_by_name(model, params=params)).with_system(system)
    if params:
        raise UserError(
            "params are for a model that is given by its name. Give them to the model itself: "
            'evenhand.Endpoint("http://…/v1", model="…", params={…})'
        )
    if isinstance(model, Cast):
        return model.with_system(system)
    if isinstance(model, str) or isclass(model) or not hasattr(model, "complete"):
        raise UserError(f"model is {_kind(model)}: give {_ENDPOINT}")
    return Cast(model).with_system(system)


def cast_for(
    method: Method,
    model: Model,
    system: str | None,
    params: Mapping[str, JsonValue] | None = None,
) -> Cast:
    """Assign a model to the roles of a method.

    Args:
        method: The method whose agents are asked.
        model: A model, a cast of several, or a model's name.
        system: A system prompt for the default model; None for none.
        params: Further fields of every request to a model that is given by its name.

    Returns:
        The cast.

    Raises:
        UserError: If no agent of the method would get the system prompt.
    """
    cast = cast_of(model, system, params)
    if system is not None and not any(map(cast.system_for, method.agents())):
        raise UserError(f"nobody gets the system prompt: {method.name} asks no agent that writes")
    return cast


def _opener_of(cast: Cast | None) -> OpenCast:
    """Open a cast that exists already. A run that asks nobody needs none and never calls it; one
    that asks scorers alone has the built-in ones, as on the command line."""

    async def opened(method: Method) -> Cast:
        agents = method.agents()
        if cast is None and all(agent.kind == "scorer" for agent in agents):
            return await configuration.open_cast(configuration.of_environment(), agents)
        return cast or cast_of(None)

    return opened


def settings_of(values: Mapping[str, Any], *, pilot: int | None = None) -> RunSettings:
    """Make run settings from the keyword arguments of a function.

    Args:
        values: The arguments that were given.
        pilot: Answer only so many items.

    Returns:
        The settings, with defaults for the others.

    Raises:
        UserError: If an argument is not a setting, or a required one is missing.
    """
    settings = settings_from(values, read=_READ)
    return settings if pilot is None else replace(settings, pilot=pilot)


def request_of(
    source: Source, method: Method, settings: RunSettings, *, model: Model | None = None
) -> Request:
    """Make the request of a Python function, whose models exist already.

    Args:
        source: The items.
        method: What is done with each.
        settings: How it is run.
        model: The model, or a cast of several. None for a run that asks nobody.

    Returns:
        The request.
    """
    # What is wrong with it is said before anything is read.
    cast = None if model is None else cast_of(model, settings.system, settings.params)
    return Request(
        source=source,
        method=method,
        open_cast=_opener_of(cast),
        systems=_systems(model, settings.system),
        models_at_hand=model is not None,
        owns_models=isinstance(model, str),  # then nobody else has it
        params={"default": sendable_params(settings.params)} if settings.params else {},
        ray_address=environment.ray_cluster() if settings.engine == "ray" else None,
        settings=settings,
    )


def _systems(model: Model | None, system: str | None) -> dict[str, str]:
    """The system prompt of each role, and of the default model: "" where it has none."""
    if not isinstance(model, Cast):
        return {"default": system or ""}
    cast = model.with_system(system)
    return {role: cast.system.get(role, "") for role in ("default", *cast.roles)}


def method_of(method: Method | str) -> Method:
    """A method by its name, or the one that was given."""
    if isinstance(method, str):
        return build_method(method)
    hint = 'give a name such as "stardtox", or an object such as evenhand.methods.StarDTox()'
    if isclass(method):
        raise UserError(f"method is the class {method.__name__}: write {method.__name__}()")
    if not (hasattr(method, "agents") and hasattr(method, "answer")):
        raise UserError(f"method is {_kind(method)}: {hint}")
    if not is_dataclass(method):
        raise UserError(
            f"the method {type(method).__name__} is not a dataclass, so the run's record cannot "
            "keep its settings: write @dataclass(frozen=True) above it"
        )
    return method


def measuring(instrument: Instrument | str) -> Instrument:
    """An instrument by its name, or the one that was given."""
    if isinstance(instrument, str):
        return instrument_named(instrument)
    if isclass(instrument):
        raise UserError(f"instrument is the class {instrument.__name__}: add parentheses")
    if not isinstance(instrument, Instrument):
        raise UserError(
            f'instrument is {_kind(instrument)}: give a name such as "bbq", or an object whose '
            "class is derived from evenhand.Instrument"
        )
    return instrument


Asked = Item | str | Mapping[str, object]
"""What is answered: a prompt, an `Item`, or the fields of a line of a file, such as `messages`."""


def item_in(file: Path) -> Item:
    """Read the one conversation of a file, in a form that `mitigate` reads."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    lines = [line for line in data.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].rstrip().endswith(b"}"):
        raise UserError(
            f"{file} has {len(lines):,} lines, and one conversation is answered. For all of them: "
            f"evenhand mitigate {file} --method default --out RUN"
        )
    return read_item(data, 0, str(file))


def source_of(items: Iterable[Asked] | Source) -> Source:
    """Items and prompts in the order given; a source stays as it is."""
    if isinstance(items, str | Item | Mapping):
        raise UserError(f"items is {_kind(items)}: give a list, [{'…' * isinstance(items, str)}]")
    if hasattr(items, "fingerprint"):
        return items  # type: ignore[return-value]
    item_list = [item(entry, position) for position, entry in enumerate(items)]
    first: dict[str, int] = {}
    for position, entry in enumerate(item_list):
        if first.setdefault(entry.id, position) != position:
            raise UserError(
                f"items[{first[entry.id]}] and items[{position}] have the same id "
                f"{entry.id[:60]!r}: give each one of its own"
            )
    return ItemList(item_list)


def item(entry: Asked, position: int = 0) -> Item:
    """Make an item of what is answered."""
    if isinstance(entry, Item):
        return entry
    if isinstance(entry, str):
        return Item(id=str(position), prompt=entry)
    if isinstance(entry, Mapping):
        return item_of(dict(entry), position, f"items[{position}]")
    raise UserError(
        f"item {position} is {_kind(entry)}: give a str, an evenhand.Item, or a dict with messages"
    )


def prices_of(prices: Prices | str | Path | None) -> Prices | None:
    """Prices, or those in a file as --prices takes it."""
    return prices if isinstance(prices, Prices | None) else configuration.prices_in(Path(prices))


def path_of(value: str | Path | None) -> Path | None:
    """A path that may be left out."""
    return None if value is None else Path(value)


def _optional_text(value: str | Path | None) -> str | None:
    return None if value is None else str(value)


_READ: dict[str, Callable[[Any], Any]] = {
    "out": str,
    "replay": _optional_text,
    "reuse": lambda runs: tuple(map(str, runs)),
    "certificates": path_of,
    "prices": prices_of,
    "limits": lambda limits: limits or Limits(),
}


def listed(runs: Given | Sequence[Given]) -> list[Given]:
    """One run as a list of one; a list of runs as it is."""
    return list(runs) if isinstance(runs, list | tuple) else [runs]  # type: ignore[list-item]


def reader_of(run: Given) -> RunReader:
    """The reader of a run that is named, opened or reported."""
    if isinstance(run, Run):
        return run.reader
    return RunReader(run.side.run if isinstance(run, Report) else run)


def readers_of(run: Given) -> list[RunReader]:
    """The readers of what is named: a folder of likelihood sets holds several runs."""
    return runs_in(str(run)) if isinstance(run, str | Path) else [reader_of(run)]


def instrument_in(run: Given) -> ScoringSpec | None:
    """The instrument that a report says; None where it is the installed one of its name."""
    return run.instrument if isinstance(run, Report) else None


def folder_of(data: str | Path | None) -> DataFolder:
    """The folder of data sets: this one, or else the one that EVENHAND_DATA names."""
    usual = configuration.data_folder()
    return usual if data is None else DataFolder(local=Path(data), cache=usual.cache)


class Scorers:
    """Scorers by name: those that were given, then the built-in ones and KIND=URL."""

    def __init__(self, scorers: Mapping[str, Scorer] | None) -> None:
        self._given = dict(scorers or {})
        self._opened: dict[str, Scorer] = {}

    def scorer(self, name: str) -> Scorer:
        """One that was given, else one that is opened here, once."""
        if name in self._given:
            return self._given[name]
        if name not in self._opened:
            self._opened[name] = configuration.scorer_by_name(configuration.of_environment(), name)
        return self._opened[name]

    async def close(self) -> None:
        """Close those that were opened here; who gave a scorer closes it."""
        for scorer in self._opened.values():
            await scorer.close()
        self._opened.clear()


def run_models(
    model: Model | None, scorers: Mapping[str, Scorer] | None, data: str | Path | None
) -> RunModels:
    """Give measurements the model, the scorers and the data that a function is given."""

    def request(
        source: Source, method: Method, settings: RunSettings, measurement: Measurement | None
    ) -> Request:
        audits = measurement is not None and is_audit(measurement.instrument)
        return replace(request_of(source, method, settings, model=model), is_audit=audits)

    return RunModels(request=request, services=Scorers(scorers), data=folder_of(data))


def _kind(value: Any) -> str:
    name = value.__name__ if isclass(value) else type(value).__name__
    article = "the class" if isclass(value) else "an" if name[0].lower() in "aeiou" else "a"
    return f"{article} {name}"


def whole(ended: RunEnd, done: str = "every method was run") -> None:
    """Refuse runs that ended early: before `done`."""
    if ended.early:
        raise UserError(
            f"The run stopped at {ended.capped_by or 'a signal'} before {done}. Nothing is lost. "
            "Call it again with a higher cap to continue."
        )


def compared(
    before: Given | Sequence[Given],
    after: Given | Sequence[Given],
    instrument: Instrument | None,
) -> Comparison:
    """Compare two sides of one instrument.

    Args:
        before: The run or runs of the first side, or their reports.
        after: The run or runs of the second side, or their reports.
        instrument: The instrument; None to take it from a report, or else from the runs.

    Returns:
        The comparison.

    Raises:
        UserError: If the runs are not of the same instrument.
    """
    sides = listed(before), listed(after)
    runs = [[reader_of(run) for run in side] for side in sides]
    for run in (*runs[0], *runs[1]):
        same_instrument(runs[0][0], run)
    instruments = [
        report.instrument for side in sides[::-1] for report in side if isinstance(report, Report)
    ]
    chosen = instrument or next(iter(instruments), None) or instrument_of(runs[1][0])
    return comparison_of(chosen, *runs)


def compared_folders(before: Sequence[str], after: Sequence[str]) -> list[Comparison]:
    """Compare the runs of two sides; of folders with runs of several likelihood sets, each set."""
    sets = runs_at(after[0]) if len(before) == len(after) == 1 else {}
    return compare_sets(runs_at(before[0]), sets) if sets else [compared(before, after, None)]


def question_of(stop_when: str | None, these: bool) -> StoppingQuestion | None:
    """The question that a measurement is to decide; none where all items are asked."""
    if stop_when is None and these:
        raise UserError('finite_population needs stop_when="MEASURE=MARGIN"')
    return None if stop_when is None else StoppingQuestion(stop_when, these)


def why_no_report(ended: RunEnd, out: str) -> str:
    """Explain that a report is missing because no item was finished."""
    if ended.capped_by is None:
        return f"no item of {out} was finished; call it again to go on"
    cap = ended.capped_by.lstrip("-").replace("-", "_")
    return f"{cap} was reached before an item of {out} was finished: raise {cap}"
