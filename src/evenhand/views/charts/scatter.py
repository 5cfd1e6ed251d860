"""A scatter plot of named things: what each scores on two axes, with intervals, and its name next
to it, placed so that none covers another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, hypot, inf, pi, sin
from typing import Any

import altair as alt

from evenhand.views.charts import Chart
from evenhand.views.charts.before_after import pixels
from evenhand.views.charts.chart import (
    INK,
    OPEN,
    PLAIN,
    SIZE,
    drawn,
    layered,
    listed,
    name_of,
    rows,
)
from evenhand.views.charts.forest import said_at

HEIGHT, PER_LETTER = 13.0, 6.3  # of a label in pixels, at 11 px
_MARKER = 6.0


@dataclass(frozen=True, slots=True)
class LabelBox:
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: "LabelBox") -> float:
        """The area that both cover."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return wide * high if wide > 0 and high > 0 else 0.0


@dataclass(frozen=True, slots=True)
class LabelledPoint:
    x: float
    y: float
    label: str


def place_labels(
    points: Sequence[LabelledPoint], panel: LabelBox, bars: Sequence[LabelBox] = ()
) -> list[LabelBox]:
    """Choose a box for each label: the nearest place that covers least. A label on another label is
    worst, then one on a marker; one on a bar is still readable.

    Args:
        points: The markers with their labels.
        panel: The area that labels should stay in.
        bars: Error bars to avoid.

    Returns:
        One box per point, in the order of the points.
    """
    markers = [LabelBox(p.x - _MARKER, p.y - _MARKER, p.x + _MARKER, p.y + _MARKER) for p in points]
    placed: dict[int, LabelBox] = {}
    for number in sorted(range(len(points)), key=lambda n: (points[n].y, points[n].x)):
        point = points[number]

        def badness(box: LabelBox, point: LabelledPoint = point) -> float:
            away = hypot((box.left + box.right) / 2 - point.x, (box.top + box.bottom) / 2 - point.y)
            return (
                away
                + 40 * sum(box.overlap(other) for other in placed.values())
                + 20 * sum(box.overlap(other) for other in markers)
                + 3 * sum(box.overlap(other) for other in bars)
                + 100 * _outside(box, panel)
            )

        placed[number] = min(_candidates(point), key=badness)
    return [placed[number] for number in range(len(points))]


def _candidates(point: LabelledPoint) -> Iterator[LabelBox]:
    """Around the point, at growing distances."""
    half_width, half_height = PER_LETTER * len(point.label) / 2, HEIGHT / 2
    for distance in (4.0, 14.0, 26.0, 40.0, 58.0, 80.0, 106.0, 140.0):
        for step in range(16):
            angle = pi * step / 8
            x = point.x + cos(angle) * (_MARKER + distance + half_width)
            y = point.y + sin(angle) * (_MARKER + distance + half_height)
            yield LabelBox(x - half_width, y - half_height, x + half_width, y + half_height)


def _outside(box: LabelBox, panel: LabelBox) -> float:
    return (
        max(0.0, panel.left - box.left)
        + max(0.0, box.right - panel.right)
        + max(0.0, panel.top - box.top)
        + max(0.0, box.bottom - panel.bottom)
    )


_WIDTH, _HEIGHT = 620, 420
_PANEL = LabelBox(4, -16, _WIDTH + 110, _HEIGHT - 2)  # names may stand a little outside
_X, _Y = pixels()
_FAR = 16  # px: a name that is farther away gets a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisValue:
    """A value on one axis, with its interval and what the missing answers could make of it."""

    value: float
    low: float | None
    high: float | None
    bounds: tuple[float | None, float | None] | None = None

    def ends(self) -> list[float]:
        values = (self.value, self.low, self.high, *(self.bounds or ()))
        return [end for end in values if end is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A thing in the plot; `first` ones stand out, and `joined` ones are on a dotted line."""

    label: str
    x: AxisValue
    y: AxisValue
    says: str
    first: bool
    joined: float | None = None  # its place on that line


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis in words, and the values that it can have."""

    title: str
    within: tuple[float, float] = (-inf, inf)


def scatter(
    name: str, title: str, dots: Sequence[Dot], axes: tuple[Axis, Axis], legend: Sequence[str]
) -> Chart:
    """Draw a scatter plot on axes that go as far as the intervals.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        dots: The dots with their intervals.
        axes: The horizontal and the vertical axis.
        legend: The lines of text below the chart.
    """
    spans = _span([dot.x for dot in dots], axes[0]), _span([dot.y for dot in dots], axes[1])

    def across(value: float) -> float:
        return _WIDTH * (value - spans[0][0]) / (spans[0][1] - spans[0][0])

    def up(value: float) -> float:
        return _HEIGHT * (spans[1][1] - value) / (spans[1][1] - spans[1][0])

    points = [
        LabelledPoint(across(dot.x.value), up(dot.y.value), name_of(dot.label)) for dot in dots
    ]
    bars = [bar for dot, at in zip(dots, points, strict=True) for bar in _bars(dot, at, across, up)]
    layers = [
        _frame(spans, axes),
        *(
            _rules([bar for kind, bar in bars if kind == dashed], dashed)
            for dashed in (True, False)
        ),
        _curve(dots, points),
        _markers(dots, points),
        *_names(dots, points, [_box(bar) for kind, bar in bars if not kind]),
        *(said_at(line, 0, _HEIGHT + 56 + 16 * n) for n, line in enumerate(legend)),
    ]
    spec = layered(*layers, width=_WIDTH, height=_HEIGHT)
    words = listed([f"{name_of(dot.label)}: {dot.says}" for dot in dots], most=20)
    return drawn(name, title, f"{title}. {words}. {' '.join(legend)}", spec)


def _span(readings: Sequence[AxisValue], axis: Axis) -> tuple[float, float]:
    ends = [end for reading in readings for end in reading.ends()]
    low, high = min(ends), max(ends)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    return max(low - room, axis.within[0]), min(high + room, axis.within[1])


def _frame(spans: Sequence[tuple[float, float]], axes: Sequence[Axis]) -> Any:
    """The axes and their lines, with nothing on them."""
    (left, right), (low, high) = spans
    alt_axes = [alt.Axis(title=axis.title, tickCount=6, format=",~f", grid=True) for axis in axes]
    x = alt.X(
        "a:Q", scale=alt.Scale(domain=[left, right], nice=False, zero=False), axis=alt_axes[0]
    )
    y = alt.Y("b:Q", scale=alt.Scale(domain=[low, high], nice=False, zero=False), axis=alt_axes[1])
    return alt.Chart(rows([{"a": left, "b": low}])).mark_point(opacity=0).encode(x=x, y=y)


Bar = dict[str, Any]


def _bars(dot: Dot, at: LabelledPoint, across: Any, up: Any) -> list[tuple[bool, Bar]]:
    """Intervals, and dashed what the missing answers allow, in pixels."""
    look = {"look": "first" if dot.first else "other"}
    bars = []
    for dashed, reading, to in ((False, dot.x, across), (False, dot.y, up),
                                (True, dot.x, across), (True, dot.y, up)):  # fmt: skip
        ends = reading.bounds if dashed else (reading.low, reading.high)
        if ends is None or ends[0] is None or ends[1] is None:
            continue
        apart = 4 if dashed else 0
        if to is across:
            bar = {"x": to(ends[0]), "x2": to(ends[1]), "y": at.y + apart, "y2": at.y + apart}
        else:
            bar = {"x": at.x + apart, "x2": at.x + apart, "y": to(ends[0]), "y2": to(ends[1])}
        bars.append((dashed, bar | look))
    return bars


def _box(bar: Bar) -> LabelBox:
    return LabelBox(bar["x"] - 1, bar["y2"] - 1, bar["x2"] + 1, bar["y"] + 1)


def _colour() -> Any:
    scale = alt.Scale(domain=["first", "other"], range=[PLAIN, OPEN])
    return alt.Color("look:N", scale=scale, legend=None)


def _rules(table: list[Bar], dashed: bool) -> Any:
    look = {"strokeDash": [2, 3], "strokeWidth": 1.2} if dashed else {"strokeWidth": 1.2}
    marks = alt.Chart(rows(table)).mark_rule(**look)
    return marks.encode(x=_X, y=_Y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"), color=_colour())


def _curve(dots: Sequence[Dot], points: Sequence[LabelledPoint]) -> Any:
    ordered = sorted(
        (dot.joined, point.x, point.y)
        for dot, point in zip(dots, points, strict=True)
        if dot.joined is not None
    )
    table = [{"n": n, "x": x, "y": y} for n, (_, x, y) in enumerate(ordered)]
    line = alt.Chart(rows(table)).mark_line(stroke=OPEN, strokeWidth=1.5, strokeDash=[1, 4])
    return line.encode(x=_X, y=_Y, order=alt.Order("n:Q"))


def _markers(dots: Sequence[Dot], points: Sequence[LabelledPoint]) -> Any:
    table = [
        {"x": point.x, "y": point.y, "look": "first" if dot.first else "other"}
        for dot, point in zip(dots, points, strict=True)
    ]
    shapes = alt.Scale(domain=["first", "other"], range=["diamond", "circle"])
    marks = alt.Chart(rows(table)).mark_point(filled=True, size=90, opacity=1)
    shape = alt.Shape("look:N", scale=shapes, legend=None)
    return marks.encode(x=_X, y=_Y, shape=shape, color=_colour())


def _names(dots: Sequence[Dot], points: Sequence[LabelledPoint], bars: list[LabelBox]) -> list[Any]:
    """Draw names next to their markers, with a thread where they had to move away."""
    threads, names = [], []
    for dot, point, box in zip(dots, points, place_labels(points, _PANEL, bars), strict=True):
        near = min(max(point.x, box.left), box.right), min(max(point.y, box.top), box.bottom)
        if hypot(near[0] - point.x, near[1] - point.y) > _FAR:
            threads.append({"x": point.x, "y": point.y, "x2": near[0], "y2": near[1]})
        centre = {"x": (box.left + box.right) / 2, "y": (box.top + box.bottom) / 2}
        names.append((dot.first, {"said": point.label, **centre}))
    marks = alt.Chart(rows(threads)).mark_rule(stroke=INK, strokeWidth=0.8, opacity=0.6)
    layers = [marks.encode(x=_X, y=_Y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"))]
    for first in (True, False):
        table = [row for is_first, row in names if is_first is first]
        layers.append(
            alt.Chart(rows(table))
            .mark_text(
                color=INK,
                fontSize=SIZE - 1,
                fontWeight="bold" if first else "normal",
                baseline="middle",
            )
            .encode(x=_X, y=_Y, text=alt.Text("said:N"))
        )
    return layers
