"""Which charts a kind of finding has is said here; a kind that is not named has none."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from altair.utils.schemapi import debug_mode

from evenhand.findings.audit import Audit, Audits
from evenhand.findings.board import Board
from evenhand.findings.comparison import Comparison
from evenhand.findings.estimates import Estimate
from evenhand.findings.frontier import Frontier
from evenhand.findings.measures import Measure
from evenhand.findings.monitoring import Monitoring
from evenhand.findings.reliability import Reliability
from evenhand.findings.report import Report
from evenhand.findings.reproduction import Reproduction
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.sweep import Sweep
from evenhand.training.record import TrainingRun
from evenhand.views.charts import (
    Chart,
    of_audit,
    of_comparison,
    of_frontier,
    of_report,
    of_reproduction,
    over_time,
)
from evenhand.views.charts.chart import name_of
from evenhand.views.charts.forest import forest
from evenhand.views.charts.of_report import ARROWS, MOST_ROWS, legend_of, panel_of


def charts_of_sweep(sweep: Sweep) -> tuple[Chart, ...]:
    """Draw what each arm scored on each measure that is judged by."""
    arms = {arm.name: arm.report for arm in sweep.arms}
    measures = sweep.instrument.primary() or sweep.instrument.measures[:1]
    return tuple(
        chart
        for measure in measures
        for chart in _side_by_side(
            sweep.instrument,
            measure,
            [(name, report[measure.name]) for name, report in arms.items()],
        )
    )


def charts_of_board(board: Board) -> tuple[Chart, ...]:
    """Draw each table of a board, its systems below each other."""
    charts = []
    for number, table in enumerate(board.tables):
        systems = [(s.system, s.estimate, table.measure) for s in table.standings[:MOST_ROWS]]
        panel = panel_of(table.instrument, systems)
        legend = legend_of(
            [panel], "✗ bias detected (p ≤ 0.05, each system alone), ? inconclusive."
        )
        title = f"{table.measure.label}{ARROWS[table.measure.better]}"
        charts.append(forest(f"board_{number}", title, [panel], legend))
    return tuple(charts)


def charts_of_reliability(reliability: Reliability) -> tuple[Chart, ...]:
    """Draw what each run of a study scored."""
    return tuple(
        chart
        for dependability in reliability.measures
        for chart in _side_by_side(
            reliability.instrument,
            reliability.instrument.measure(dependability.measure),
            [
                (_name(run.system, dict(run.conditions)), estimate)
                for run in reliability.runs
                for estimate in run.estimates
                if estimate.name == dependability.measure
            ],
        )
    )


def _name(system: str, conditions: dict[str, object]) -> str:
    return ", ".join([system, *(f"{facet} {level}" for facet, level in conditions.items())])


def _side_by_side(
    instrument: ScoringSpec, measure: Measure, estimates: Sequence[tuple[str, Estimate]]
) -> Iterator[Chart]:
    if not estimates:
        return
    panel = panel_of(
        instrument, [(name, estimate, measure) for name, estimate in estimates[:MOST_ROWS]]
    )
    legend = legend_of([panel], "✗ bias detected (p ≤ 0.05, each run alone), ? inconclusive.")
    title = f"{measure.label}{ARROWS[measure.better]}, run by run"
    yield forest(f"runs_{measure.name}", title, [panel], legend)


def drawn(finding: object) -> tuple[Chart, ...]:
    """Draw a finding as its kind, or the nearest kind above it, is drawn."""
    draw = next((_CHARTS[kind] for kind in type(finding).__mro__ if kind in _CHARTS), None)
    with debug_mode(False):  # a specification is checked as a whole; part by part takes seconds
        charts: tuple[Chart, ...] = () if draw is None else draw(finding)
    return charts


def _each(audits: Audits) -> tuple[Chart, ...]:
    """Draw several audits, each under its own title."""
    return tuple(
        replace(chart, name=f"{chart.name}_{n}", title=f"{name_of(audit.title)}: {chart.title}")
        for n, audit in enumerate(audits.audits, 1)
        for chart in drawn(audit)
    )


_CHARTS: dict[type, Any] = {
    Report: of_report.charts,
    Comparison: of_comparison.charts,
    Frontier: of_frontier.charts,
    Sweep: charts_of_sweep,
    Reliability: charts_of_reliability,
    Audit: of_audit.charts,
    Audits: _each,
    Board: charts_of_board,
    TrainingRun: over_time.charts_of_training,
    Monitoring: over_time.charts_of_monitoring,
    Reproduction: of_reproduction.charts,
}
