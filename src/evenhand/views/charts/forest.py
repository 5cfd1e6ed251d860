"""A forest plot has a row for each number: the value, its interval, its worst-case bounds, and the
words next to them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import altair as alt

from evenhand.findings.estimates import Bounds
from evenhand.views.charts import Chart
from evenhand.views.charts.chart import (
    BAD,
    FAINT,
    GOOD,
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
    width_of,
)

State = Literal["bad", "good", "open", "plain", "published"]  # published: by others
SIGNS: dict[State, str] = {"bad": "✗ ", "good": "✓ ", "open": "? ", "plain": "", "published": ""}
# Shape tells states apart where color does not.
LOOKS: dict[State, tuple[str, str]] = {
    "bad": (BAD, "diamond"),
    "good": (GOOD, "triangle-up"),
    "open": (OPEN, "circle"),
    "plain": (PLAIN, "square"),
    "published": (OPEN, "circle"),
}
_WIDTH, _STEP = 300, 24  # px, of the plot and of a row
_GAP = 14
_BAR, _DARKEST, _PALER = 14, 0.85, 0.45  # px high; opacity of the first part, and of each next one


class HasBounds(Protocol):
    """A thing that missing answers could change."""

    @property
    def bounds(self) -> Bounds | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """A row of a forest plot. Without a value it has words alone. The `parts` of a value are drawn
    one after the other, in place of a point."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    bounds: tuple[float | None, float | None] | None = None  # None within: any value
    state: State = "plain"
    says: str = ""  # the number and its interval, or why there is none
    n: int | None = None
    parts: tuple[float, ...] = ()

    @property
    def has_interval(self) -> bool:
        return all(end is not None and math.isfinite(end) for end in (self.low, self.high))

    @property
    def words(self) -> str:
        counted = "" if self.n is None else f", n {self.n:,}"
        return f"{name_of(self.label)}: {SIGNS[self.state]}{self.says}{counted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestPanel:
    """Rows that share an axis. `line` is the value that says "none", `band` what is too small to
    matter, and `within` what a value can be. `bars` draws each value as a bar from 0."""

    rows: Sequence[ForestRow]
    axis: str
    title: str = ""
    line: float | None = None
    band: tuple[float, float] | None = None
    within: tuple[float, float] = (-math.inf, math.inf)
    from_zero: bool = False
    bars: bool = False


def forest(name: str, title: str, panels: Sequence[ForestPanel], legend: Sequence[str]) -> Chart:
    """Draw a forest plot: panels below each other, and the legend below them.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        panels: The panels, each with its own axis.
        legend: The lines of text below the chart.
    """
    every = [row for panel in panels for row in panel.rows]
    left = width_of([name_of(row.label) for row in every]) + _GAP
    counts = _WIDTH + width_of([_said(row) for row in every]) + 2 * _GAP
    counts += width_of([_count(row) for row in every])
    specs = [
        _panel(panel, left, counts, legend if panel is panels[-1] else (), head=panel is panels[0])
        for panel in panels
    ]
    words = listed(
        [
            f"{panel.title and f'{panel.title}, '}{row.words}"
            for panel in panels
            for row in panel.rows
        ]
    )
    return drawn(name, title, f"{title}. {words}. {' '.join(legend)}", stacked(specs, 22))


def _panel(
    panel: ForestPanel, left: float, counts: float, legend: Sequence[str], *, head: bool
) -> Spec:
    """Make a panel; one whose rows have no value is words alone."""
    span = _span(panel)
    empty = all(row.value is None and row.bounds is None for row in panel.rows)
    axis = None if empty else alt.Axis(title=panel.axis, tickCount=6, format=",~f")
    scale = alt.Scale(domain=span, nice=False, zero=False)
    x = alt.X("a:Q", scale=scale, axis=axis)
    order = [f"{index:04}" for index in range(len(panel.rows))]
    y = alt.Y("row:O", scale=alt.Scale(domain=order), axis=None)
    placed = list(zip(order, panel.rows, strict=True))
    height = _STEP * len(placed)
    layers = [] if empty else _ground(panel, span, x)
    layers += [_bars(placed, x, y)] if panel.bars else []
    layers += [*_ranges(placed, span, x, y), _points(placed, x, y)]
    layers += _words(placed, y, {"label": (-left, "left"), "says": (_WIDTH + _GAP, "left"),
                                 "n": (counts, "right")})  # fmt: skip
    counted = head and panel.rows[0].n is not None
    layers += [said_at("n", counts, -10, align="right")] if counted else []
    layers += [said_at(panel.title, -left, -10, bold=True, faint=False)] if panel.title else []
    layers += [said_at(line, -left, height + 52 + 16 * n) for n, line in enumerate(legend)]
    return layered(*layers, width=_WIDTH, height=height)


def _span(panel: ForestPanel) -> list[float]:
    """The part of the axis that is used, cut at what a value can be."""
    values = [0.0] if panel.from_zero or panel.bars else []
    values += [panel.line] if panel.line is not None else []
    values += panel.band or ()
    for row in panel.rows:
        ends = (row.value, row.low, row.high, *(row.bounds or ()))
        values += [end for end in ends if end is not None and math.isfinite(end)]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    return [max(low - room, panel.within[0]), min(high + room, panel.within[1])]


def _ground(panel: ForestPanel, span: list[float], x: Any) -> list[Any]:
    """What is too small to matter as a band, and the value that says "none" as a line."""
    layers = []
    if panel.band is not None:
        low, high = max(panel.band[0], span[0]), min(panel.band[1], span[1])
        shade = alt.Chart(rows([{"a": low, "b": high}]))
        layers.append(shade.mark_rect(fill=INK, fillOpacity=0.1).encode(x=x, x2=alt.X2("b:Q")))
    if panel.line is not None:
        at = alt.Chart(rows([{"a": panel.line}]))
        layers.append(at.mark_rule(stroke=INK, strokeWidth=1.2, opacity=0.8).encode(x=x))
    return layers


def _bars(placed: list[tuple[str, ForestRow]], x: Any, y: Any) -> Any:
    """Values as bars from 0, pale so that their intervals are seen; parts from dark to pale."""
    bars = []
    for key, row in placed:
        parts = row.parts or (() if row.value is None else (row.value,))
        start = 0.0
        for number, part in enumerate(parts):
            pale = _DARKEST * _PALER ** (number if row.parts else 1)
            ends = {"a": start, "b": start + part}
            bars.append({"row": key, **ends, "look": row.state, "pale": pale})
            start += part
    marks = alt.Chart(rows(bars)).mark_bar(height=_BAR, stroke=INK, strokeWidth=0.4)
    fill, pale = (
        alt.Fill("look:N", scale=_colours(), legend=None),
        alt.FillOpacity("pale:Q", scale=None, legend=None),
    )
    return marks.encode(x=x, x2=alt.X2("b:Q"), y=y, fill=fill, fillOpacity=pale)


def _ranges(placed: list[tuple[str, ForestRow]], span: list[float], x: Any, y: Any) -> list[Any]:
    """Intervals as bars; what the missing answers allow as a thinner, dashed line beyond them. A
    missing answer that could be anything makes that line as long as the axis."""
    bars, bounds = [], []
    for key, row in placed:
        if row.value is not None and row.has_interval:
            bars.append({"row": key, "a": row.low, "b": row.high, "look": row.state})
        if row.bounds is not None:
            ends = [
                end if bound is None or not math.isfinite(bound) else bound
                for bound, end in zip(row.bounds, span, strict=True)
            ]
            bounds.append({"row": key, "a": ends[0], "b": ends[1], "look": row.state})
    colour = colour_of()
    dashed = alt.Chart(rows(bounds)).mark_rule(strokeWidth=1.5, strokeDash=[2, 3], yOffset=5)
    solid = alt.Chart(rows(bars)).mark_rule(strokeWidth=2.5)
    return [chart.encode(x=x, x2=alt.X2("b:Q"), y=y, color=colour) for chart in (dashed, solid)]


def _points(placed: list[tuple[str, ForestRow]], x: Any, y: Any) -> Any:
    """Values; one without an interval is hollow, so that it does not look certain."""
    points = [
        {"row": key, "a": row.value, "look": row.state, "full": 1 if row.has_interval else 0}
        for key, row in placed
        if row.value is not None and not row.parts
    ]
    filled = alt.FillOpacity("full:Q", scale=None, legend=None)
    marks = alt.Chart(rows(points)).mark_point(size=70, strokeWidth=1.5, opacity=1)
    fill = alt.Fill("look:N", scale=_colours(), legend=None)
    return marks.encode(
        x=x, y=y, shape=shape_of(), color=colour_of(), fill=fill, fillOpacity=filled
    )


def _colours() -> Any:
    return alt.Scale(domain=list(LOOKS), range=[colour for colour, _ in LOOKS.values()])


def shape_of() -> Any:
    shapes = alt.Scale(domain=list(LOOKS), range=[shape for _, shape in LOOKS.values()])
    return alt.Shape("look:N", scale=shapes, legend=None)


def colour_of() -> Any:
    return alt.Color("look:N", scale=_colours(), legend=None)


def _said(row: ForestRow) -> str:
    return f"{SIGNS[row.state]}{row.says}"


def _count(row: ForestRow) -> str:
    return "" if row.n is None else f"{row.n:,}"


def _words(
    placed: list[tuple[str, ForestRow]], y: Any, columns: dict[str, tuple[float, str]]
) -> Any:
    """Names to the left; numbers, and how many they rest on, to the right."""
    table = rows(
        [
            {"row": key, "label": name_of(row.label), "says": _said(row), "n": _count(row)}
            for key, row in placed
        ]
    )
    return [
        alt.Chart(table)
        .mark_text(align=side, baseline="middle", color=INK, fontSize=SIZE)
        .encode(x=alt.XValue(at), y=y, text=alt.Text(f"{field}:N"))
        for field, (at, side) in columns.items()
    ]


def said_at(
    text: str, x: float, y: float, *, align: str = "left", bold: bool = False, faint: bool = True
) -> Any:
    """Place text at a position in pixels.

    Args:
        text: The text.
        x: The distance from the left of the plot.
        y: The distance from its top, of the middle of the text.
        align: Which side of the text is at `x`: "left", "center" or "right".
        bold: Whether the text is bold.
        faint: Whether the text is slightly smaller and lighter.
    """
    look = {"fontSize": SIZE - faint, "opacity": FAINT if faint else 1, "align": align}
    mark = alt.Chart(rows([{"said": text}])).mark_text(
        color=INK, baseline="middle", fontWeight="bold" if bold else "normal", **look
    )
    return mark.encode(x=alt.XValue(x), y=alt.YValue(y), text=alt.Text("said:N"))
