"""The charts of several runs side by side: each run's number on the same axis."""

from collections.abc import Iterator, Sequence

from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.reliability import Reliability
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.sweep import Sweep
from evenhand.views.charts import Chart
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
    legend = legend_of([panel], "✗ a bias is shown (p ≤ 0.05, each run alone), ? it is not.")
    title = f"{measure.label}{ARROWS[measure.better]}, run by run"
    yield forest(f"runs_{measure.name}", title, [panel], legend)
