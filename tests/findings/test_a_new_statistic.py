"""A statistic that nobody of us wrote is declared in one class, and every finding takes it or says
why not."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.experiments import gate_file
from evenhand.findings.comparison import compare
from evenhand.findings.estimates import Change, Estimate
from evenhand.findings.gate import GateCheck, gate
from evenhand.findings.measures import Clusterings, Statistic
from evenhand.findings.plan import plan
from evenhand.findings.report import report
from evenhand.findings.sequential import why_not
from evenhand.findings.worst_case import WorstCaseRun
from evenhand.instruments import Mean, Measure
from evenhand.models import ModelRequest
from evenhand.runs.store import RunReader
from evenhand.statistics.bootstrap import cluster_bootstrap
from tests.api.titles import Titles
from tests.coded import codes
from tests.errors import raises_naming

_SCORE = pl.col("score")
_SIDES = ("", ":after")
Runs = tuple[RunReader, RunReader]


@dataclass(frozen=True, slots=True)
class RootMeanSquare(Statistic):
    """The square root of the mean of squares; its interval comes from resampling clusters."""

    value: pl.Expr

    def columns(self) -> Mapping[str, pl.Expr]:
        return {"value": self.value.cast(pl.Float64)}

    def _sums(self, measure: Measure, rows: pl.DataFrame, side: str = "") -> np.ndarray:
        squares = pl.col(f"{measure.name}.value{side}") ** 2
        sums = rows.group_by("cluster", maintain_order=True).agg(squares.sum(), n=squares.count())
        table: np.ndarray = sums.drop("cluster").to_numpy().astype(np.float64)
        return table

    def estimate(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Estimate:
        assert by == ("cluster",)
        sums = self._sums(measure, table)
        drawn = cluster_bootstrap(sums, _root, kind="percentile")
        return Estimate(
            name=measure.name, value=drawn.estimate, low=drawn.low, high=drawn.high, n=len(table)
        )

    def fillings(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCaseRun]:
        return [WorstCaseRun(int(table[f"{measure.name}.missing"].sum()))]

    def change(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Change:
        old, new = (self._sums(measure, table, side) for side in _SIDES)
        drawn = cluster_bootstrap(
            np.column_stack([old, new]), lambda sums: _root(sums[:, 2:]) - _root(sums[:, :2])
        )
        sides = (float(_root(side.sum(axis=0, keepdims=True))[0]) for side in (old, new))
        before, after = sides
        return Change(
            name=measure.name, before=before, after=after, difference=after - before,
            effect=after - before, low=drawn.low, high=drawn.high, n=len(table),
            clusters=len(old), se=drawn.se, limits=(drawn.low, drawn.high),
        )  # fmt: skip


def _root(sums: np.ndarray) -> np.ndarray:
    root: np.ndarray = np.sqrt(sums[:, 0] / sums[:, 1])
    return root


@dataclass(frozen=True, slots=True)
class ClippedMean(Mean):
    """The mean of values that are cut at ±0.5: it needs no more than the value of a row."""

    @property
    def row_value(self) -> pl.Expr:
        return self.value.clip(-0.5, 0.5)

    def columns(self) -> Mapping[str, pl.Expr]:
        return {"value": self.row_value.cast(pl.Float64)}


class Scores(Titles):
    name = "scores"
    harm = "clipped"
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure(name="clipped", label="clipped", statistic=ClippedMean(_SCORE), better="lower",
                role="primary", margin=0.2, within=(-0.5, 0.5)),
        Measure(name="root", label="root", statistic=RootMeanSquare(_SCORE), better="lower",
                within=(0, 1)),
    )  # fmt: skip
    groups = ()

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        scores = rows["choice"].replace_strict({0: 1.0, 1: -1.0, 2: 0.0}, default=None)
        return super().outcomes(rows).with_columns(scores.alias("score"))


def _answering(letters: str) -> eh.ScriptedModel:
    """Answer by the text of the question, so that items differ and runs repeat."""

    def reply(request: ModelRequest) -> str:
        number = zlib.crc32(request.messages[-1].content.encode())
        return f'{{"answer": "{letters[number % len(letters)]}"}}'

    return eh.ScriptedModel(reply, name="scripted")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("runs")
    for name, letters in (("before", "AACAB"), ("after", "CCBCA")):
        eh.measure(Scores(), model=_answering(letters), out=folder / name)
    return RunReader(folder / "before"), RunReader(folder / "after")


def _numbers(run: RunReader) -> dict[str, float]:
    choices = run.results().collect()["choice"].to_numpy()
    scores = np.array([1.0, -1.0, 0.0])[choices]
    root = float(np.sqrt((scores**2).mean()))
    return {"clipped": float(np.clip(scores, -0.5, 0.5).mean()), "root": root}


def test_a_report_and_a_comparison_have_the_numbers_of_a_statistic_that_is_not_ours(
    runs: Runs,
) -> None:
    old, new = (_numbers(run) for run in runs)
    reported, compared = report(Scores(), runs[0]), compare(Scores(), *runs)
    for name, before in old.items():
        estimate, change = reported[name], compared[name]
        assert estimate.value == pytest.approx(before)
        assert estimate.has_interval
        assert (change.before, change.after) == pytest.approx((before, new[name]))
        assert change.difference == pytest.approx(new[name] - before)
        assert change.interval is not None
    assert compared["clipped"].p is not None
    assert compared["root"].p is None  # it declares no test


def test_a_plan_and_a_gate_take_the_statistic_that_has_a_test_and_refuse_the_other(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plan(Scores(), pilot=compare(Scores(), *runs), measure="clipped").rows
    check = GateCheck(name="c", instrument=Scores(), measure=Scores().measure("clipped"))
    (judged,) = gate([check], {"c": runs}).checks
    assert judged.verdict in ("pass", "inconclusive", "fail")
    monkeypatch.setattr(gate_file, "instrument_named", lambda _: Scores())
    (tmp_path / "g.toml").write_text(
        '[[check]]\ninstrument = "scores"\nmeasure = "root"\nmargin = 0.1'
    )
    with raises_naming(UserError, "'root'", "clipped"):
        gate_file.read(tmp_path / "g.toml")


def test_early_stopping_takes_the_mean_over_rows_and_says_why_it_refuses_the_other() -> None:
    clipped, root = Scores().measures
    assert why_not(Scores(), clipped) is None
    assert codes(why_not(Scores(), root)) == ["until.no_mean"]
