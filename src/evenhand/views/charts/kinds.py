"""Which charts a kind of finding has is said here; a kind that is not named has none."""

from dataclasses import replace
from typing import Any

from altair.utils.schemapi import debug_mode

from evenhand.findings.audit import Audit, Audits
from evenhand.findings.comparison import Comparison
from evenhand.findings.frontier import Frontier
from evenhand.findings.monitoring import Monitoring
from evenhand.findings.reliability import Reliability
from evenhand.findings.report import Report
from evenhand.findings.sweep import Sweep
from evenhand.training.record import TrainingRun
from evenhand.views.charts import (
    Chart,
    of_audit,
    of_comparison,
    of_frontier,
    of_monitoring,
    of_report,
    of_runs,
    of_training,
)
from evenhand.views.charts.chart import name_of


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
    Sweep: of_runs.charts_of_sweep,
    Reliability: of_runs.charts_of_reliability,
    Audit: of_audit.charts,
    Audits: _each,
    TrainingRun: of_training.charts,
    Monitoring: of_monitoring.charts,
}
