"""A heat map has a cell for each row and column: words, and a color for the value."""

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
    """Draw a heat map. Rows and columns have the order in which the cells name them.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        cells: The cells with their row and column.
        legend: The lines of text below the chart.
    """
    down, across = (list(dict.fromkeys(getattr(cell, of) for cell in cells)) for of in _WAYS)
    left = width_of([name_of(label) for label in down]) + _GAP
    wide = max(width_of([*map(name_of, across), *(f"✗ {cell.says}" for cell in cells)]) + 8, 60)
    most = max((abs(cell.value) for cell in cells if cell.value is not None), default=0.0) or 1.0
    table = [
        {
            "row": f"{down.index(cell.row):04}",
            "column": f"{across.index(cell.column):04}",
            "way": "none" if not cell.value else "up" if cell.value > 0 else "down",
            "size": STRONGEST * abs(cell.value or 0.0) / most,
            "says": f"{cell.sign} {cell.says}",
        }
        for cell in cells
    ]
    layers = [*_cells(table), *_heads(down, across, left, wide)]
    height = _HEIGHT * len(down)
    layers += [said_at(line, -left, height + 20 + 16 * n) for n, line in enumerate(legend)]
    spec = layered(*layers, width=wide * len(across), height=height)
    alt_text = f"{title}. {listed([cell.words for cell in cells], most=40)}. {' '.join(legend)}"
    return drawn(name, title, alt_text, spec)


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
    row_heads = [
        said_at(name_of(label), -left, _HEIGHT * (index + 0.5), faint=False)
        for index, label in enumerate(down)
    ]
    return row_heads + [
        said_at(name_of(label), wide * (index + 0.5), -12, align="center", faint=False)
        for index, label in enumerate(across)
    ]
