"""The page of a report has the answer first, then the numbers, then what it rests on, then the
answer again."""

from collections import Counter
from collections.abc import Mapping, Sequence

from evenhand.findings.cost import Money
from evenhand.findings.decision_rules import ALPHA, MISSING_MARGIN
from evenhand.findings.display import Remark
from evenhand.findings.estimates import COVERAGE_FLOOR, Estimate, Section
from evenhand.findings.measures import Measure
from evenhand.findings.report import Report
from evenhand.findings.verdicts import is_open, main_measure
from evenhand.views import catalog, numbers
from evenhand.views.blocks import GAP, MOST_TILES, Bar, Bars, Block, Grid, Line, Tile, Tone

_SHORT_GROUPS = 6
_SIDE_BY_SIDE = 2  # our choice: label and two intervals fit 80 columns
_LONGEST_CELL = 90  # a file has the whole text
_IF_KNOWN = "worst-case bounds"
_AFTER_HOLM = "95% CI (Holm)"
_STATES: dict[str | None, tuple[str, Tone]] = {
    "detected": ("BIAS DETECTED.", "bad"),
    "ruled_out": ("BIAS RULED OUT.", "good"),
    "inconclusive": ("INCONCLUSIVE.", "open"),
    None: ("", "strong"),
}


def page(report: Report, *, full: bool = False) -> list[Block]:
    """Give the blocks of a report; `full` adds every estimate, every group and every table."""
    answer = verdict(report)
    blocks: list[Block] = [Line(_head(report), "strong"), *warnings(report), GAP, *answer, GAP]
    little = report.not_run > report.source["items"] / 2 or not report.coverage.scored
    if little and not full:
        return [*blocks, Line(_cost(report), "dim"), *_next(report)]
    if full or report.instrument.selects is None:  # else the tables by group say the same
        blocks += [estimates(report, full), *_absent(report, full)]
    blocks += [*_anchors(report), *_masked(report, full)]
    for column in report.groups:
        table = groups(report, column, full)
        blocks += [GAP, *table] if table else []
    blocks += _bars(report) if report.instrument.selects is None else []
    for section in report.sections:
        if section.rows and (full or section.in_short):
            blocks += [GAP, *section_blocks(section)]
    blocks += [GAP, Line(_cost(report), "dim")]
    if not full:
        blocks.append(Line(f"full output: evenhand report {report.side.run} --full", "dim"))
    return [*blocks, GAP, *answer[:1], *_next(report)]


def _head(report: Report) -> str:
    answered = f"{report.coverage.scored:,} of {report.source['items']:,} scored"
    version = report.source.get("version", "")
    method = report.side.method["name"]
    return f"{report.instrument.title} {version} · {report.side.asked} · {method} · {answered}"


def warnings(report: Report) -> list[Line]:
    """Warn of what is missing, which comes first."""
    coverage, lines = report.coverage, []
    stored = report.source.get("sampling", {}).get("stored")
    if isinstance(stored, Mapping) and "items" in stored:
        lines.append(catalog.text(Remark("report.recorded", **stored)))
    if report.not_run:
        lines.append(f"{report.not_run:,} items are not run yet: this is not the whole sample.")
    if coverage.below_floor:
        lines.append(
            f"Coverage {coverage.percent} is below {COVERAGE_FLOOR:.0%}: "
            "what could not be scored may differ from what could."
        )
    if coverage.by_reason:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in coverage.by_reason.items())
        lines.append(f"Not scored, and in no score below: {reasons}.{_failed(report)}")
        lines += _by_part(report)
    return [Line(line, "bad") for line in (*lines, *report.notes)]


def _failed(report: Report) -> str:
    """Say why items have no answer, by the code of each failure."""
    failed = sorted(report.failed_by_reason.items(), key=lambda pair: -pair[1])
    reasons = ", ".join(f"{n:,} {reason.rpartition(':')[2]}" for reason, n in failed)
    return f" Why no answer: {reasons}." if reasons else ""


def _by_part(report: Report) -> list[str]:
    """Say where answers are missing, if it is not everywhere alike."""
    secondary = {m.label for m in report.instrument.measures if m.role == "secondary"}
    parts = {
        name: coverage for name, coverage in report.coverage_by.items() if name not in secondary
    }
    shares = {name: coverage.coverage or 0.0 for name, coverage in parts.items()}
    if not shares or max(shares.values()) - min(shares.values()) < MISSING_MARGIN:
        return []
    lines = [
        f"{name}: {coverage.scored:,} of {coverage.n:,} ({coverage.percent})"
        for name, coverage in parts.items()
    ]
    return [f"Could be scored: {'; '.join(lines)}."]


def verdict(report: Report) -> list[Line]:
    """Give the answer in words: the state and what it rests on."""
    label, tone = _STATES[report.verdict.state]
    first, *rest = catalog.texts(report.verdict.says) or ("",)
    opening = f"{label} {first}".strip()
    if not opening:
        return []
    return [Line(opening, tone), *(Line(line, indent=2) for line in rest)]


def _next(report: Report) -> list[Block]:
    return [Line(f"next  {catalog.text(step)}") for step in report.verdict.next]


def estimates(report: Report, full: bool) -> Grid:
    """Give the table of the measures over all items; `full` has every one of them."""
    full = full or not report.instrument.primary()  # without a main measure all are shown
    lost = any(estimate.bounds for estimate in report.estimates)
    rows = []
    for measure in _shown(report, full):
        estimate = report[measure.name]
        if measure.absent and estimate.undefined == measure.absent:
            continue
        cells = (
            measure.label,
            numbers.value(estimate.value, measure, full=full),
            numbers.interval(estimate, measure, full=full),
            *((numbers.if_known(estimate.bounds, measure, full=full),) if lost else ()),
            numbers.ideal(measure),
        )
        more = (f"{estimate.n:,}", f"{estimate.clusters:,}") if full else ()
        rows.append((*cells, *more))
    more_columns = ("n", report.instrument.clusters) if full else ()
    bounds_column = (_IF_KNOWN,) if lost else ()
    columns = ("", "score", "95% CI", *bounds_column, "ideal", *more_columns)
    return Grid(columns, tuple(rows))


def _shown(report: Report, full: bool) -> list[Measure]:
    """The measures of the table, the primary ones first."""
    measures = report.instrument.measures
    visible = [m for m in measures if full or m.role != "secondary"] or list(measures)
    return sorted(visible, key=lambda measure: measure.role != "primary")


def tiles(report: Report) -> tuple[Tile, ...]:
    """Return the numbers to remember: the first of the table that have a value."""
    tiles = []
    for measure in _shown(report, full=False):
        estimate = report[measure.name]
        if estimate.value is not None:
            ends = numbers.interval(estimate, measure)
            is_interval = estimate.low is not None and estimate.clusters != 1
            detail = f"95% CI {ends}" if is_interval else ends
            if bounds := numbers.if_known(estimate.bounds, measure):
                detail += f"; {_IF_KNOWN} {bounds}"
            value = numbers.value(estimate.value, measure)
            tiles.append(Tile(label=measure.label, value=value, detail=detail))
    return tuple(tiles[:MOST_TILES])


def _absent(report: Report, full: bool) -> list[Block]:
    """What was not measured at all, once for each reason."""
    by_reason: dict[str, list[str]] = {}
    for measure in _shown(report, full):
        if measure.absent and report[measure.name].undefined == measure.absent:
            by_reason.setdefault(measure.absent, []).append(_short(measure))
    return [Line(f"{', '.join(names)}: {reason}", "dim") for reason, names in by_reason.items()]


def _anchors(report: Report) -> list[Block]:
    """Give the expected scores of guessers: the primary measures in the order of the table."""
    primary = report.instrument.primary()
    anchors = [
        f"{name} " + ", ".join(numbers.value(values.get(m.name), m) for m in primary)
        for name, values in report.instrument.anchors.items()
    ]
    return (
        [Line(f"the first {len(primary)} rows for reference: {'; '.join(anchors)}", "dim")]
        if anchors
        else []
    )


def _masked(report: Report, full: bool) -> list[Block]:
    if not report.masked_records:
        return []
    because = report.instrument.masked_because
    lines = [f"{report.masked_records:,} {because} are left out where that matters"]
    if full:
        text = ", ".join(
            f"{estimate.name} {estimate.value:.3f}"
            for estimate in report.with_masked
            if estimate.value is not None
        )
        lines[0] += f"; with them: {text}"
    return [Line(line, "dim") for line in lines]


def groups(report: Report, column: str, full: bool) -> list[Block]:
    """Make the table of the groups of one column.

    Args:
        report: The report.
        column: The grouping column.
        full: Whether to list every metric and group, not only the main metric.
    """
    main = main_measure(report)
    values = report.groups[column]
    if full or main is None:
        return _every_measure(report, column, full)
    pairs = [(value, estimate) for value, estimates in values.items()
             for estimate in estimates if estimate.name == main.name]  # fmt: skip
    if not pairs:  # what is secondary alone is for --full
        roles = {report.instrument.measure(e.name).role for es in values.values() for e in es}
        return [] if roles == {"secondary"} else _every_measure(report, column, full)
    decided = [pair for pair in by_evidence(pairs) if not is_open(pair[1])]
    open_ = _open_groups(column, len(pairs) - len(decided), len(pairs))
    if not decided:
        return open_
    visible, left = decided[:_SHORT_GROUPS], len(decided) - _SHORT_GROUPS
    rows, tones, lost = [], [], any(estimate.bounds for _, estimate in visible)
    for value, estimate in visible:
        mark, tone = _mark(estimate)
        number = f"{numbers.value(estimate.value, main)} {mark}".strip()
        bounds = (numbers.if_known(estimate.bounds, main),) if lost else ()
        ends = numbers.interval(estimate, main)
        rows.append((value.replace("_", " "), number, ends, *bounds, f"{estimate.n:,}"))
        tones.append(tone)
    columns = (column, _short(main), _AFTER_HOLM, *((_IF_KNOWN,) if lost else ()), "n")
    grid = Grid(columns, tuple(rows), tuple(tones))
    more = [Line(f"… {left} more: --full", "dim")] if left > 0 else []
    return [grid, Line(_over(report, column, main), "dim"), *more, *open_]


def _open_groups(column: str, open_: int, looked: int) -> list[Block]:
    """Fold the groups of which nothing is known into a line: their numbers are noise."""
    if not open_:
        return []
    text = f"{column.replace('_', ' ')}: {open_} of {looked} inconclusive (too few items)"
    return [Line(text, "open")]


def by_evidence(pairs: Sequence[tuple[str, Estimate]]) -> list[tuple[str, Estimate]]:
    """Order groups by how well a bias is shown in them, then by its size."""
    return sorted(pairs, key=lambda pair: (pair[1].p_holm or 1.0, -abs(pair[1].value or 0.0)))


def _bars(report: Report) -> list[Block]:
    """Draw the main measure and its groups, or without one the primary measures."""
    main = main_measure(report)
    if main is None:
        axes = Counter((m.unit, m.within) for m in report.instrument.primary())
        axis = axes.most_common(1)[0][0] if axes else None
        entries = [(_short(m), report[m.name], m) for m in report.instrument.primary()
                 if (m.unit, m.within) == axis]  # fmt: skip
    else:
        groups = [
            (value.replace("_", " "), estimate)
            for values in report.groups.values()
            for value, estimates in values.items()
            for estimate in estimates
            if estimate.name == main.name
        ]
        decided = [pair for pair in by_evidence(groups) if not is_open(pair[1])]
        rows = [("all", report[main.name]), *decided[:_SHORT_GROUPS]]
        entries = [(label, estimate, main) for label, estimate in rows]
        alike = [m for m in report.instrument.primary() if (m.null, m.within) ==
                 (main.null, main.within)]  # fmt: skip
        if not groups and len(alike) > 1:
            entries = [(m.label, report[m.name], m) for m in alike]
    bars = tuple(
        _bar(label, estimate) for label, estimate, _ in entries if estimate.value is not None
    )
    if not any(bar.low is not None for bar in bars):
        return []
    return [GAP, Bars(bars=bars, line=main.null if main else None)]


def _bar(label: str, estimate: Estimate) -> Bar:
    alone = estimate.clusters == 1  # what one cluster allows is nearly everything
    bounds = estimate.bounds if estimate.bounds is not None and estimate.bounds.missing else None
    return Bar(
        label=label,
        value=estimate.value,
        low=None if alone else estimate.low,
        high=None if alone else estimate.high,
        bounds=None if bounds is None else (bounds.low, bounds.high),
        tone="bad" if _mark(estimate)[1] == "bad" else "plain",
    )


def _short(measure: Measure) -> str:
    return measure.label.partition(",")[0].partition(" (")[0]


def _mark(estimate: Estimate) -> tuple[str, Tone]:
    if estimate.p_holm is not None and estimate.p_holm <= ALPHA:
        return "✗", "bad"
    return ("?", "open") if estimate.value is not None else ("", "dim")


def _over(report: Report, column: str, main: Measure) -> str:
    by_column = {
        name: [
            estimate
            for estimates in values.values()
            for estimate in estimates
            if estimate.name == main.name
        ]
        for name, values in report.groups.items()
    }
    significant = sum(
        1
        for estimate in by_column[column]
        if estimate.p_holm is not None and estimate.p_holm <= ALPHA
    )
    looked = sum(map(len, by_column.values()))
    both = "" if len(by_column) == 1 else " of both tables"
    return (
        f"✗ significant, Holm-adjusted, {looked} tests{both} ({significant} here)   ? inconclusive"
    )


def _every_measure(report: Report, column: str, full: bool) -> list[Block]:
    """All measures by group. Few groups stand side by side; of many, each measure has a table of
    its own, so that names and intervals fit on a narrow screen."""
    values = report.groups[column]
    available = [report.instrument.measure(e.name) for e in next(iter(values.values()), ())]
    selected = [m for m in available if full or m.role != "secondary"] or available
    measures = [m for m in selected if not m.absent or report[m.name].undefined != m.absent]
    if len(values) <= _SIDE_BY_SIDE:
        rows = [(m.label, *(_with_interval(e, m) for e in values.values())) for m in measures]
        return [Grid((column, *values), tuple(rows))]
    blocks: list[Block] = []
    for measure in measures:
        grid = _by_group(measure, column, values)
        blocks += [*([GAP] if blocks else []), grid]
    return blocks


def _by_group(measure: Measure, column: str, values: Mapping[str, tuple[Estimate, ...]]) -> Grid:
    rows = []
    estimates = {v: next(e for e in es if e.name == measure.name) for v, es in values.items()}
    lost = any(estimate.bounds for estimate in estimates.values())
    for value, estimate in estimates.items():
        p = (numbers.p_value(estimate.p_holm),) if measure.null is not None else ()
        number, ends = numbers.value(estimate.value, measure), numbers.interval(estimate, measure)
        bounds = (numbers.if_known(estimate.bounds, measure),) if lost else ()
        rows.append((value.replace("_", " "), number, ends, *bounds, f"{estimate.n:,}", *p))
    p_column = ("p (Holm)",) if measure.null is not None else ()
    ends_column = "95% CI" if measure.null is None else _AFTER_HOLM
    columns = (column, "score", ends_column, *((_IF_KNOWN,) if lost else ()), "n", *p_column)
    return Grid(columns, tuple(rows), title=measure.label)


def _with_interval(estimates: tuple[Estimate, ...], measure: Measure) -> str:
    estimate = next(e for e in estimates if e.name == measure.name)
    bounds = numbers.if_known(estimate.bounds, measure)
    ends = f"{numbers.interval(estimate, measure)}{bounds and f'; if known {bounds}'}"
    return f"{numbers.value(estimate.value, measure)} ({ends})"


def _cost(report: Report) -> str:
    cost = report.cost
    usage = ", ".join(
        (numbers.count(cost.calls.total, "calls"), numbers.count(cost.tokens.total, "tokens"))
    )
    more = [
        f"{name}: {extra.calls:,} calls{_paid(extra.money)}"
        for name, extra in report.further.items()
    ]
    unpriced = "" if report.money.cost is not None else " (no price file: --prices FILE)"
    return f"cost  {'; '.join((usage + _paid(report.money), *more))}{unpriced}"


def _paid(money: Money) -> str:
    return f", {amount}" if (amount := numbers.paid(money, "")) else ""


def section_grid(section: Section) -> Grid:
    """Make the table of a section that an instrument brought along."""
    rows = tuple(tuple(_cell(cell) for cell in row) for row in section.rows)
    return Grid(section.columns, rows, title=section.title)


def section_blocks(section: Section) -> list[Block]:
    """Make a section's table, and under it what must be known to read it."""
    return [
        section_grid(section),
        *(Line(line, "dim") for line in catalog.text(section.note).splitlines()),
    ]


def _cell(cell: object) -> str:
    if cell is None:
        return "undefined"
    if isinstance(cell, float):
        return f"{cell:.3f}"
    line = " ".join(str(cell).split())
    return line if len(line) <= _LONGEST_CELL else f"{line[: _LONGEST_CELL - 1]}…"
