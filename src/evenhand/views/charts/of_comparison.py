"""The charts of a comparison: what changed, where, which answers, and what it costs."""

from collections.abc import Iterator

from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import direction, in_unit
from evenhand.findings.estimates import Change
from evenhand.findings.measures import Measure
from evenhand.views import numbers
from evenhand.views.charts import Chart
from evenhand.views.charts.before_after import DumbbellRow, SlopeLine, dots, dumbbell, slope
from evenhand.views.charts.forest import ForestPanel, ForestRow, State, forest
from evenhand.views.charts.of_report import ARROWS, DASHED, MOST_ROWS, WAYS, axis_of, bounds_of

_SIGNS = "✓ improved, ✗ regressed, ? inconclusive."
_STATES: dict[str, State] = {"improved": "good", "regressed": "bad", "inconclusive": "open"}
_KINDS = (("calls", 1), ("tokens", 0), ("seconds", 2))


def charts(comparison: Comparison) -> tuple[Chart, ...]:
    """Draw a comparison."""
    return (
        *_changes(comparison),
        *_slopes(comparison),
        *_pairs(comparison),
        *_answers(comparison),
        *_cost(comparison),
    )


def _changes(comparison: Comparison) -> Iterator[Chart]:
    """Every change that is judged or has a margin; those with the same margin on one axis."""
    by_name = {measure.name: measure for measure in comparison.instrument.measures}
    judged = {change.name for change in comparison.primary or comparison.secondary}
    axes: dict[tuple[str, float], list[tuple[Change, Measure]]] = {}
    for change in (*comparison.primary, *comparison.secondary):
        measure = by_name.get(change.name)
        if measure and (change.name in judged or measure.role == "guardrail"):
            # a change is compared with the margin of its metric, else with what matters
            size = measure.margin or in_unit(comparison.instrument.matters, measure)
            axes.setdefault((measure.unit, size), []).append((change, measure))
    panels = [_panel(changes, size) for (_, size), changes in axes.items()]
    if not panels:
        return
    lost = any(bounds_of(change) for changes in axes.values() for change, _ in changes)
    band = "Gray band: the margin, or effects too small to matter."
    legend = [_SIGNS, band, *([DASHED] if lost else []), WAYS]
    yield forest("changes", "What changed: after minus before, with 95% CIs", panels, legend)


def _panel(changes: list[tuple[Change, Measure]], size: float) -> ForestPanel:
    axis = axis_of(changes[0][1])
    return ForestPanel(
        rows=[_row(change, measure) for change, measure in changes],
        axis=f"change{axis and f', {axis}'} (band ±{size:g})",
        line=0.0,
        band=(-size, size),
    )


def _row(change: Change, measure: Measure) -> ForestRow:
    alone = change.clusters == 1
    return ForestRow(
        label=f"{measure.label}{ARROWS[measure.better]}",
        value=change.effect,
        low=None if alone or change.interval is None else change.interval[0],
        high=None if alone or change.interval is None else change.interval[1],
        bounds=bounds_of(change),
        state=_STATES[direction(change, measure)],
        says=_said(change, measure),
        n=change.n,
    )


def _said(change: Change, measure: Measure) -> str:
    ends = numbers.change_interval(change, measure)
    if change.difference is None:
        return ends
    return f"{numbers.signed(change.effect, measure)} ({ends})"


def _slopes(comparison: Comparison) -> Iterator[Chart]:
    """The first primary measure in each group, before and after."""
    for column, values in comparison.groups.items():
        for measure in comparison.instrument.primary()[:1]:
            changes = {
                value: next(change for change in changes if change.name == measure.name)
                for value, changes in values.items()
            }
            lines = [
                line
                for value, change in changes.items()
                if (line := _line(comparison, value, change, measure))
            ]
            if len(lines) < 2:
                continue
            legend = ["✗ regressed (Holm-adjusted over all groups), ? inconclusive."]
            if len(lines) > MOST_ROWS:
                lines = sorted(lines, key=lambda line: -abs(line.after - line.before))[:MOST_ROWS]
                legend.append(f"The {MOST_ROWS} largest changes of {len(changes)}.")
            elif len(lines) < len(changes):
                legend.append(f"{len(changes) - len(lines)} groups have no value on one side.")
            title = f"{measure.label}{ARROWS[measure.better]}, by {column}, before and after"
            yield slope(f"slope_{column}", title, lines, legend)


def _line(comparison: Comparison, value: str, change: Change, measure: Measure) -> SlopeLine | None:
    if change.before is None or change.after is None or change.difference is None:
        return None
    worse = measure.name in comparison.regressions.get(value, ())
    return SlopeLine(
        label=value.replace("_", " "),
        before=change.before,
        after=change.after,
        written=(numbers.value(change.before, measure), numbers.value(change.after, measure)),
        change=_said(change, measure),
        state="bad" if worse else "open",
    )


def _pairs(comparison: Comparison) -> Iterator[Chart]:
    """Each cluster of the first primary measure, before and after."""
    clusters = comparison.instrument.clusters
    for name, places in comparison.places.items():
        if sum(point.clusters for point in places) < 2:
            continue
        measure = comparison.instrument.measure(name)
        title = f"{measure.label}{ARROWS[measure.better]}, of single {clusters}, before and after"
        yield dots("pairs", title, places, clusters, axis_of(measure))


def _answers(comparison: Comparison) -> Iterator[Chart]:
    """How often each kind of answer was given before and after, from the counted changes."""
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for old, new, n in comparison.transitions:
        before[old] = before.get(old, 0) + n
        after[new] = after.get(new, 0) + n
    kinds = sorted({*before, *after})
    if not kinds:
        return
    pairs = [
        DumbbellRow(
            label=kind,
            before=before.get(kind, 0),
            after=after.get(kind, 0),
            says=f"{before.get(kind, 0):,} → {after.get(kind, 0):,}",
        )
        for kind in kinds[:MOST_ROWS]
    ]
    yield dumbbell("answers", "Which answers were given, before and after", [("items", pairs)])


def _cost(comparison: Comparison) -> Iterator[Chart]:
    """What an answer takes, each kind of cost on its own axis."""
    if comparison.repairs:  # its cost is on top of the other
        return
    panels = []
    for kind, digits in _KINDS:
        old, new = (getattr(cost, kind).mean for cost in comparison.cost)
        if old is None or new is None or not (old or new):
            continue
        times = f" ({new / old:.1f} times)" if old else ""
        text = f"{old:,.{digits}f} → {new:,.{digits}f}{times}"
        panels.append((kind, [DumbbellRow(label=kind, before=old, after=new, says=text)]))
    if panels:
        yield dumbbell("cost", "What an answer costs on average, before and after", panels)
