"""The chart of a training: every quantity that was measured, step by step."""

from evenhand.training.record import TrainingRun
from evenhand.views.charts import Chart
from evenhand.views.charts.lines import LineSeries, lines


def charts(training: TrainingRun) -> tuple[Chart, ...]:
    """Draw the course of each quantity that has a number at all."""
    series = [
        LineSeries(label=_label(course.quantity.label, course.not_numbers), points=course.points)
        for course in training.courses
        if course.points
    ]
    return (lines("training", f"{training.stage}, step by step", series),) if series else ()


def _label(name: str, lost: int) -> str:
    return f"{name} ({lost:,} steps without a number are left out)" if lost else name
