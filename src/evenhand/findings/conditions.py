"""The conditions of a run are what may change without changing what is measured: the order of
options, the wording of the prompt and the seed. The rest of its plan says which system it is of."""

from collections.abc import Sequence
from typing import Any

import orjson

from evenhand.core.errors import UserError
from evenhand.findings.report import models_of, system_prompt
from evenhand.runs.store import RunReader, RunRecord
from evenhand.runs.store.run_record import shown_prompt

ORDER, WORDING, SEED = "order", "wording", "seed"


def conditions(record: RunRecord) -> dict[str, Any]:
    """Give the level of each condition; None where the run has no such thing."""
    source, settings = record.source, record.method["settings"]
    drawn_with = source.get("sampling", {}).get("seed")
    return {
        ORDER: source.get("order_seed", drawn_with),
        WORDING: settings[WORDING] if _is_condition(WORDING, settings.get(WORDING)) else None,
        SEED: record.seed if record.seed is not None else settings.get(SEED),
    }


def system(record: RunRecord) -> str:
    """Name the system that a run is of: the method with its settings, and who plays its roles."""
    settings = _settings(record)
    details = ", ".join(f"{name}={value}" for name, value in settings.items())
    name = f"{record.method['name']}{f' ({details})' if details else ''}, {models_of(record.cast)}"
    prompt = system_prompt(record.cast)
    return f"{name}, system prompt {shown_prompt(prompt)}" if prompt else name


def require_one_system(runs: Sequence[RunReader]) -> None:
    """Refuse to average runs of two systems: the mean would be of neither."""
    first, *others = runs
    require_distinct(runs)
    for run in others:
        if _identity(run.record) != _identity(first.record):
            raise UserError(
                f"{first.path} is of {system(first.record)}, {run.path} of {system(run.record)}: "
                "the runs of one side may differ in order, wording and seed alone; give runs of "
                "two systems as two sides, `evenhand compare A1,A2 B1,B2`"
            )


def require_distinct(runs: Sequence[RunReader]) -> None:
    """Refuse a run that is given twice, and two that repeat one seed under the same conditions: a
    repeated draw says nothing new. Without a seed a model draws a new sample."""
    by_mark: dict[Any, RunReader] = {}
    for run in runs:
        levels = conditions(run.record)
        again = None if levels[SEED] is None else (_identity(run.record), *levels.values())
        for mark in filter(None, (str(run.path), again)):
            if mark in by_mark:
                raise UserError(
                    f"{by_mark[mark].path} and {run.path} are the same draw: same system, order, "
                    "wording and seed. Repeat the run with another --seed, or leave one out"
                )
            by_mark[mark] = run


def _identity(record: RunRecord) -> bytes:
    identity = [record.method["name"], _settings(record), record.cast]
    return orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)


def _settings(record: RunRecord) -> dict[str, Any]:
    settings = record.method["settings"]
    return {name: value for name, value in settings.items() if not _is_condition(name, value)}


def _is_condition(name: str, value: Any) -> bool:
    """Of a method's settings: the seed, and a wording that is a number. One that has a name
    ("paper") has another intent, and so is of another system."""
    return name == SEED or (name == WORDING and isinstance(value, int))
