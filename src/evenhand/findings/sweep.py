"""A sweep sets several runs over the same items side by side: the report of each, and its
comparison with one of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.findings.comparison import Comparison, compare, same_sample
from evenhand.findings.display import Displayable, named
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import ScoringSpec, outcome_batches
from evenhand.runs.store import RunReader


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepArm:
    """An arm is one run of a sweep, under the name that it was asked for by."""

    name: str
    report: Report
    comparison: Comparison | None = None  # with the reference; None for the reference itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep(Displayable):
    """A sweep says what several methods, or several settings of one, showed on the same items.

    >>> found["fairness"].report["made_worse"], found["fairness"].comparison["made_worse"]
    """

    instrument: ScoringSpec
    reference: str | None  # the arm that the others are compared with, if it was run
    arms: tuple[SweepArm, ...]

    def __getitem__(self, name: str) -> SweepArm:
        """The arm of this name."""
        return named(self.arms, name, "arm")

    @property
    def below_floor(self) -> bool:
        """Too little could be scored in at least one of the runs."""
        return any(arm.report.coverage.below_floor for arm in self.arms)

    def frame(self) -> pl.DataFrame:
        """The rows of every report, with the name of its arm."""
        each = [arm.report.frame().select(pl.lit(arm.name).alias("arm"), pl.all())
                for arm in self.arms]  # fmt: skip
        return pl.concat(each)

    def to_dict(self) -> dict[str, Any]:
        return {
            "benchmark": self.instrument.name,
            "source": self.arms[0].report.source,
            "reference": self.reference,
            "arms": [
                {
                    "name": arm.name,
                    "report": arm.report.to_dict(),
                    "comparison": None if arm.comparison is None else arm.comparison.to_dict(),
                }
                for arm in self.arms
            ],
        }


def sweep(
    instrument: ScoringSpec,
    runs: Mapping[str, RunReader],
    reference: str | None = None,
    prices: Prices | None = None,
) -> Sweep:
    """Report every run, and compare each with a reference. All runs must use the same sample.

    Args:
        instrument: The benchmark of all runs.
        runs: The run of each method, by its name.
        reference: The name of the run to compare with; None for reports alone.
        prices: The price table; None for reports without costs.

    Raises:
        UserError: Without a run, or if the samples differ.
    """
    if not runs:
        raise UserError("There are no methods to report. Name at least one.")
    first, *others = runs.values()
    for run in others:
        same_sample(first, run)
    base = runs.get(reference) if reference is not None else None
    arms = []
    for name, run in runs.items():
        compared = None if base is None or name == reference else compare(instrument, base, run)
        arms.append(
            SweepArm(name=name, report=report(instrument, run, prices), comparison=compared)
        )
    return Sweep(
        instrument=instrument,
        reference=reference if base is not None else None,
        arms=tuple(arms),
    )


def outcomes(instrument: ScoringSpec, runs: Mapping[str, RunReader]) -> pl.DataFrame:
    """Give every row of every run with its outcome, and `method`, the name of its arm."""
    return pl.concat(
        rows.select(pl.lit(name).alias("method"), pl.all())
        for name, run in runs.items()
        for rows in outcome_batches(instrument, run)
    )
