"""Curves show how a number changes with a setting: a panel per setting, a curve per system."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from evenhand.views.charts import Chart
from evenhand.views.charts.before_after import apart
from evenhand.views.charts.chart import (
    SIZE,
    Spec,
    drawn,
    layered,
    listed,
    name_of,
    rows,
    stacked,
    wide_to,
    width_of,
)
from evenhand.views.charts.forest import State, colour_of, said_at, shape_of

_WIDTH, _HEIGHT = 320, 130


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A value at one level of a setting, with its interval."""

    at: float
    value: float
    low: float | None = None
    high: float | None = None
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The points of one system in one panel."""

    label: str
    panel: str
    points: Sequence[CurvePoint]
    state: State = "plain"

    @property
    def words(self) -> str:
        points = ", ".join(f"{point.at:g}: {point.says}" for point in self.points)
        return f"{name_of(self.panel)}, {name_of(self.label)}: {points}"


def curves(name: str, title: str, drawn_curves: Sequence[Curve], legend: Sequence[str]) -> Chart:
    """Draw curves, those of a panel on the same axes.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        drawn_curves: The curves of all panels; a panel is where the first of its curves is.
        legend: The lines of text below the chart.
    """
    panels = list(dict.fromkeys(curve.panel for curve in drawn_curves))
    specs = [
        _panel(
            panel,
            [curve for curve in drawn_curves if curve.panel == panel],
            legend if panel == panels[-1] else (),
        )
        for panel in panels
    ]
    words = listed([curve.words for curve in drawn_curves])
    return drawn(name, title, f"{title}. {words}. {' '.join(legend)}", stacked(specs, 22))


def _panel(panel: str, of: Sequence[Curve], legend: Sequence[str]) -> Spec:
    table: list[dict[str, Any]] = [
        {"at": point.at, "value": point.value, "curve": curve.label, "look": curve.state,
         "low": point.value if point.low is None else point.low,
         "high": point.value if point.high is None else point.high}
        for curve in of
        for point in curve.points
    ]  # fmt: skip
    ends = [row[end] for row in table for end in ("low", "high")]
    room = 0.05 * ((max(ends) - min(ends)) or abs(ends[0]) or 1.0)
    bottom, top = min(ends) - room, max(ends) + room
    axis = alt.Axis(title=panel, values=sorted({row["at"] for row in table}), format=",~f")
    side = alt.Axis(title=None, tickCount=4, format=",~f", minExtent=44, maxExtent=44)
    scale = alt.Scale(domain=[bottom, top], nice=False, zero=False)
    x = alt.X("at:Q", scale=alt.Scale(zero=False, padding=12), axis=axis)
    y, low = (alt.Y(f"{field}:Q", scale=scale, axis=side) for field in ("value", "low"))
    base = alt.Chart(rows(table)).encode(x=x, color=colour_of())
    last = [max(curve.points, key=lambda point: point.at).value for curve in of]
    heights = apart([_HEIGHT * (top - value) / (top - bottom) for value in last], SIZE + 3)
    names = [
        said_at(name_of(curve.label), _WIDTH + 8, height, faint=curve.state == "published")
        for curve, height in zip(of, heights, strict=True)
    ]
    return layered(
        base.mark_rule(strokeWidth=2.5).encode(y=low, y2=alt.Y2("high:Q")),
        base.mark_line(strokeWidth=1.5).encode(y=y, detail=alt.Detail("curve:N")),
        base.mark_point(size=40, filled=True, opacity=1).encode(y=y, shape=shape_of()),
        *names,
        wide_to(_WIDTH + 8 + width_of([name_of(curve.label) for curve in of]), 0),
        *(said_at(line, -44, _HEIGHT + 52 + 16 * n) for n, line in enumerate(legend)),
        width=_WIDTH,
        height=_HEIGHT,
    )
