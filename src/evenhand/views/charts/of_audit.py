"""The charts of an audit: what each label does to a judge's marks; which texts a scorer gets wrong,
and its scores next to the recorded ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from evenhand.core.conclusions import Outcome
from evenhand.findings.audit import Audit
from evenhand.findings.estimates import NO_SPREAD, Estimate
from evenhand.views.charts import Chart
from evenhand.views.charts.chart import INK, PLAIN, drawn, layered, listed, rows
from evenhand.views.charts.forest import ForestPanel, ForestRow, State, forest, said_at
from evenhand.views.charts.heat import Cell, heat
from evenhand.views.charts.of_report import DASHED, MOST_ROWS

_SIDE = 260


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveBin:
    """A range of scores: the mean score, the mean of what was right, and how many texts."""

    score: float
    target: float
    n: int


def curve(
    name: str, title: str, steps: Sequence[CurveBin], axes: tuple[str, str], caption: str
) -> Chart:
    """Draw a calibration curve, with the line of a perfectly calibrated scorer.

    Args:
        name: The identifier of the chart.
        title: The title above it.
        steps: The bins of scores.
        axes: The titles of the horizontal and the vertical axis.
        caption: A line of text below the chart.
    """
    scale = alt.Scale(domain=[0, 1], nice=False)
    x, y = (
        side(f"{field}:Q", scale=scale, axis=alt.Axis(title=label, tickCount=5, format=",~f"))
        for side, field, label in ((alt.X, "score", axes[0]), (alt.Y, "target", axes[1]))
    )
    table: list[dict[str, Any]] = [
        {"score": step.score, "target": step.target, "n": step.n} for step in steps
    ]
    ends = [{"score": end, "target": end} for end in (0, 1)]
    size = alt.Size("n:Q", scale=alt.Scale(domainMin=0, range=[15, 120]), legend=None)
    base = alt.Chart(rows(table)).encode(x=x, y=y)
    even = alt.Chart(rows(ends)).mark_line(stroke=INK, strokeDash=[4, 4], opacity=0.7)
    spec = layered(
        even.encode(x=x, y=y),
        base.mark_line(stroke=PLAIN, strokeWidth=1.5),
        base.mark_square(color=PLAIN, opacity=1).encode(size=size),
        said_at("Dashed: as it should be. The larger, the more texts.", 0, _SIDE + 56),
        said_at(caption, 0, _SIDE + 72),
        width=_SIDE,
        height=_SIDE,
    )
    words = listed(
        [f"score {step.score:.2f}, right {step.target:.2f}, n {step.n:,}" for step in steps]
    )
    return drawn(name, title, f"{title}. {words}. {caption}", spec)


_STATES: dict[str, State] = {
    Outcome.DETECTED: "bad", Outcome.RULED_OUT: "good", Outcome.INCONCLUSIVE: "open",
}  # fmt: skip
_SIGNS: dict[State, str] = {"bad": "✗", "good": "✓", "open": "?", "plain": ""}
_LEGEND = "✗ effect detected, ✓ within the margin (±{:g}), ? inconclusive."
_COLOURS = "Orange: scores rise, blue: scores fall. A stronger color is a larger effect."
_WRONG = {
    "false_positives": "Harmless texts called toxic ↓",
    "misses": "Hateful texts missed ↓",
}
_RELIABILITY = "reliability_"  # begins the names of the tables that are drawn as curves
_NO_LABEL, _COMBINED = "none", "combined"
Effect = Mapping[str, Any]


def charts(audit: Audit) -> tuple[Chart, ...]:
    """Draw an audit: that of a judge has effects of labels."""
    if "primary" in audit.more:
        return (*_identities(audit.more["primary"]), *_by_metric(audit.more))
    return (*_shares(audit), *_curves(audit))


def _shares(audit: Audit) -> Iterator[Chart]:
    """The share that is judged wrongly, of each set and of the worst kinds and groups."""
    for name, title in _WRONG.items():
        estimates = [
            (value, estimate)
            for groups in audit.more.get("groups", {}).values()
            for value, each in groups.items()
            for estimate in each
            if estimate.name == name and (estimate.n or estimate.bounds)
        ]
        worst = sorted(estimates, key=lambda pair: -(pair[1].value or 0.0))[:MOST_ROWS]
        if not worst:
            continue
        panel = ForestPanel(
            rows=[_share_row(value, estimate) for value, estimate in worst],
            axis="share",
            within=(0, 1),
            from_zero=True,
        )
        cut = len(worst) < len(estimates)
        legend = [f"The worst {len(worst)} of {len(estimates)}."] if cut else []
        if any(estimate.bounds for _, estimate in worst):
            legend.append(DASHED.replace("answers", "scores"))
        yield forest(name, title, [panel], legend)


def _share_row(label: str, estimate: Estimate) -> ForestRow:
    text = estimate.undefined or "no value"
    if estimate.value is not None:
        ends = "no interval"
        if estimate.low is not None:
            ends = f"{estimate.low:.2f} to {estimate.high:.2f}"
        text = f"{estimate.value:.2f} ({ends})"
    bounds = estimate.bounds
    return ForestRow(
        label=label,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        bounds=None if bounds is None else (bounds.low, bounds.high),
        says=text,
        n=estimate.n,
    )


def _curves(audit: Audit) -> Iterator[Chart]:
    """The scores of each set next to the recorded ones."""
    for section in audit.sections:
        name = section.name.removeprefix(_RELIABILITY)
        if name == section.name:
            continue
        numbers = [[float(cell or 0) for cell in row] for row in section.rows]
        steps = [
            CurveBin(score=score, target=target, n=int(n)) for _, _, n, score, target in numbers
        ]
        errors = audit.more["groups"]["set"][name]
        error = next(each for each in errors if each.name == "calibration_error")
        if error.value is None:
            continue
        ends = "no interval" if error.low is None else f"{error.low:.2f} to {error.high:.2f}"
        caption = f"Calibration error {error.value:.2f} ({ends}), n {error.n:,}."
        axes = ("this scorer's score", "the recorded score")
        yield curve(
            f"calibration_{name}", f"Scores and recorded ones: {name}", steps, axes, caption
        )


def _identities(effects: Sequence[Effect]) -> Iterator[Chart]:
    """Each identity against no label, on the mean of all marks."""
    if not effects:
        return
    margin = effects[0]["margin"]
    panel = ForestPanel(
        rows=[_row(effect) for effect in effects],
        axis="points of the mark",
        line=0.0,
        band=(-margin, margin),
    )
    legend = [_LEGEND.format(margin), "Gray band: the margin. n: base scenarios."]
    yield forest("identities", "What a label does to the mark, against no label", [panel], legend)


def _row(effect: Effect) -> ForestRow:
    return ForestRow(
        label=effect["label"],
        value=effect["estimate"],
        low=effect["low"],
        high=effect["high"],
        state=_STATES[effect["verdict"]],
        says=_said(effect),
        n=effect["bases"],
    )


def _said(effect: Effect) -> str:
    if effect["estimate"] is None:
        return effect["undefined"] or "no value"
    ends = f"{effect['low']:+.2f} to {effect['high']:+.2f}" if effect["low"] is not None else ""
    if effect["undefined"] == NO_SPREAD:
        ends = f"no spread in {effect['bases']}"
    elif not ends:
        ends = effect["undefined"] or "no interval"
    lost = f"; {effect['missing']} missing" if effect["missing"] else ""
    return f"{effect['estimate']:+.2f} ({ends}{lost})"


def _by_metric(more: Mapping[str, Any]) -> Iterator[Chart]:
    """Each label on each metric; a column has what one metric's marks show."""
    effects = [*more["primary"], *more["exploratory"]]
    alone = [
        effect for effect in effects if effect["against"] == _NO_LABEL and effect["value"] != "win"
    ]
    metrics = list(dict.fromkeys([_COMBINED, *(effect["value"] for effect in alone)]))
    labels = list(dict.fromkeys(effect["label"] for effect in alone))
    lookup = {(effect["label"], effect["value"]): effect for effect in reversed(alone)}
    cells = [
        _cell(label, "all scores" if metric == _COMBINED else metric, lookup.get((label, metric)))
        for label in labels
        for metric in metrics
    ]
    if len(metrics) > 1:
        legend = [_LEGEND.format(alone[0]["margin"]), _COLOURS]
        yield heat("labels", "Effect of each label on each score, in points", cells, legend)


def _cell(row: str, column: str, effect: Effect | None) -> Cell:
    if effect is None:
        return Cell(row=row, column=column, sign="", value=None, says="not asked")
    value = effect["estimate"]
    text = "no value" if value is None else f"{value:+.2f}"
    sign = _SIGNS[_STATES[effect["verdict"]]]
    return Cell(row=row, column=column, sign=sign, value=value, says=text)
