"""A dumbbell chart has a row for each thing that was counted twice: before and after."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from evenhand.views.charts import Chart
from evenhand.views.charts.chart import (
    INK,
    OPEN,
    PLAIN,
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
from evenhand.views.charts.forest import said_at

_WIDTH, _STEP, _GAP = 300, 24, 14
_LEGEND = "○ before, ■ after."


@dataclass(frozen=True, slots=True, kw_only=True)
class DumbbellRow:
    """A row: what was counted before and after, as numbers and as words."""

    label: str
    before: float
    after: float
    says: str

    @property
    def words(self) -> str:
        return f"{name_of(self.label)}: {self.says}"


def dumbbell(name: str, title: str, panels: Sequence[tuple[str, Sequence[DumbbellRow]]]) -> Chart:
    """Draw panels of pairs below each other, each with its axis from 0."""
    every = [pair for _, pairs in panels for pair in pairs]
    left = width_of([name_of(pair.label) for pair in every]) + _GAP
    specs = [
        _panel(axis, pairs, left, _LEGEND if number == len(panels) else None)
        for number, (axis, pairs) in enumerate(panels, 1)
    ]
    return drawn(
        name, title, f"{title}. {listed([pair.words for pair in every])}.", stacked(specs, 14)
    )


def _panel(axis: str, pairs: Sequence[DumbbellRow], left: float, legend: str | None) -> Spec:
    most = max((max(pair.before, pair.after) for pair in pairs), default=0) or 1.0
    x_axis = alt.Axis(title=axis, tickCount=6, format=",~f")
    x = alt.X("a:Q", scale=alt.Scale(domain=[0, most * 1.04], nice=False), axis=x_axis)
    order = [f"{index:04}" for index in range(len(pairs))]
    y = alt.Y("row:O", scale=alt.Scale(domain=order), axis=None)
    table = rows(
        [
            {"row": row, "a": pair.before, "b": pair.after, "label": name_of(pair.label),
             "says": pair.says}
            for row, pair in zip(order, pairs, strict=True)
        ]
    )  # fmt: skip
    base = alt.Chart(table).encode(y=y)
    after = x.copy()
    after.shorthand = "b:Q"
    words = {"baseline": "middle", "color": INK, "fontSize": SIZE, "align": "left"}
    height = _STEP * len(pairs)
    return layered(
        base.mark_rule(strokeWidth=2, stroke=OPEN).encode(x=x, x2=alt.X2("b:Q")),
        base.mark_point(size=60, strokeWidth=2, opacity=1, stroke=OPEN).encode(x=x),
        base.mark_square(size=60, opacity=1, color=PLAIN).encode(x=after),
        base.mark_text(**words).encode(x=alt.XValue(-left), text=alt.Text("label:N")),
        base.mark_text(**words).encode(x=alt.XValue(_WIDTH + _GAP), text=alt.Text("says:N")),
        wide_to(_WIDTH + _GAP + width_of([pair.says for pair in pairs]), 0),
        *([said_at(legend, -left, height + 52)] if legend else []),
        width=_WIDTH,
        height=height,
    )
