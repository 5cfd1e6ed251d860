"""The page of a sweep: what is missing, then the main numbers of every arm, then the others."""

from evenhand.findings.decision_rules import direction
from evenhand.findings.estimates import COVERAGE_FLOOR, Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.sweep import Sweep, SweepArm
from evenhand.views import catalog, numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone
from evenhand.views.comparison_page import LEGEND
from evenhand.views.report_page import section_grid

_WITH_INTERVALS = 3  # arms side by side; a file has the intervals always
_MARKS = {"improved": "✓", "regressed": "✗", "inconclusive": "?"}
_TONES: dict[str, Tone] = {"improved": "good", "regressed": "bad", "inconclusive": "plain"}


def page(sweep: Sweep, *, full: bool = False) -> list[Block]:
    """The blocks of a sweep; `full` adds every arm's tables."""
    blocks: list[Block] = [Line(_head(sweep), "strong"), *_warnings(sweep), GAP]
    for measure in sweep.instrument.primary():
        blocks += [_main(sweep, measure), *([LEGEND] if sweep.reference else []), GAP]
    others = [m for m in sweep.instrument.measures if m.role != "primary"]
    if others:
        blocks += [_others(sweep, others), GAP]
    for grouping in sweep.instrument.groups:
        for name in grouping.measures:
            measure = sweep.instrument.measure(name)
            if full or measure.role == "primary":
                blocks += [_by_group(sweep, grouping.column, measure), GAP]
    return [*blocks, *_guardrails(sweep), *_sections(sweep, full)]


def _head(sweep: Sweep) -> str:
    first = sweep.arms[0].report
    items, version = f"{first.source['items']:,} items", first.source.get("version", "")
    return f"{sweep.instrument.title} {version} · {first.side.asked} · {items} in each arm"


def _warnings(sweep: Sweep) -> list[Block]:
    """What is missing comes first."""
    lines = []
    for arm in sweep.arms:
        coverage = arm.report.coverage
        if arm.report.not_run:
            lines.append(f"{arm.name}: {arm.report.not_run:,} items are not run yet.")
        if coverage.below_floor:
            lines.append(
                f"{arm.name}: coverage {coverage.percent} is below {COVERAGE_FLOOR:.0%}: "
                "what could not be scored may differ from what could."
            )
        for reason, n in coverage.by_reason.items():
            lines.append(f"{arm.name}: {n:,} not scored and not counted below: {reason}")
    notes = dict.fromkeys(f"{arm.name}: {note}" for arm in sweep.arms for note in arm.report.notes)
    return [Line(line, "bad") for line in (*lines, *notes)]


def _main(sweep: Sweep, measure: Measure) -> Grid:
    """One primary measure, an arm a row, with its change against the reference."""
    rows, tones = [], []
    for arm in sweep.arms:
        estimate, coverage = arm.report[measure.name], arm.report.coverage
        change, tone = _change(arm, measure)
        value = numbers.value(estimate.value, measure, full=True)
        interval = numbers.interval(estimate, measure, full=True)
        scored = f"{coverage.scored:,} of {arm.report.source['items']:,}"
        rows.append((arm.name, value, interval, *change[: 2 * bool(sweep.reference)], scored))
        tones.append(tone)
    against = (f"change from {sweep.reference}", "95% CI") if sweep.reference else ()
    columns = (measure.label, "score", "95% CI", *against, "scored")
    return Grid(columns, tuple(rows), tuple(tones))


def _change(arm: SweepArm, measure: Measure) -> tuple[tuple[str, str], Tone]:
    if arm.comparison is None:
        return ("", ""), "plain"
    change = arm.comparison[measure.name]
    way = direction(change, measure)
    number = f"{_MARKS[way]} {numbers.signed(change.effect, measure, full=True)}"
    return (number, numbers.change_interval(change, measure, full=True)), _TONES[way]


def _others(sweep: Sweep, measures: list[Measure]) -> Grid:
    rows = [
        (m.label, *(_cell(sweep, arm.report[m.name], m) for arm in sweep.arms)) for m in measures
    ]
    return Grid(("further", *(arm.name for arm in sweep.arms)), tuple(rows))


def _cell(sweep: Sweep, estimate: Estimate, measure: Measure) -> str:
    """A value, with its interval where there is room for it."""
    value = numbers.value(estimate.value, measure, full=True)
    if len(sweep.arms) > _WITH_INTERVALS or estimate.value is None:
        return value
    return f"{value} ({numbers.interval(estimate, measure, full=True)})"


def _by_group(sweep: Sweep, column: str, measure: Measure) -> Grid:
    by_arm = [
        {value: estimate for value, estimates in arm.report.groups[column].items()
         for estimate in estimates if estimate.name == measure.name}
        for arm in sweep.arms
    ]  # fmt: skip
    rows = [
        (value.replace("_", " "),
         *(_cell(sweep, by_value[value], measure) if value in by_value else ""
           for by_value in by_arm))
        for value in dict.fromkeys(value for by_value in by_arm for value in by_value)
    ]  # fmt: skip
    columns = (f"{measure.label}, by {column}", *(arm.name for arm in sweep.arms))
    return Grid(columns, tuple(rows))


def _guardrails(sweep: Sweep) -> list[Block]:
    lines = [
        Line(f"✗ {arm.name}: {catalog.text(line.says)}", "bad")
        for arm in sweep.arms
        if arm.comparison is not None
        for line in arm.comparison.guardrails
        if line.state == "violated"
    ]
    if not lines:
        return []
    return [Line(f"guardrails violated against {sweep.reference}", "strong"), *lines, GAP]


def _sections(sweep: Sweep, full: bool) -> list[Block]:
    blocks: list[Block] = []
    for arm in sweep.arms:
        for section in arm.report.sections:
            if full or section.in_short:
                grid = section_grid(section)
                title = ": ".join(part for part in (arm.name, grid.title) if part)
                blocks += [Grid(grid.columns, grid.rows, grid.tones, title), GAP]
    return blocks
