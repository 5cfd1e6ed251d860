"""Lines over steps: one small panel for each quantity, all over the same steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from evenhand.views.charts import Chart
from evenhand.views.charts.chart import PLAIN, Spec, drawn, listed, plain, rows, stacked

_WIDTH, _HEIGHT = 420, 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A quantity with its points, step and value."""

    label: str
    points: tuple[tuple[int, float], ...]


def lines(name: str, title: str, series: Sequence[Series]) -> Chart:
    """Draw the quantities below each other. Each has its own scale, which need not hold 0."""
    steps = [step for one in series for step, _ in one.points]
    across = alt.Scale(domain=[min(steps), max(*steps, min(steps) + 1)], nice=False)
    panels = [_panel(one, across, last=one is series[-1]) for one in series]
    words = listed(
        [f"{one.label} from {one.points[0][1]:.4g} to {one.points[-1][1]:.4g}" for one in series]
    )
    return drawn(name, title, f"{title}. {words}.", stacked(panels, 14))


def _panel(one: Series, across: alt.Scale, *, last: bool) -> Spec:
    table = rows([{"step": step, "value": value} for step, value in one.points])
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
    above = {"text": one.label, "anchor": "start", "fontSize": 12, "offset": 4}
    return plain(line.encode(x=x, y=y)) | {"title": above, "width": _WIDTH, "height": _HEIGHT}
