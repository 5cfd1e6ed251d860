"""The charts of a report: every number that it judges by, the groups, and what was spent."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.report import Report, reach
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.verdicts import main_measure
from evenhand.views import numbers
from evenhand.views.charts import Chart
from evenhand.views.charts.forest import ForestPanel, ForestRow, HasBounds, State, forest
from evenhand.views.charts.in_order import MOST_PANELS, in_order
from evenhand.views.report_page import by_evidence

MOST_ROWS = 30  # our choice: what can be looked at; the tables have all
ARROWS = {"lower": " ↓", "higher": " ↑", "zero": "", "fifty": "", "none": ""}
WAYS = "↓ less is better, ↑ more is better."
DASHED = "Dashed: what it could be if the missing answers were known."
_BAND = "Gray band: too small to matter (±{:g})."
_SIGNS = "✗ bias detected, ? inconclusive."
_AFTER_HOLM = "✗ bias detected (Holm-adjusted p ≤ 0.05), ? inconclusive."


def charts(report: Report) -> tuple[Chart, ...]:
    """Draw a report."""
    return (*_series(report), *_overall(report), *_by_group(report))


def _series(report: Report) -> Iterator[Chart]:
    """The measures that are one number at several points, such as turn by turn."""
    series, instrument = report.instrument.series, report.instrument
    panels = []
    for each in series:
        points = [(str(at), report[name], instrument.measure(name)) for at, name in each.points]
        panel = replace(panel_of(instrument, points), title=each.label)
        if any(row.value is not None for row in panel.rows):
            panels.append(panel)
    if panels:
        legend = legend_of(panels, _AFTER_HOLM)
        more = len(panels) - MOST_PANELS
        legend += [f"{MOST_PANELS} of {len(panels)}: the table has all."] if more > 0 else []
        axis = series[0].axis
        title = f"The effect by {axis}, with 95% CIs"
        yield in_order(f"by_{axis}", title, axis, panels, legend)


def _overall(report: Report) -> Iterator[Chart]:
    """All measures of the short page, those with the same unit and range on one axis."""
    measures = report.instrument.measures
    visible = [m for m in measures if m.role != "secondary"] or list(measures)
    in_series = {name for series in report.instrument.series for _, name in series.points}
    visible = [measure for measure in visible if measure.name not in in_series]
    axes: dict[tuple[object, ...], list[Measure]] = {}
    for measure in sorted(visible, key=lambda measure: measure.role != "primary"):
        if not measure.absent or report[measure.name].undefined != measure.absent:
            within = measure.within if report.instrument.selects is None else None
            axes.setdefault((measure.unit, measure.null, within), []).append(measure)
    panels = [_overall_panel(report, measures) for measures in axes.values()]
    if panels:
        title = "What was measured, with 95% CIs"
        yield forest("estimates", title, panels, legend_of(panels, _SIGNS))


def _overall_panel(report: Report, measures: Sequence[Measure]) -> ForestPanel:
    """Put measures on one axis. The verdict looks at the main one alone, and so do the
    marks: of the others no bias is called shown without a correction for looking at them too."""
    estimates = [(f"{m.label}{ARROWS[m.better]}", report[m.name], m) for m in measures]
    panel, main = panel_of(report.instrument, estimates), main_measure(report)
    if report.instrument.selects is not None:  # every one is corrected for all
        return panel
    pairs = zip(panel.rows, measures, strict=True)
    return replace(
        panel, rows=[row if m is main else replace(row, state="plain") for row, m in pairs]
    )


def _by_group(report: Report) -> Iterator[Chart]:
    """The main measure in each group, the largest first."""
    for column, values in report.groups.items():
        measure = _of_groups(report, values)
        if measure is None:
            continue
        pairs = [
            (value, estimate)
            for value, estimates in values.items()
            for estimate in estimates
            if estimate.name == measure.name
        ]
        chosen = sorted(by_evidence(pairs)[:MOST_ROWS], key=lambda pair: _falling(pair[1]))
        rows = [(value.replace("_", " "), estimate, measure) for value, estimate in chosen]
        panel = panel_of(report.instrument, rows, times=2)  # as the verdict asks of a group
        legend = legend_of([panel], _AFTER_HOLM)
        if len(pairs) > MOST_ROWS:
            legend.append(f"{MOST_ROWS} of {len(pairs)}, chosen by p: the table has all.")
        title = f"{measure.label}{ARROWS[measure.better]}, by {column}"
        yield forest(f"by_{column}", title, [panel], legend)


def _of_groups(report: Report, values: Mapping[str, Sequence[Estimate]]) -> Measure | None:
    """The measure to show by group: the main one, else the first that is not secondary."""
    measures = [report.instrument.measure(e.name) for e in next(iter(values.values()), ())]
    main = main_measure(report)
    if main in measures:
        return main
    return next((m for m in measures if m.role != "secondary"), None)


def _falling(estimate: Estimate) -> tuple[bool, float]:
    return estimate.value is None, -(estimate.value or 0.0)


def panel_of(
    instrument: ScoringSpec, estimates: Sequence[tuple[str, Estimate, Measure]], *, times: int = 1
) -> ForestPanel:
    """Put estimates of metrics with the same unit on one axis.

    Args:
        instrument: The benchmark, which names the smallest effect of interest.
        estimates: The label, the estimate and the metric of each row.
        times: How many times the smallest effect of interest the band is wide, on each side.
    """
    measure = estimates[0][2]
    line, far = measure.null, times * reach(instrument, measure)
    return ForestPanel(
        rows=[estimate_row(label, estimate, of) for label, estimate, of in estimates],
        axis=axis_of(measure),
        line=line,
        band=None if line is None else (line - far, line + far),
        within=measure.within,
        from_zero=measure.within[0] == 0,
    )


def estimate_row(label: str, estimate: Estimate, measure: Measure) -> ForestRow:
    """Make the row of an estimate. A single cluster allows nearly any value, so its interval is not
    drawn.

    Args:
        label: The name of the row.
        estimate: The estimate.
        measure: The metric.
    """
    alone = estimate.clusters == 1
    ends = numbers.interval(estimate, measure)
    value = numbers.value(estimate.value, measure)
    return ForestRow(
        label=label,
        value=estimate.value,
        low=None if alone else estimate.low,
        high=None if alone else estimate.high,
        bounds=bounds_of(estimate),
        state=_state(estimate, measure),
        says=ends if estimate.value is None else f"{value} ({ends})" if ends else value,
        n=estimate.n,
    )


def bounds_of(bounded: HasBounds) -> tuple[float | None, float | None] | None:
    """Give the ends that the missing answers allow, where any is missing."""
    if bounded.bounds is None or not bounded.bounds.missing:
        return None
    return bounded.bounds.low, bounded.bounds.high


def _state(estimate: Estimate, measure: Measure) -> State:
    if measure.null is None or estimate.value is None:
        return "plain"
    p = estimate.p if estimate.p_holm is None else estimate.p_holm
    return "bad" if p is not None and p <= ALPHA else "open"


def axis_of(measure: Measure) -> str:
    """Say in which unit an axis is."""
    least, most = measure.within
    if measure.unit == "share":
        return "" if least < 0 else "share"
    return f"{measure.unit}, of {most:g}" if most < float("inf") else measure.unit


def legend_of(panels: Sequence[ForestPanel], marks: str) -> list[str]:
    """Return what the marks, the band, the dashes and the arrows of these panels mean."""
    every = [row for panel in panels for row in panel.rows]
    lines = []
    if any(row.state in ("bad", "open") for row in every):
        lines.append(marks)
    bands = [panel.band for panel in panels if panel.band is not None]
    lines += [_BAND.format(round((high - low) / 2, 6)) for low, high in bands[:1]]
    lines += [DASHED] if any(row.bounds for row in every) else []
    arrows = any(row.label.endswith(("↑", "↓")) for row in every)
    return [*lines, *([WAYS] if arrows else [])]
