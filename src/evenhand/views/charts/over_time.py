"""The charts over time: the numbers of a watch, look by look, and of a training, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from evenhand.findings.monitoring import MonitoredNumber, MonitoredPoint, Monitoring
from evenhand.training.record import TrainingRun
from evenhand.views.charts import Chart
from evenhand.views.charts.chart import (
    BAD,
    PLAIN,
    Spec,
    drawn,
    layered,
    listed,
    name_of,
    plain,
    rows,
    stacked,
)
from evenhand.views.charts.forest import said_at

_LINES_WIDTH, _LINES_HEIGHT = 420, 96


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSeries:
    """A quantity with its points, step and value."""

    label: str
    points: tuple[tuple[int, float], ...]


def lines(name: str, title: str, series: Sequence[LineSeries]) -> Chart:
    """Draw quantities over time below each other. Each has its own scale, which need not contain 0.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        series: The quantities with their points.
    """
    steps = [step for quantity in series for step, _ in quantity.points]
    across = alt.Scale(domain=[min(steps), max(*steps, min(steps) + 1)], nice=False)
    panels = [_lines_panel(quantity, across, last=quantity is series[-1]) for quantity in series]
    words = listed(
        [
            f"{quantity.label} from {quantity.points[0][1]:.4g} to {quantity.points[-1][1]:.4g}"
            for quantity in series
        ]
    )
    return drawn(name, title, f"{title}. {words}.", stacked(panels, 14))


def _lines_panel(series: LineSeries, across: alt.Scale, *, last: bool) -> Spec:
    table = rows([{"step": step, "value": value} for step, value in series.points])
    x = alt.X(
        "step:Q",
        scale=across,
        axis=alt.Axis(title="step" if last else None, labels=last, tickCount=6, format=",d"),
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(title=None, tickCount=3, format=",~g", minExtent=44, maxExtent=44),
    )
    line = alt.Chart(table).mark_line(
        stroke=PLAIN, strokeWidth=1.5, point={"color": PLAIN, "size": 14}
    )
    above = {"text": series.label, "anchor": "start", "fontSize": 12, "offset": 4}
    return plain(line.encode(x=x, y=y)) | {
        "title": above,
        "width": _LINES_WIDTH,
        "height": _LINES_HEIGHT,
    }


_WIDTH, _HEIGHT = 460, 110
_MOST = 400  # our choice: the last looks; more could not be told apart
_LEGEND = "Bars: 95% CI of each look. Dashed: drift detected."


def charts_of_monitoring(monitoring: Monitoring) -> tuple[Chart, ...]:
    """Draw the numbers below each other on one axis of time."""
    numbers = [
        number
        for number in monitoring.numbers
        if any(_value(point) is not None for point in number.points)
    ]
    if not numbers:
        return ()
    panels = [_panel(number, last=number is numbers[-1]) for number in numbers]
    words = listed([_words(number) for number in numbers])
    return (drawn("watch", "Over time", f"Over time. {words}. {_LEGEND}", stacked(panels, 34)),)


def _value(point: MonitoredPoint) -> float | None:
    return None if point.why or point.estimate is None else point.estimate.value


def _words(number: MonitoredNumber) -> str:
    values = [value for point in number.points if (value := _value(point)) is not None]
    alarms = f", alarms: {len(number.changes)}" if number.changes else ""
    return f"{name_of(number.name)} from {values[0]:.3g} to {values[-1]:.3g}{alarms}"


def _panel(number: MonitoredNumber, *, last: bool) -> Spec:
    points = number.points[-_MOST:]
    table: list[dict[str, Any]] = []
    for point in points:
        value = _value(point)
        if value is None or point.estimate is None:
            continue
        low, high = point.estimate.low, point.estimate.high
        table.append({"when": point.began, "value": value, "low": value if low is None else low,
                      "high": value if high is None else high})  # fmt: skip
    span = [points[0].began, points[-1].began]
    within_days = span[0][:8] == span[1][:8]  # of one month
    written = "%m-%d %H:%M" if within_days else "%Y-%m-%d"
    axis = alt.Axis(title=None, labels=last, tickCount=5, format=written)
    x = alt.X("when:T", scale=alt.Scale(type="utc", domain=span), axis=axis)
    side = alt.Axis(title=None, tickCount=4, format=",~g", minExtent=44, maxExtent=44)
    scale = alt.Scale(zero=False)
    y = alt.Y("value:Q", scale=scale, axis=side)
    base = alt.Chart(rows(table)).encode(x=x)
    alarms = alt.Chart(rows([{"when": change.raised} for change in number.changes]))
    marks = [
        base.mark_rule(stroke=PLAIN, strokeWidth=2, opacity=0.35).encode(
            y=alt.Y("low:Q", scale=scale, axis=side), y2=alt.Y2("high:Q")
        ),
        base.mark_line(stroke=PLAIN, strokeWidth=1.5).encode(y=y),
        base.mark_point(size=18, fill=PLAIN, stroke=PLAIN, opacity=1).encode(y=y),
    ]
    if number.changes:
        marks.append(alarms.mark_rule(stroke=BAD, strokeDash=[4, 3], strokeWidth=1.5).encode(x=x))
    marks.append(said_at(name_of(number.name), 0, -12, faint=False))
    marks += [said_at(_LEGEND, 0, _HEIGHT + 34)] if last else []
    return layered(*marks, width=_WIDTH, height=_HEIGHT)


def charts_of_training(training: TrainingRun) -> tuple[Chart, ...]:
    """Draw the course of each quantity that has a number at all."""
    series = []
    for course in (course for course in training.courses if course.points):
        lost = f" ({course.not_numbers:,} steps without a number are left out)"
        label = f"{course.quantity.label}{lost if course.not_numbers else ''}"
        series.append(LineSeries(label=label, points=course.points))
    return (lines("training", f"{training.stage}, step by step", series),) if series else ()
