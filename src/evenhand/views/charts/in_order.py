"""The charts of a number at several points in order, such as an effect turn by turn: a panel per
number, with an interval at each point."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from evenhand.views.charts import Chart
from evenhand.views.charts.chart import (
    INK,
    OPEN,
    Spec,
    drawn,
    layered,
    listed,
    name_of,
    rows,
    stacked,
)
from evenhand.views.charts.forest import ForestPanel, ForestRow, colour_of, said_at, shape_of

_WIDTH, _HEIGHT = 460, 150
MOST_PANELS = 6  # our choice: what can be looked at; the tables have all


def in_order(
    name: str,
    title: str,
    axis: str,
    panels: Sequence[ForestPanel],
    legend: Sequence[str],
) -> Chart:
    """Draw numbers point by point, below each other on one scale.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        axis: What the points are, such as "turn".
        panels: The numbers; each row of a panel is a point, with its position as label.
        legend: The lines of text below the chart.
    """
    shown = panels[:MOST_PANELS]
    ends = [end for panel in shown for row in panel.rows for end in (row.value, row.low, row.high)]
    bands = [end for panel in shown for end in panel.band or ()]
    known = [end for end in (*ends, *bands) if end is not None]
    room = 0.08 * (max(known) - min(known))
    span = [min(known) - room, max(known) + room]
    specs = [_panel(panel, axis, span, legend if panel is shown[-1] else ()) for panel in shown]
    words = listed([f"{panel.title}, {axis} {row.words}" for panel in shown for row in panel.rows])
    return drawn(name, title, f"{title}. {words}. {' '.join(legend)}", stacked(specs, 40))


def _panel(panel: ForestPanel, axis: str, span: list[float], legend: Sequence[str]) -> Spec:
    points = [_point(row) for row in panel.rows if row.value is not None]
    order = [row.label for row in panel.rows]
    across = alt.Axis(title=axis, labelAngle=0, grid=False)
    x = alt.X("at:O", scale=alt.Scale(domain=order), axis=across)
    scale = alt.Scale(domain=span, nice=False, zero=False)
    side = alt.Axis(title=None, tickCount=5, format="+.0%", minExtent=44, maxExtent=44)
    y = alt.Y("value:Q", scale=scale, axis=side)
    marks: list[Any] = []
    if panel.band is not None:
        ground = alt.Chart(rows([{"low": panel.band[0], "value": panel.band[1]}]))
        marks.append(ground.mark_rect(fill=INK, fillOpacity=0.1).encode(y=y, y2=alt.Y2("low:Q")))
    if panel.line is not None:
        line = alt.Chart(rows([{"value": panel.line}]))
        marks.append(line.mark_rule(stroke=INK, strokeWidth=1.2, opacity=0.8).encode(y=y))
    base = alt.Chart(rows(points)).encode(x=x)
    marks += [
        base.mark_line(stroke=OPEN, strokeWidth=1, opacity=0.6).encode(y=y),
        base.mark_rule(strokeWidth=2.5).encode(
            y=alt.Y("low:Q", scale=scale, axis=side), y2=alt.Y2("high:Q"), color=colour_of()
        ),
        base.mark_point(size=70, strokeWidth=1.5, opacity=1, filled=True).encode(
            y=y, shape=shape_of(), color=colour_of()
        ),
        said_at(name_of(panel.title), 0, -12, faint=False),
        *(said_at(text, 0, _HEIGHT + 48 + 16 * n) for n, text in enumerate(legend)),
    ]
    return layered(*marks, width=_WIDTH, height=_HEIGHT)


def _point(row: ForestRow) -> dict[str, Any]:
    low, high = (row.low, row.high) if row.has_interval else (row.value, row.value)
    return {"at": row.label, "value": row.value, "low": low, "high": high, "look": row.state}
