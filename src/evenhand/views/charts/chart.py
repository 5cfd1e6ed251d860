"""A specification becomes an SVG here: its words are words, it holds no script and asks for nothing
from outside."""

import html
import re
from typing import Any

import altair as alt
import vl_convert

from evenhand.views.charts import Chart
from evenhand.views.visible import visible

# Okabe and Ito's colors, which most color-blind people can tell apart, and a grey. None is very
# light or very dark, so that each has 3:1 on a white and on a nearly black page; no color has the
# 4.5:1 of words on both, so that words take the color that the page has for them.
INK = "currentColor"
BAD, GOOD, PLAIN, OPEN = "#d55e00", "#009e73", "#0072b2", "#7a7a7a"
MARKS = (BAD, GOOD, PLAIN, OPEN)
# Alone, as a file or an image, a chart brings its page along, in the colors of document.css.
# Within a page, `:root` is not the chart.
LIGHT, DARK = ("#ffffff", "#1c1f24"), ("#15181c", "#e4e7eb")  # the page, and words on it
FAINT = 0.75  # opacity of words that come second
FONT, SIZE = "sans-serif", 12
_LETTER = 6.6  # px of a letter at that size, on the safe side
_BOLD = 9.4  # px of a letter of the title, likewise
_MARGIN = 16  # px, left and right of it
_LONGEST = 48  # our choice, in characters: of a name from outside
_VEGA_LITE = "6.4"
_CONFIG = {
    "font": FONT,
    "aria": False,  # the whole is one image with one text
    "background": None,
    "padding": 8,
    "view": {"stroke": None},
    "title": {"color": INK, "fontSize": SIZE + 2},
    "axis": {
        "domainColor": INK, "tickColor": INK, "gridColor": INK, "labelColor": INK,
        "titleColor": INK, "domainOpacity": 0.5, "tickOpacity": 0.5, "gridOpacity": 0.12,
        "labelOpacity": FAINT, "titleOpacity": FAINT, "labelFontSize": SIZE - 1,
        "titleFontSize": SIZE - 1, "titleFontWeight": "normal",
    },
}  # fmt: skip
_STYLE = (
    f":root.evenhand-chart{{background:{LIGHT[0]};color:{LIGHT[1]}}}"
    f"@media(prefers-color-scheme:dark){{:root.evenhand-chart{{background:{DARK[0]};color:{DARK[1]}}}}}"
)
_ROOT = re.compile(r'<svg [^>]*? width="([\d.]+)" height="([\d.]+)"[^>]*>')


Spec = dict[str, Any]  # a view of Vega-Lite


def layered(*layers: alt.Chart, width: float, height: float) -> Spec:
    """Put layers on each other. Our choice: by hand, since Altair's own way copies every layer
    several times and checks every part against its schema, two seconds of the demo's report."""
    return {"layer": [plain(layer) for layer in layers], "width": width, "height": height}


def stacked(panels: list[Spec], spacing: int) -> Spec:
    """Put panels below each other."""
    return {"vconcat": panels, "spacing": spacing} if len(panels) > 1 else panels[0]


def plain(part: alt.Chart) -> Spec:
    """Give one part's specification, unchecked: the tests check those of every kind of chart."""
    # Whatever a notebook has set; and data stay with their layer.
    with alt.theme.enable("none"), alt.data_transformers.enable(consolidate_datasets=False):
        spec: Spec = part.to_dict(validate=False)
    return {key: value for key, value in spec.items() if key != "$schema"}


def drawn(name: str, title: str, alt_text: str, spec: Spec) -> Chart:
    """Render a specification. Equal specifications give equal bytes.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        alt_text: The description for screen readers.
        spec: The Vega-Lite specification.
    """
    label = " ".join(visible(alt_text).split())
    heading = " ".join(visible(title).split())
    above = {"text": heading, "anchor": "start", "frame": "bounds", "offset": 14}
    svg = vl_convert.vegalite_to_svg(
        _cleared(spec | {"title": above}) | {"config": _CONFIG},
        vl_version=_VEGA_LITE,
        allowed_base_urls=[],
    )
    return Chart(name, heading, label, _alone(svg, label, _MARGIN + _BOLD * len(heading)))


def _cleared(spec: Any) -> Any:
    """Return the specification without invisible characters: at one that XML lacks, vl-convert
    would end the whole process."""
    match spec:
        case dict():
            return {key: _cleared(value) for key, value in spec.items()}
        case list():
            return [_cleared(value) for value in spec]
        case str():
            return visible(spec)
        case _:
            return spec


def _alone(svg: str, label: str, least: float) -> str:
    """Return the picture as one element that may share a page with others: Vega writes no id
    where nothing is clipped. It is as wide as its title may be."""
    measured, height = _ROOT.search(svg).groups()  # type: ignore[union-attr]
    width = max(measured, f"{least:.0f}", key=float)
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="evenhand-chart" role="img" '
        f'aria-label="{html.escape(label)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" style="max-width:100%;height:auto">'
        f"<style>{_STYLE}</style>"
    )
    return _ROOT.sub(lambda _: root, svg, count=1)


def rows(values: list[dict[str, Any]]) -> Any:
    """The data of a layer."""
    return alt.InlineData(values=values)


def name_of(text: str) -> str:
    """A name from outside, as a chart has room for it."""
    name = " ".join(visible(text[:1000]).split())
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def width_of(texts: list[str]) -> float:
    """Give the pixels that the longest of these texts needs."""
    return max(map(len, texts), default=0) * _LETTER


def wide_to(x: float, y: float) -> Any:
    """Keep a picture as wide as this place, in pixels, with nothing to be seen there: a reader's
    letters may be wider than those that the picture was measured with."""
    nothing = alt.Chart(rows([{}])).mark_point(opacity=0, size=1)
    return nothing.encode(x=alt.XValue(x), y=alt.YValue(y))


def listed(texts: list[str], most: int = 12) -> str:
    """Put what a chart shows into one text: the first of many, and how many more there are."""
    more = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return f"{'; '.join(texts[:most])}{more}"
