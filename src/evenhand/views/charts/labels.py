"""Names in a plot are placed here so that none covers another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin

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


def place(
    points: Sequence[LabelledPoint], panel: LabelBox, bars: Sequence[LabelBox] = ()
) -> list[LabelBox]:
    """A box for each label, one after the other: the nearest place that covers least. A label on
    another one is worst, then one on a marker; one on a bar can still be read."""
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
