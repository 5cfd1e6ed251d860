"""The chart of a watch: every number over time, look by look, with its intervals and its alarms."""

from typing import Any

import altair as alt

from evenhand.findings.monitoring import MonitoredNumber, MonitoredPoint, Monitoring
from evenhand.views.charts import Chart
from evenhand.views.charts.chart import (
    BAD,
    PLAIN,
    Spec,
    drawn,
    layered,
    listed,
    name_of,
    rows,
    stacked,
)
from evenhand.views.charts.forest import said_at

_WIDTH, _HEIGHT = 460, 110
_MOST = 400  # our choice: the last looks; more could not be told apart
_LEGEND = "Bars: 95 % of each look. Dashed: an alarm."


def charts(monitoring: Monitoring) -> tuple[Chart, ...]:
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
