"""Repeats say how much a number moves when everything is run again: the mean and the standard
deviation over runs of one setting, for several settings side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.comparison import same_sample
from evenhand.findings.conditions import SEED, WORDING, require_distinct
from evenhand.findings.display import Displayable
from evenhand.findings.estimates import Bounds, Estimate, bounds_in_columns
from evenhand.findings.report import ALL, Report, report, require
from evenhand.findings.scoring import ScoringSpec
from evenhand.runs.store import RunReader, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedNumber:
    """A number over several runs. Its sd is that of a sample (n − 1); None for one run. It has no
    mean where a run has no value: the others would be the mean of another setting. `bounds` are
    those of the mean, where a run misses answers."""

    name: str
    group: str  # "all", or a value of the instrument's groups such as "age"
    mean: float | None
    sd: float | None
    values: tuple[float | None, ...]  # by run
    bounds: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedSetting:
    """A setting that was run several times."""

    name: str
    runs: tuple[str, ...]
    seeds: tuple[int | None, ...]
    numbers: tuple[RepeatedNumber, ...]
    warnings: tuple[str, ...]

    def number(self, name: str, group: str = ALL) -> RepeatedNumber | None:
        """Give the number of a measure in a group, if it has one."""
        matches = (
            number for number in self.numbers if (number.name, number.group) == (name, group)
        )
        return next(matches, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats(Displayable):
    """Repeats of one or more settings over the same items, as a table of mean ± sd."""

    instrument: ScoringSpec
    settings: tuple[RepeatedSetting, ...]

    def frame(self) -> pl.DataFrame:
        """Give one row per setting, group and measure: mean, sd and the value of each run."""
        rows = [
            {"setting": setting.name, "group": n.group, "name": n.name, "mean": n.mean, "sd": n.sd,
             "values": list(n.values), **bounds_in_columns(n.bounds)}
            for setting in self.settings
            for n in setting.numbers
        ]  # fmt: skip
        floats = {name: pl.Float64() for name in ("mean", "sd", "worst_low", "worst_high")}
        numbers: dict[str, pl.DataType] = {**floats, "values": pl.List(pl.Float64())}
        return pl.DataFrame(rows, schema_overrides=numbers, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        return {"benchmark": self.instrument.name, "settings": self.settings}


def repeats(instrument: ScoringSpec, settings: Sequence[Sequence[RunReader]]) -> Repeats:
    """Compute mean and sd over the runs of each setting. All runs are over the same items."""
    first = settings[0][0]
    for runs in settings:
        for run in runs:
            require(instrument, run)
            same_sample(first, run)
            _require_one_judge(instrument, first, run)
        require_distinct(runs)
        _require_one_method(runs)
    return Repeats(
        instrument=instrument, settings=tuple(_setting(instrument, runs) for runs in settings)
    )


def _require_one_judge(instrument: ScoringSpec, first: RunReader, run: RunReader) -> None:
    judges = [instrument.judge_of(reader) for reader in (first, run)]
    if judges[0] != judges[1]:
        raise UserError(
            f"{first.path} was judged by {judges[0] or 'nobody'}, {run.path} by "
            f"{judges[1] or 'nobody'}: numbers of two judges are not put side by side"
        )


def _require_one_method(runs: Sequence[RunReader]) -> None:
    """Models may differ, such as weights that were trained three times; a method may not."""
    first, *others = runs
    for run in others:
        if _method(run.record) != _method(first.record):
            raise UserError(
                f"{first.path} and {run.path} are of two methods: name the runs of one setting "
                "with commas between, and those of another after a blank"
            )


def _method(record: RunRecord) -> dict[str, Any]:
    settings = {k: v for k, v in record.method["settings"].items() if k not in (SEED, WORDING)}
    return {"name": record.method["name"], **settings}


def _setting(instrument: ScoringSpec, runs: Sequence[RunReader]) -> RepeatedSetting:
    results = [report(instrument, run) for run in runs]
    models = ", ".join(dict.fromkeys(result.side.model for result in results))
    keys = {key: None for result in results for key in _numbers(result)}
    return RepeatedSetting(
        name=f"{results[0].side.method['name']}, {models}",
        runs=tuple(result.side.run for result in results),
        seeds=tuple(run.record.seed for run in runs),
        numbers=tuple(
            _over(key, [_numbers(result).get(key) for result in results]) for key in keys
        ),
        warnings=tuple(line for result in results for line in _warnings(result)),
    )


def _numbers(result: Report) -> dict[tuple[str, str], Estimate]:
    """The estimates of a report by group and name."""
    every = {(ALL, estimate.name): estimate for estimate in result.estimates}
    for values in result.groups.values():
        every |= {
            (value, estimate.name): estimate for value, each in values.items() for estimate in each
        }
    return every


def _over(key: tuple[str, str], estimates: Sequence[Estimate | None]) -> RepeatedNumber:
    group, name = key
    values = tuple(estimate.value if estimate else None for estimate in estimates)
    present = [value for value in values if value is not None]
    complete = len(present) == len(values)
    return RepeatedNumber(
        name=name,
        group=group,
        mean=fmean(present) if complete else None,
        sd=stdev(present) if complete and len(present) > 1 else None,
        values=values,
        bounds=_bounds_of_mean(estimates) if complete else None,
    )


def _bounds_of_mean(estimates: Sequence[Estimate | None]) -> Bounds | None:
    """The mean of the runs' bounds: all missing answers filled the one way, and all the other."""
    present = [estimate for estimate in estimates if estimate is not None]
    lost = [estimate.bounds for estimate in present if estimate.bounds is not None]
    if not lost:
        return None
    lows = [estimate.bounds.low if estimate.bounds else estimate.value for estimate in present]
    highs = [estimate.bounds.high if estimate.bounds else estimate.value for estimate in present]
    low, high = (fmean(e for e in ends if e is not None) if None not in ends else None
                 for ends in (lows, highs))  # fmt: skip
    return Bounds(missing=sum(bounds.missing for bounds in lost), low=low, high=high)


def _warnings(result: Report) -> list[str]:
    lines = []
    if result.not_run:
        lines.append(f"{result.side.run}: {result.not_run:,} items are not run yet")
    missing = result.coverage.n - result.coverage.scored
    if missing:
        lines.append(f"{result.side.run}: {missing:,} of {result.coverage.n:,} not scored")
    return [*lines, *(f"{result.side.run}: {note}" for note in result.notes)]
