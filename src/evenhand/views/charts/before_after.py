"""Charts of two sides: lines by group, pairs of counts, and a dot for each cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from evenhand.findings.paired_totals import PairedBin
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
from evenhand.views.charts.forest import SIGNS, State, colour_of, said_at, shape_of

_WIDTH, _LEAST, _STEP = 260, 180, 18  # px: between the two sides, and of the height
_LEADER = 22
_SIDES = ("left", "right")
_ON_TOP: tuple[State, ...] = ("open", "plain", "good", "bad")


def pixels() -> tuple[Any, Any]:
    """Give both axes as pixels, for what has no other place."""
    return alt.X("x:Q", scale=None, axis=None), alt.Y("y:Q", scale=None, axis=None)


_X, _Y = pixels()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeLine:
    """A line of a slope chart."""

    label: str
    before: float
    after: float
    written: tuple[str, str]  # both values
    change: str  # in words, with its interval
    state: State = "open"

    @property
    def words(self) -> str:
        old, new = self.written
        return f"{name_of(self.label)}: {SIGNS[self.state]}{old} to {new}, change {self.change}"


def slope(name: str, title: str, lines: Sequence[SlopeLine], legend: Sequence[str]) -> Chart:
    """Draw one line per group from its value before to its value after. Regressions are on top.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        lines: The groups.
        legend: The lines of text below the chart.
    """
    ordered = sorted(lines, key=lambda line: _ON_TOP.index(line.state))
    height = max(_LEAST, _STEP * len(ordered))
    ends = [end for line in ordered for end in (line.before, line.after)]
    low, room = min(ends), (max(ends) - min(ends)) or 1.0
    heights = [
        [height * (0.95 - 0.9 * (value - low) / room) for value in values]
        for values in zip(*((line.before, line.after) for line in ordered), strict=True)
    ]
    once = apart(list(dict.fromkeys(heights[0])), SIZE + 3)  # equal values are written once
    left = [dict(zip(dict.fromkeys(heights[0]), once, strict=True))[at] for at in heights[0]]
    right = apart(heights[1], SIZE + 3)
    across, leaders, dots, names = [], [], [], []
    for line, old, new, at, to in zip(ordered, *heights, left, right, strict=True):
        look = {"look": line.state}
        across.append({"x": 0, "y": old, "x2": _WIDTH, "y2": new, **look})
        leaders.append({"x": -8, "y": old, "x2": -_LEADER, "y2": at})
        leaders.append({"x": _WIDTH + 8, "y": new, "x2": _WIDTH + _LEADER, "y2": to})
        dots += [{"x": 0, "y": old, **look}, {"x": _WIDTH, "y": new, **look}]
        names.append((line.written[0], -_LEADER - 4, at, "right"))
        names.append((_name(line), _WIDTH + _LEADER + 4, to, "left"))
    top, bottom = min(0.0, *left, *right), max(float(height), *left, *right)
    layers = [
        _rules([{"x": x, "y": 0, "x2": x, "y2": height} for x in (0, _WIDTH)], 1, 0.25),
        _rules(leaders, 1, 0.4),
        _rules(across, 2.5, 1, color=colour_of()),
        _dots(dots),
        *(
            _names([label for label in dict.fromkeys(names) if label[3] == side], side)
            for side in _SIDES
        ),
        wide_to(_WIDTH + _LEADER + 4 + width_of([_name(line) for line in ordered]), top),
        said_at("before", 0, top - 16, align="center"),
        said_at("after", _WIDTH, top - 16, align="center"),
        *(said_at(text, -60, bottom + 24 + 16 * n) for n, text in enumerate(legend)),
    ]
    spec = layered(*layers, width=_WIDTH, height=height)
    alt_text = f"{title}. {listed([line.words for line in lines])}. {' '.join(legend)}"
    return drawn(name, title, alt_text, spec)


def _rules(table: list[dict[str, Any]], width: float, opacity: float, color: Any = None) -> Any:
    """Lines between places in pixels."""
    marks = alt.Chart(rows(table)).mark_rule(strokeWidth=width, opacity=opacity)
    return marks.encode(
        x=_X, y=_Y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"), color=color or alt.value(INK)
    )


def _dots(table: list[dict[str, Any]]) -> Any:
    marks = alt.Chart(rows(table)).mark_point(filled=True, size=60, opacity=1)
    return marks.encode(x=_X, y=_Y, shape=shape_of(), color=colour_of())


def _names(names: list[tuple[str, float, float, str]], side: str) -> Any:
    table = [{"said": text, "x": x, "y": y} for text, x, y, _ in names]
    marks = alt.Chart(rows(table)).mark_text(
        align=side, baseline="middle", color=INK, fontSize=SIZE
    )
    return marks.encode(x=_X, y=_Y, text=alt.Text("said:N"))


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Move places that are nearer to each other than the gap apart, in their order. Each group of
    such places is centred where it was."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    groups: list[tuple[float, int]] = []  # the centre of each, and how many it holds
    for n in order:
        centre, size = places[n], 1
        while groups:
            before, held = groups[-1]
            if centre - before >= gap * (size + held) / 2:
                break
            groups.pop()
            centre = (centre * size + before * held) / (size + held)
            size += held
        groups.append((centre, size))
    moved = [
        centre + gap * (index - (size - 1) / 2) for centre, size in groups for index in range(size)
    ]
    positions = dict(zip(order, moved, strict=True))
    return [positions[n] for n in range(len(places))]


def _name(line: SlopeLine) -> str:
    return f"{SIGNS[line.state]}{name_of(line.label)} {line.written[1]}; change {line.change}"


_DUMBBELL_WIDTH, _DUMBBELL_STEP, _GAP = 300, 24, 14
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
    """Draw panels of paired values below each other, each with an axis from 0.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        panels: The axis title and the pairs of each panel.
    """
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
    height = _DUMBBELL_STEP * len(pairs)
    return layered(
        base.mark_rule(strokeWidth=2, stroke=OPEN).encode(x=x, x2=alt.X2("b:Q")),
        base.mark_point(size=60, strokeWidth=2, opacity=1, stroke=OPEN).encode(x=x),
        base.mark_square(size=60, opacity=1, color=PLAIN).encode(x=after),
        base.mark_text(**words).encode(x=alt.XValue(-left), text=alt.Text("label:N")),
        base.mark_text(**words).encode(
            x=alt.XValue(_DUMBBELL_WIDTH + _GAP), text=alt.Text("says:N")
        ),
        wide_to(_DUMBBELL_WIDTH + _GAP + width_of([pair.says for pair in pairs]), 0),
        *([said_at(legend, -left, height + 52)] if legend else []),
        width=_DUMBBELL_WIDTH,
        height=height,
    )


_SIDE = 260
_LEFT = -60  # where the words below begin: under the names of the axis


def dots(name: str, title: str, places: Sequence[PairedBin], clusters: str, unit: str) -> Chart:
    """Draw how values of clusters changed, with the line on which nothing changed. Single clusters
    are not tested, so no dot is marked as good or bad.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        places: Pairs of values, with the number of clusters that have them.
        clusters: What a cluster is, for the legend, such as "templates".
        unit: The unit of the values, for both axes.
    """
    ends = [end for point in places for end in (point.before, point.after)]
    room = 0.05 * ((max(ends) - min(ends)) or 1.0)
    low, high = min(ends) - room, max(ends) + room
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    x, y = (
        side(f"{field}:Q", scale=scale,
             axis=alt.Axis(title=f"{field}{unit and f', {unit}'}", tickCount=5, format=",~f"))
        for side, field in ((alt.X, "before"), (alt.Y, "after"))
    )  # fmt: skip
    table = [
        {"before": point.before, "after": point.after, "n": point.clusters} for point in places
    ]
    most = max(point.clusters for point in places)
    size = alt.Size("n:Q", scale=alt.Scale(domain=[0, most], range=[12, 120]), legend=None)
    even = alt.Chart(rows([{"before": end, "after": end} for end in (low, high)]))
    legend = _legend(places, clusters)
    spec = layered(
        even.mark_line(stroke=INK, strokeDash=[4, 4], opacity=0.7).encode(x=x, y=y),
        alt.Chart(rows(table)).mark_square(color=PLAIN, opacity=1).encode(x=x, y=y, size=size),
        wide_to(_LEFT + width_of(legend), 0),
        *(said_at(text, _LEFT, _SIDE + 56 + 16 * n) for n, text in enumerate(legend)),
        width=_SIDE,
        height=_SIDE,
    )
    largest = sorted(places, key=lambda point: -point.clusters)
    summary = listed(
        [f"{point.before:.2f} to {point.after:.2f}: {point.clusters:,}" for point in largest]
    )
    return drawn(
        name, title, f"{title}. {' '.join(legend)} The most, with how many: {summary}.", spec
    )


def _legend(places: Sequence[PairedBin], clusters: str) -> list[str]:
    rose, fell, stayed = (
        sum(
            point.clusters
            for point in places
            if (point.after > point.before) - (point.after < point.before) == way
        )
        for way in (1, -1, 0)
    )
    return [
        f"Of {rose + fell + stayed:,} {clusters} {rose:,} rose, {fell:,} fell, {stayed:,} stayed.",
        f"Dashed: as before. The larger a dot, the more {clusters} lie there.",
        "None of them is tested for itself.",
    ]
