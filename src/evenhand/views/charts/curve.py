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
class Step:
    """A range of scores: the mean score, the mean of what was right, and how many texts."""

    score: float
    target: float
    n: int


def curve(name: str, title: str, steps: Sequence[Step], axes: tuple[str, str], says: str) -> Chart:
    """Draw the points and the line on which a calibrated scorer's would lie."""
    scale = alt.Scale(domain=[0, 1], nice=False)
    x, y = (
        side(f"{field}:Q", scale=scale, axis=alt.Axis(title=said, tickCount=5, format=",~f"))
        for side, field, said in ((alt.X, "score", axes[0]), (alt.Y, "target", axes[1]))
    )
    table: list[dict[str, Any]] = [
        {"score": one.score, "target": one.target, "n": one.n} for one in steps
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
        said_at(says, 0, _SIDE + 72),
        width=_SIDE,
        height=_SIDE,
    )
    words = listed([f"score {one.score:.2f}, right {one.target:.2f}, n {one.n:,}" for one in steps])
    return drawn(name, title, f"{title}. {words}. {says}", spec)
