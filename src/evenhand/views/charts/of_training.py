"""The chart of a training: every quantity that was measured, step by step."""

from evenhand.findings.training_run import TrainingRun
from evenhand.views.charts import Chart
from evenhand.views.charts.lines import Series, lines


def charts(found: TrainingRun) -> tuple[Chart, ...]:
    """Draw the course of each quantity that has a number at all."""
    series = [
        Series(label=_label(one.quantity.label, one.not_numbers), points=one.points)
        for one in found.courses
        if one.points
    ]
    return (lines("training", f"{found.stage}, step by step", series),) if series else ()


def _label(name: str, lost: int) -> str:
    return f"{name} ({lost:,} steps without a number are left out)" if lost else name
