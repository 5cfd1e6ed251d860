"""A calibration curve has a point for each range of scores: the mean score in it, and what those
texts should have had."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from evenhand.views.charts import Chart
from evenhand.views.charts.chart import INK, PLAIN, drawn, layered, listed, rows
from evenhand.views.charts.forest import said_at

_SIDE = 260


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveBin:
    """A range of scores: the mean score, the mean of what was right, and how many texts."""

    score: float
    target: float
    n: int


def curve(
    name: str, title: str, steps: Sequence[CurveBin], axes: tuple[str, str], caption: str
) -> Chart:
    """Draw the points and the line on which a calibrated scorer's would lie."""
    scale = alt.Scale(domain=[0, 1], nice=False)
    x, y = (
        side(f"{field}:Q", scale=scale, axis=alt.Axis(title=label, tickCount=5, format=",~f"))
        for side, field, label in ((alt.X, "score", axes[0]), (alt.Y, "target", axes[1]))
    )
    table: list[dict[str, Any]] = [
        {"score": step.score, "target": step.target, "n": step.n} for step in steps
    ]
    ends = [{"score": end, "target": end} for end in (0, 1)]
    size = alt.Size("n:Q", scale=alt.Scale(domainMin=0, range=[15, 120]), legend=None)
    base = alt.Chart(rows(table)).encode(x=x, y=y)
    even = alt.Chart(rows(ends)).mark_line(stroke=INK, strokeDash=[4, 4], opacity=0.7)
    spec = layered(
        even.encode(x=x, y=y),
        base.mark_line(stroke=PLAIN, strokeWidth=1.5),
        base.mark_square(color=PLAIN, opacity=1).encode(size=size),
        said_at("Dashed: as it should be. The larger, the more texts.", 0, _SIDE + 56),
        said_at(caption, 0, _SIDE + 72),
        width=_SIDE,
        height=_SIDE,
    )
    words = listed(
        [f"score {step.score:.2f}, right {step.target:.2f}, n {step.n:,}" for step in steps]
    )
    return drawn(name, title, f"{title}. {words}. {caption}", spec)
