"""The charts of a finding become figures of a page, where the extra that draws them is there."""

from evenhand.views import charts
from evenhand.views.blocks import Block, Figure, Line

_MOST = 450_000  # our choice, in bytes of a page: with its words it stays below a megabyte
_HOW = "Without pictures, which need an extra: pip install 'evenhand[report]'"


class Pictures:
    """The figures of one page, until it has as many as it can carry."""

    def __init__(self) -> None:
        self._bytes = 0
        self._left_out = 0
        self.cost: list[Block] = []  # what belongs to the part about cost, from any finding

    def of(self, finding: object, title: str) -> list[Block]:
        """Draw the charts of a finding; none where they cannot be drawn, or would be too many."""
        figures: list[Block] = []
        for chart in charts.charts_of(finding) if charts.installed() else ():
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
        if not charts.installed():
            return [Line(_HOW, "dim")]
        text = f"{self._left_out:,} more charts are left out, so that the page stays small."
        return [Line(text, "dim")] if self._left_out else []
