"""Charts show a finding as pictures, each one SVG: a file per kind of chart and one per kind of
finding, none per instrument. They need the extra `report`."""

from dataclasses import dataclass
from importlib.util import find_spec

from evenhand.core.errors import UserError
from evenhand.views.blocks import Block, Figure, Line

__all__ = ["Chart", "charts_of", "installed"]

_INSTALL = "charts need altair and vl-convert: pip install 'evenhand[report]'"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart has a name for files, a title, what it shows in words, and the picture: one <svg>
    that runs nothing, asks for nothing from outside and stands for itself."""

    name: str
    title: str
    alt: str
    svg: str


def installed() -> bool:
    """Say whether the extra that draws charts is there."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def charts_of(finding: object) -> tuple[Chart, ...]:
    """Draw a finding. A kind of finding that has no chart gives none."""
    if not installed():
        raise UserError(_INSTALL)
    from evenhand.views.charts.kinds import drawn  # noqa: PLC0415  # a second to import

    return drawn(finding)


_MOST = 450_000  # our choice, in bytes of a page: with its words it stays below a megabyte
_HOW = "Without pictures, which need an extra: pip install 'evenhand[report]'"


class Pictures:
    """The figures of one page, until it has as many as it can carry."""

    def __init__(self) -> None:
        self._bytes = 0
        self._left_out = 0
        self._led: dict[int, tuple[Chart, ...]] = {}  # by finding: what `lead` left
        self.cost: list[Block] = []  # what belongs to the part about cost, from any finding

    def lead(self, finding: object) -> list[Block]:
        """Draw the first chart of a finding. `of` draws the others."""
        first, *others = (charts_of(finding) if installed() else ()) or (None,)
        self._led[id(finding)] = tuple(chart for chart in others if chart is not None)
        if first is None:
            return []
        self._bytes += len(first.svg)
        return [Figure(first.title, first.alt, first.svg)]

    def of(self, finding: object, title: str) -> list[Block]:
        """Draw the charts of a finding; none where they cannot be drawn, or would be too many."""
        figures: list[Block] = []
        left = self._led.get(id(finding))
        for chart in left if left is not None else charts_of(finding) if installed() else ():
            if self._bytes + len(chart.svg) > _MOST:
                self._left_out += 1
                continue
            self._bytes += len(chart.svg)
            figure = Figure(chart.title, chart.alt, chart.svg)
            if chart.name == "cost":
                self.cost += [Line(title, "strong"), figure]
            else:
                figures.append(figure)
        return figures

    def remarks(self) -> list[Block]:
        """Say what is not drawn, and why."""
        if not installed():
            return [Line(_HOW, "dim")]
        text = f"{self._left_out:,} more charts are left out, so that the page stays small."
        return [Line(text, "dim")] if self._left_out else []
