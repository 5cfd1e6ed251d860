"""A frontier as a drawing: cost against harm and against utility, as SVG that any browser shows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from evenhand.findings.frontier import VOTE, Frontier
from evenhand.findings.frontier_entry import Entry
from evenhand.findings.measures import Measure
from evenhand.views.frontier_labels import HEIGHT, Box, Point, place

_WIDTH, _HEIGHT = 1240, 560
_PANELS = (Box(70, 92, 600, 490), Box(690, 92, 1220, 490))
_INK, _FAINT, _GRID = "#24292f", "#6b7280", "#e5e7eb"
_FRONT, _BEHIND = "#1d4ed8", "#8b929c"
_BETTER = {
    "lower": "lower is better",
    "higher": "higher is better",
    "zero": "0 is best",
    "fifty": "50 is best",
    "none": "",
}


@dataclass(frozen=True, slots=True)
class _Mark:
    """A method in one panel, in the units of its axes."""

    label: str
    on_front: bool
    is_vote: bool
    x: tuple[float, float, float]  # low, estimate, high
    y: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class _Axis:
    ticks: tuple[float, ...]
    at: Callable[[float], float]  # pixels


def plot(found: Frontier) -> str:
    """The whole picture. A method without one of its numbers is left out of that panel."""
    source, instrument = found.source, found.instrument
    axis = f"mean {found.cost_axis} an answer"
    if found.cost_axis == "money":
        axis = f"mean {found.currency} for 1,000 answers"
    head = (
        f"{instrument.title} {source['version']} · {found.model} · {source['items']:,} items · "
        f"at most {found.calls} calls an item"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" '
        'font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _text(_PANELS[0].left, 28, head, size=15, weight="bold"),
        *_legend(instrument.clusters),
    ]
    named = (("Harm", instrument.harm), ("Utility", instrument.utility))
    for panel, (word, name) in zip(_PANELS, named, strict=True):
        if name is None:
            parts.append(_text(panel.left, panel.top - 12, f"{word}: not measured", size=13))
            continue
        measure = instrument.measure(name)
        title = f"{word}: {measure.label} ({_BETTER[measure.better]})"
        marks = [mark for one in found.entries if (mark := _mark(found, one, measure))]
        parts.append(_text(panel.left, panel.top - 12, title, size=13))
        parts += _panel(panel, marks, axis, measure) if marks else ()
    return "\n".join([*parts, "</svg>", ""])


def _mark(found: Frontier, entry: Entry, measure: Measure) -> _Mark | None:
    cost, one = entry.cost[found.cost_axis], entry.report[measure.name]
    if cost.mean is None or one.value is None:
        return None
    scale = 1000 if found.cost_axis == "money" else 1
    x = _ends(scale * cost.mean, *(None if v is None else scale * v for v in (cost.low, cost.high)))
    is_vote = entry.name == VOTE or entry.role == "vote"
    calls = entry.report.side.method["settings"].get("calls")
    label = f"×{calls}" if entry.role == "vote" else entry.name
    return _Mark(label, entry.pareto, is_vote, x, _ends(one.value, one.low, one.high))


def _ends(middle: float, low: float | None, high: float | None) -> tuple[float, float, float]:
    """Low, estimate and high; a bar without an interval is a point."""
    return middle if low is None else low, middle, middle if high is None else high


def _panel(panel: Box, marks: list[_Mark], cost: str, measure: Measure) -> list[str]:
    x, said = _cost_axis(panel, marks)
    y = _score_axis(panel, marks, measure)
    parts = _grid(panel, x, y)
    parts.append(_text((panel.left + panel.right) / 2, panel.bottom + 38, cost + said, "middle"))
    bars: list[Box] = []
    for mark in marks:
        across, up = [x.at(v) for v in mark.x], [y.at(v) for v in mark.y]
        bars.append(Box(across[1] - 1, up[2], across[1] + 1, up[0]))
        colour = _FRONT if mark.on_front else _BEHIND
        for a, b in (
            ((across[0], up[1]), (across[2], up[1])),
            ((across[1], up[0]), (across[1], up[2])),
        ):
            parts.append(_line(a, b, colour, width=1.2, opacity=0.55))
    points = [Point(x.at(mark.x[1]), y.at(mark.y[1]), mark.label) for mark in marks]
    parts.append(_curve([p for p, mark in zip(points, marks, strict=True) if mark.is_vote]))
    parts += [_marker(p.x, p.y, mark.on_front) for p, mark in zip(points, marks, strict=True)]
    for point, mark, box in zip(points, marks, place(points, panel, bars), strict=True):
        parts += _label(point, box, mark.on_front)
    return parts


def _curve(votes: list[Point]) -> str:
    """Self-consistency from few calls to many, as one dotted line."""
    path = " ".join(f"{p.x:.1f},{p.y:.1f}" for p in sorted(votes, key=lambda p: p.x))
    return (
        f'<polyline points="{path}" fill="none" stroke="{_BEHIND}" stroke-width="1.2" '
        'stroke-dasharray="2 4"/>'
    )


def _grid(panel: Box, x: _Axis, y: _Axis) -> list[str]:
    parts = []
    for value in y.ticks:
        at = y.at(value)
        parts.append(_line((panel.left, at), (panel.right, at), _GRID))
        parts.append(_text(panel.left - 8, at + 4, f"{value:g}", "end", colour=_FAINT))
    for value in x.ticks:
        at = x.at(value)
        parts.append(_line((at, panel.top), (at, panel.bottom), _GRID))
        parts.append(_text(at, panel.bottom + 18, f"{value:,g}", "middle", colour=_FAINT))
    parts.append(_line((panel.left, panel.bottom), (panel.right, panel.bottom), _FAINT))
    parts.append(_line((panel.left, panel.top), (panel.left, panel.bottom), _FAINT))
    return parts


def _cost_axis(panel: Box, marks: list[_Mark]) -> tuple[_Axis, str]:
    """By powers where the dearest costs far more than the cheapest; a free method needs a 0."""
    least, most = min(m.x[1] for m in marks), max(max(m.x) for m in marks)
    room = panel.right - panel.left
    if least <= 0 or most < 3 * least:
        top = most * 1.08 or 1.0
        ticks = _round_steps(0.0, top)
        return _Axis(ticks, lambda v: panel.left + room * min(max(v, 0.0), top) / top), ""
    low, high = math.log(least / 1.3), math.log(most * 1.3)

    def at(value: float) -> float:
        share = (math.log(max(value, least / 1.3)) - low) / (high - low)
        return panel.left + room * share

    decades = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    steps = (m * 10.0**d for d in decades for m in (1, 2, 5))
    return _Axis(tuple(s for s in steps if low <= math.log(s) <= high), at), " (log scale)"


def _score_axis(panel: Box, marks: list[_Mark], measure: Measure) -> _Axis:
    """Only the part of the measure's range that is used is drawn, and a bar ends there."""
    unit = 1.0 if measure.unit == "share" else 100.0
    least, most = measure.within
    low = max(least, min(min(m.y) for m in marks) - 0.03 * unit)
    high = min(most, max(max(m.y) for m in marks) + 0.03 * unit)
    if high - low < 0.1 * unit:
        low, high = max(least, low - 0.05 * unit), min(most, high + 0.05 * unit)
    inset, room = 14, panel.bottom - panel.top - 28

    def at(value: float) -> float:
        return panel.bottom - inset - room * (min(max(value, low), high) - low) / (high - low)

    return _Axis(_round_steps(low, high), at)


def _round_steps(low: float, high: float) -> tuple[float, ...]:
    """About six ticks of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    first = math.ceil(low / step - 1e-9)
    return tuple(round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1))


def _legend(clusters: str) -> list[str]:
    x, y = _PANELS[0].left, 50
    return [
        _marker(x + 6, y - 4, on_front=True),
        _text(x + 18, y, "on the Pareto front (cost, harm, utility)", colour=_FAINT),
        _marker(x + 250, y - 4, on_front=False),
        _text(x + 262, y, "behind it", colour=_FAINT),
        _text(x + 330, y, f"bars: 95 % intervals over {clusters}", colour=_FAINT),
        _text(x + 560, y, "dotted: self-consistency, ×n for n calls", colour=_FAINT),
    ]


def _label(point: Point, box: Box, on_front: bool) -> list[str]:
    """The name, and a thread to its marker where it had to move away."""
    centre = (box.left + box.right) / 2
    parts = []
    near_x = min(max(point.x, box.left), box.right)
    near_y = min(max(point.y, box.top), box.bottom)
    if math.hypot(near_x - point.x, near_y - point.y) > 16:
        parts.append(_line((point.x, point.y), (near_x, near_y), _BEHIND, width=0.7, opacity=0.8))
    colour, weight = (_FRONT, "bold") if on_front else (_INK, "normal")
    name = _text(
        centre, box.bottom - HEIGHT * 0.24, point.label, "middle", colour=colour, weight=weight
    )
    return [*parts, name]


def _marker(x: float, y: float, on_front: bool) -> str:
    if on_front:
        corners = ((x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y))
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        return f'<polygon points="{path}" fill="{_FRONT}" stroke="#ffffff"/>'
    ring = f'fill="#ffffff" stroke="{_BEHIND}" stroke-width="1.8"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.2" {ring}/>'


def _line(
    a: tuple[float, float],
    b: tuple[float, float],
    colour: str,
    *,
    width: float = 1.0,
    opacity: float = 1.0,
) -> str:
    return (
        f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" stroke="{colour}" '
        f'stroke-width="{width}" opacity="{opacity}"/>'
    )


def _text(
    x: float,
    y: float,
    words: str,
    anchor: str = "start",
    *,
    colour: str = _INK,
    size: int = 11,
    weight: str = "normal",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size}" font-weight="{weight}" paint-order="stroke" stroke="#ffffff" '
        f'stroke-width="3">{escape(words)}</text>'
    )
