"""Lines over steps: one small panel for each quantity, all over the same steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from evenhand.views.charts import Chart
from evenhand.views.charts.chart import PLAIN, Spec, drawn, listed, plain, rows, stacked

_WIDTH, _HEIGHT = 420, 96


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSeries:
    """A quantity with its points, step and value."""

    label: str
    points: tuple[tuple[int, float], ...]


def lines(name: str, title: str, series: Sequence[LineSeries]) -> Chart:
    """Draw the quantities below each other. Each has its own scale, which need not hold 0."""
    steps = [step for quantity in series for step, _ in quantity.points]
    across = alt.Scale(domain=[min(steps), max(*steps, min(steps) + 1)], nice=False)
    panels = [_panel(quantity, across, last=quantity is series[-1]) for quantity in series]
    words = listed(
        [
            f"{quantity.label} from {quantity.points[0][1]:.4g} to {quantity.points[-1][1]:.4g}"
            for quantity in series
        ]
    )
    return drawn(name, title, f"{title}. {words}.", stacked(panels, 14))


def _panel(series: LineSeries, across: alt.Scale, *, last: bool) -> Spec:
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
    return plain(line.encode(x=x, y=y)) | {"title": above, "width": _WIDTH, "height": _HEIGHT}
