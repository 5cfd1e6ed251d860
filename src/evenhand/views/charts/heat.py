"""A heat map has a cell for each row and column: a sign for what is shown, the number, and a colour
for its size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from evenhand.views.charts import Chart
from evenhand.views.charts.chart import (
    BAD,
    INK,
    PLAIN,
    SIZE,
    drawn,
    layered,
    listed,
    name_of,
    rows,
    width_of,
)
from evenhand.views.charts.forest import said_at

STRONGEST = 0.4  # opacity of the largest value: words on it keep their contrast
_HEIGHT, _GAP = 26, 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell; without a value it has its sign and words alone."""

    row: str
    column: str
    sign: str
    value: float | None
    says: str

    @property
    def words(self) -> str:
        return f"{name_of(self.row)}, {name_of(self.column)}: {self.sign} {self.says}"


def heat(name: str, title: str, cells: Sequence[Cell], legend: Sequence[str]) -> Chart:
    """Draw the cells in the order in which their rows and columns come."""
    down, across = (list(dict.fromkeys(getattr(one, of) for one in cells)) for of in _WAYS)
    left = width_of([name_of(one) for one in down]) + _GAP
    wide = max(width_of([*map(name_of, across), *(f"✗ {one.says}" for one in cells)]) + 8, 60)
    most = max((abs(one.value) for one in cells if one.value is not None), default=0.0) or 1.0
    table = [
        {
            "row": f"{down.index(one.row):04}",
            "column": f"{across.index(one.column):04}",
            "way": "none" if not one.value else "up" if one.value > 0 else "down",
            "size": STRONGEST * abs(one.value or 0.0) / most,
            "says": f"{one.sign} {one.says}",
        }
        for one in cells
    ]
    layers = [*_cells(table), *_heads(down, across, left, wide)]
    height = _HEIGHT * len(down)
    layers += [said_at(line, -left, height + 20 + 16 * n) for n, line in enumerate(legend)]
    spec = layered(*layers, width=wide * len(across), height=height)
    told = f"{title}. {listed([one.words for one in cells], most=40)}. {' '.join(legend)}"
    return drawn(name, title, told, spec)


_WAYS = ("row", "column")


def _cells(table: list[dict[str, Any]]) -> list[Any]:
    x = alt.X("column:O", axis=None, scale=alt.Scale(paddingInner=0, paddingOuter=0))
    y = alt.Y("row:O", axis=None, scale=alt.Scale(paddingInner=0, paddingOuter=0))
    base = alt.Chart(rows(table)).encode(x=x, y=y)
    colours = alt.Scale(domain=["up", "down", "none"], range=[BAD, PLAIN, "transparent"])
    fill = alt.Fill("way:N", scale=colours, legend=None)
    size = alt.FillOpacity("size:Q", scale=None, legend=None)
    return [
        base.mark_rect(stroke=INK, strokeOpacity=0.25, strokeWidth=0.5).encode(
            fill=fill, fillOpacity=size
        ),
        base.mark_text(color=INK, fontSize=SIZE, baseline="middle").encode(text=alt.Text("says:N")),
    ]


def _heads(down: list[str], across: list[str], left: float, wide: float) -> list[Any]:
    """The names of rows and columns."""
    named = [
        said_at(name_of(one), -left, _HEIGHT * (place + 0.5), faint=False)
        for place, one in enumerate(down)
    ]
    return named + [
        said_at(name_of(one), wide * (place + 0.5), -12, align="center", faint=False)
        for place, one in enumerate(across)
    ]
