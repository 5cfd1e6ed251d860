"""The charts of an audit of a judge: what each label does to its marks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.findings.audit import Audit
from evenhand.findings.estimates import NO_SPREAD
from evenhand.views.charts import Chart
from evenhand.views.charts.forest import Panel, Row, State, forest
from evenhand.views.charts.heat import Cell, heat

_STATES: dict[str, State] = {
    "shifted": "bad", "equivalent within the margin": "good", "inconclusive": "open",
}  # fmt: skip
_SIGNS: dict[State, str] = {"bad": "✗", "good": "✓", "open": "?", "plain": ""}
_LEGEND = (
    "✗ shown to shift the mark, ✓ shown to stay within the margin (±{:g}), ? neither is shown."
)
_COLOURS = "Orange: marks go up, blue: they go down; the stronger, the larger."
_NO_LABEL, _COMBINED = "none", "combined"
Effect = Mapping[str, Any]


def charts(audit: Audit) -> tuple[Chart, ...]:
    """Draw an audit: that of a judge has effects of labels."""
    if "primary" in audit.more:
        return (*_identities(audit.more["primary"]), *_by_metric(audit.more))
    return ()


def _identities(effects: Sequence[Effect]) -> Iterator[Chart]:
    """Each identity against no label, on the mean of all marks."""
    if not effects:
        return
    margin = effects[0]["margin"]
    panel = Panel(
        rows=[_row(effect) for effect in effects],
        axis="points of the mark",
        line=0.0,
        band=(-margin, margin),
    )
    legend = [_LEGEND.format(margin), "Grey band: the margin. n: base scenarios."]
    yield forest("identities", "What a label does to the mark, against no label", [panel], legend)


def _row(effect: Effect) -> Row:
    return Row(
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
        _cell(label, "all marks" if metric == _COMBINED else metric, lookup.get((label, metric)))
        for label in labels
        for metric in metrics
    ]
    if len(metrics) > 1:
        legend = [_LEGEND.format(alone[0]["margin"]), _COLOURS]
        yield heat("labels", "What each label does to each mark, in points", cells, legend)


def _cell(row: str, column: str, effect: Effect | None) -> Cell:
    if effect is None:
        return Cell(row=row, column=column, sign="", value=None, says="not asked")
    value = effect["estimate"]
    text = "no value" if value is None else f"{value:+.2f}"
    sign = _SIGNS[_STATES[effect["verdict"]]]
    return Cell(row=row, column=column, sign=sign, value=value, says=text)
