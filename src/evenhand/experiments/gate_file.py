"""The file of a gate says which numbers are checked, and by how much each may get worse."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.core.errors import UserError
from evenhand.core.new_files import write_new
from evenhand.findings.gate import GateCheck
from evenhand.findings.measures import Measure
from evenhand.findings.summed_statistics import Mean
from evenhand.instruments import Instrument, instrument_named
from evenhand.methods.build import build_method
from evenhand.runs.store.folder import as_file_name

EXAMPLE = (files("evenhand.experiments") / "gate_example.toml").read_text()
INIT = "`evenhand gate --init FILE` writes an example"
_HEAD = re.compile(r"^\s*\[\[\s*check\s*\]\]")
_Name = Annotated[str, Field(min_length=1, max_length=80)]


class _GateFileCheck(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    name: _Name | None = None
    instrument: str
    options: dict[str, Any] = {}
    measure: str | None = None
    margin: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    group: Annotated[dict[str, str], Field(min_length=1, max_length=1)] | None = None
    method: str = "default"
    set: list[str] = []
    model: str | None = None
    sequential: bool = False


class _GateFileSchema(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    check: Annotated[list[_GateFileCheck], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRun:
    """A run that one or several checks look at, into a folder of its own."""

    folder: str
    instrument: Instrument
    options: Mapping[str, Any]
    method: str
    set: Sequence[str]
    model: str | None
    sequential: bool = False  # it stops when each of its checks is decided

    @property
    def asks(self) -> tuple[Any, ...]:
        """What is asked of whom: checks that ask the same share a run."""
        return self.instrument.name, self.options, self.method, self.set, self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFile:
    """A gate's file, read and checked before anything is asked."""

    path: str
    checks: tuple[GateCheck, ...]
    runs: tuple[GateRun, ...]
    folders: Mapping[str, str]  # the name of a check -> the folder of its run


def read(path: Path) -> GateFile:
    """Read the file; what is wrong in it is said with the check it stands in."""
    try:
        text = path.read_text("utf-8")
        forms = _GateFileSchema.model_validate(tomllib.loads(text)).check
    except FileNotFoundError:
        raise UserError(f"there is no {path}: {INIT}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}; {INIT}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}; {INIT}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise UserError(f"{path}: {_place(first['loc'])}: {first['msg']}; {INIT}") from None
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    lines += [1] * (len(forms) - len(lines))  # a list may also be written in one line
    try:
        return _made(str(path), forms, lines)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def write_example(path: Path) -> None:
    """Write an example of the file, where there is none yet."""
    write_new(path, EXAMPLE.encode())


def _place(where: tuple[int | str, ...]) -> str:
    """Name the check by its number, as a person counts."""
    words = [f"number {step + 1}" if isinstance(step, int) else step for step in where]
    return " ".join(words[:2]) + "".join(f": {word}" for word in words[2:])


def _made(path: str, forms: Sequence[_GateFileCheck], lines: Sequence[int]) -> GateFile:
    checks: list[GateCheck] = []
    runs: list[GateRun] = []
    folders: dict[str, str] = {}
    stops: dict[str, list[bool]] = {}  # a run may stop early where each of its checks says so
    for form, line in zip(forms, lines, strict=False):
        instrument = instrument_named(form.instrument)
        instrument.options_from(form.options)
        build_method(form.method, form.set)
        measure = _measure(form, instrument)
        group = None if form.group is None else next(iter(form.group.items()))
        name = form.name or " ".join([instrument.name, measure.name, *(group or ())])
        if name in folders:
            raise UserError(f"Two checks have the name {name!r}. Rename one.")
        _refuse_group(instrument, group)
        checks.append(GateCheck(name=name, instrument=instrument, measure=measure, group=group,
                                by_default=form.measure is None, line=line))  # fmt: skip
        folder = f"run-{as_file_name(name)}"  # no name of a file that the gate writes
        run = GateRun(folder=folder, instrument=instrument, options=form.options,
                      method=form.method, set=form.set, model=form.model)  # fmt: skip
        there = next((earlier for earlier in runs if earlier.asks == run.asks), None)
        if there is None:
            if run.folder in [earlier.folder for earlier in runs]:
                raise UserError(
                    f"The check name {name!r} is too similar to another: both would use "
                    f"{run.folder}. Rename one."
                )
            runs.append(run)
        folders[name] = (there or run).folder
        stops.setdefault(folders[name], []).append(form.sequential)
    planned = tuple(replace(gate_run, sequential=all(stops[gate_run.folder])) for gate_run in runs)
    return GateFile(path=path, checks=tuple(checks), runs=planned, folders=folders)


def _measure(form: _GateFileCheck, instrument: Instrument) -> Measure:
    """The measure of a check, with the margin of the file."""
    if instrument.selects is not None:
        return _of_group(form, instrument)
    judged = [candidate for candidate in instrument.measures if _can_be_judged(candidate)]
    primary = instrument.primary()
    name = form.measure or instrument.harm or (primary[0].name if primary else None)
    measure = next((candidate for candidate in judged if candidate.name == name), None)
    if measure is None:
        names = ", ".join(candidate.name for candidate in judged)
        raise UserError(f"{instrument.name} has no measure {name!r} that a gate can judge; it has: "
                        f"{names}. Write one of them as measure = \"…\"")  # fmt: skip
    least, most = measure.range
    furthest = (
        most - least if measure.null is None else max(most - measure.null, measure.null - least)
    )
    if form.margin >= furthest:
        raise UserError(
            f"{form.name or measure.name}: a margin of {form.margin:g} allows everything, because "
            f"{measure.name} can regress by at most {furthest:g}. Use a smaller margin."
        )
    return replace(measure, margin=form.margin)


def _of_group(form: _GateFileCheck, instrument: Instrument) -> Measure:
    """The measure of a group, by its name alone: the runs say what it is."""
    if form.measure is None:
        raise UserError(
            f"{instrument.name} has one measure for each group of a run: name one, such as "
            'measure = "sex=woman"; report.json of a run lists them'
        )
    return Measure(
        name=form.measure,
        label=form.measure,
        statistic=Mean(pl.col(form.measure)),
        better="zero",
        within=(-1, 1),
        margin=form.margin,
    )


def _can_be_judged(measure: Measure) -> bool:
    """Say whether a gate can show that a number got no worse: it has a better side and ends, and a
    test of its own."""
    return measure.better != "none" and measure.bounded and measure.statistic.testable


def _refuse_group(instrument: Instrument, group: tuple[str, str] | None) -> None:
    columns = [grouping.column for grouping in instrument.groups]
    if group is not None and group[0] not in columns:
        names = ", ".join(columns) or "none"
        raise UserError(f"{instrument.name} has no groups by {group[0]!r}; it has: {names}")
