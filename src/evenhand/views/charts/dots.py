"""A dot plot of pairs has a dot where a cluster lies: its number before across, after upwards."""

from collections.abc import Sequence

import altair as alt

from evenhand.findings.paired_totals import PairedBin
from evenhand.views.charts import Chart
from evenhand.views.charts.chart import INK, PLAIN, drawn, layered, listed, rows, wide_to, width_of
from evenhand.views.charts.forest import said_at

_SIDE = 260
_LEFT = -60  # where the words below begin: under the names of the axis


def dots(name: str, title: str, places: Sequence[PairedBin], clusters: str, unit: str) -> Chart:
    """Draw the places, and the line on which nothing changed. Single clusters are not tested, so
    that no dot says that it is good or bad."""
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
