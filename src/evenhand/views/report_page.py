"""The page of a report has the answer first, then the numbers, then what it rests on, then the
answer again."""

from collections import Counter
from collections.abc import Mapping, Sequence

from evenhand.findings.cost import Money
from evenhand.findings.decision_rules import ALPHA, MISSING_MARGIN
from evenhand.findings.estimates import COVERAGE_FLOOR, Estimate, Section
from evenhand.findings.measures import Measure
from evenhand.findings.report import Report
from evenhand.findings.verdicts import is_open, main_measure
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Bar, Bars, Block, Grid, Line, Tone

_SHORT_GROUPS = 6
_SIDE_BY_SIDE = 2  # our choice: label and two intervals fit 80 columns
_LONGEST_CELL = 90  # a file has the whole text
_IF_KNOWN = "if the missing were known"
_AFTER_HOLM = "95 % after Holm"
_STATES: dict[str | None, tuple[str, Tone]] = {
    "shown": ("BIASED: SHOWN.", "bad"),
    "not shown": ("BIASED: NOT SHOWN.", "good"),
    "not known": ("BIASED: NOT KNOWN.", "open"),
    None: ("", "strong"),
}


def page(report: Report, *, full: bool = False) -> list[Block]:
    """Give the blocks of a report; `full` adds every estimate, every group and every table."""
    said = verdict(report)
    blocks: list[Block] = [Line(_head(report), "strong"), *warnings(report), GAP, *said, GAP]
    little = report.not_run > report.source["items"] / 2 or not report.coverage.scored
    if little and not full:
        return [*blocks, Line(_cost(report), "dim"), *_next(report)]
    if full or report.instrument.selects is None:  # else the tables by group say the same
        blocks += [estimates(report, full), *_absent(report, full)]
    blocks += [*_anchors(report), *_masked(report, full)]
    for column in report.groups:
        shown = groups(report, column, full)
        blocks += [GAP, *shown] if shown else []
    blocks += _bars(report) if report.instrument.selects is None else []
    for section in report.sections:
        if section.rows and (full or section.in_short):
            blocks += [GAP, *section_blocks(section)]
    blocks += [GAP, Line(_cost(report), "dim")]
    if not full:
        blocks.append(Line(f"all of it: evenhand runs report {report.side.run} --full", "dim"))
    return [*blocks, GAP, *said[:1], *_next(report)]


def _head(report: Report) -> str:
    answered = f"{report.coverage.scored:,} of {report.source['items']:,} scored"
    version = report.source.get("version", "")
    method = report.side.method["name"]
    return f"{report.instrument.title} {version} · {report.side.asked} · {method} · {answered}"


def warnings(report: Report) -> list[Line]:
    """Warn of what is missing, which comes first."""
    coverage, lines = report.coverage, []
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
    failed = sorted(report.failed_by_reason.items(), key=lambda one: -one[1])
    said = ", ".join(f"{n:,} {reason.rpartition(':')[2]}" for reason, n in failed)
    return f" Why no answer: {said}." if said else ""


def _by_part(report: Report) -> list[str]:
    """Say where answers are missing, if it is not everywhere alike."""
    secondary = {m.label for m in report.instrument.measures if m.role == "secondary"}
    parts = {name: one for name, one in report.coverage_by.items() if name not in secondary}
    found = {name: one.coverage or 0.0 for name, one in parts.items()}
    if not found or max(found.values()) - min(found.values()) < MISSING_MARGIN:
        return []
    said = [f"{name}: {one.scored:,} of {one.n:,} ({one.percent})" for name, one in parts.items()]
    return [f"Could be scored: {'; '.join(said)}."]


def verdict(report: Report) -> list[Line]:
    """Give the answer in words: the state and what it rests on."""
    said, tone = _STATES[report.verdict.state]
    first, *rest = report.verdict.says or ("",)
    opening = f"{said} {first}".strip()
    if not opening:
        return []
    return [Line(opening, tone), *(Line(line, indent=2) for line in rest)]


def _next(report: Report) -> list[Block]:
    return [Line(f"next  {command}") for command in report.verdict.next]


def estimates(report: Report, full: bool) -> Grid:
    """Give the table of the measures over all items; `full` has every one of them."""
    full = full or not report.instrument.primary()  # without a main measure all are shown
    lost = any(one.bounds for one in report.estimates)
    rows = []
    for measure in _shown(report, full):
        one = report[measure.name]
        if measure.absent and one.undefined == measure.absent:
            continue
        cells = (
            measure.label,
            numbers.value(one.value, measure, full=full),
            numbers.interval(one, measure, full=full),
            *((numbers.if_known(one.bounds, measure, full=full),) if lost else ()),
            numbers.ideal(measure),
        )
        more = (f"{one.n:,}", f"{one.clusters:,}") if full else ()
        rows.append((*cells, *more))
    more_columns = ("n", report.instrument.clusters) if full else ()
    known = (_IF_KNOWN,) if lost else ()
    columns = ("", "score", "95 % sure it is within", *known, "ideal", *more_columns)
    return Grid(columns, tuple(rows))


def _shown(report: Report, full: bool) -> list[Measure]:
    """The measures of the table, the primary ones first."""
    known = report.instrument.measures
    shown = [m for m in known if full or m.role != "secondary"] or list(known)
    return sorted(shown, key=lambda one: one.role != "primary")


def _absent(report: Report, full: bool) -> list[Block]:
    """What was not measured at all, once for each reason."""
    by_reason: dict[str, list[str]] = {}
    for measure in _shown(report, full):
        if measure.absent and report[measure.name].undefined == measure.absent:
            by_reason.setdefault(measure.absent, []).append(_short(measure))
    return [Line(f"{', '.join(names)}: {reason}", "dim") for reason, names in by_reason.items()]


def _anchors(report: Report) -> list[Block]:
    """Say what a guesser would have, for scale: the primary measures in the order of the table."""
    primary = report.instrument.primary()
    said = [
        f"{name} " + " ".join(numbers.value(values.get(m.name), m) for m in primary)
        for name, values in report.instrument.anchors.items()
    ]
    return [Line(f"for scale: {', '.join(said)}", "dim")] if said else []


def _masked(report: Report, full: bool) -> list[Block]:
    if not report.masked_records:
        return []
    because = report.instrument.masked_because
    lines = [f"{report.masked_records:,} {because} are left out where that matters"]
    if full:
        found = ", ".join(
            f"{one.name} {one.value:.3f}" for one in report.with_masked if one.value is not None
        )
        lines[0] += f"; with them: {found}"
    return [Line(line, "dim") for line in lines]


def groups(report: Report, column: str, full: bool) -> list[Block]:
    """Give the table of the groups of one column: the main measure, or every one with `full`."""
    main = main_measure(report)
    values = report.groups[column]
    if full or main is None:
        return _every_measure(report, column, full)
    found = [(value, one) for value, estimates in values.items()
             for one in estimates if one.name == main.name]  # fmt: skip
    if not found:  # what is secondary alone is for --full
        roles = {report.instrument.measure(e.name).role for es in values.values() for e in es}
        return [] if roles == {"secondary"} else _every_measure(report, column, full)
    told = [pair for pair in by_evidence(found) if not is_open(pair[1])]
    open_ = _open_groups(column, len(found) - len(told), len(found))
    if not told:
        return open_
    shown, left = told[:_SHORT_GROUPS], len(told) - _SHORT_GROUPS
    rows, tones, lost = [], [], any(one.bounds for _, one in shown)
    for value, one in shown:
        mark, tone = _mark(one)
        number = f"{numbers.value(one.value, main)} {mark}".strip()
        known = (numbers.if_known(one.bounds, main),) if lost else ()
        ends = numbers.interval(one, main)
        rows.append((value.replace("_", " "), number, ends, *known, f"{one.n:,}"))
        tones.append(tone)
    columns = (column, _short(main), _AFTER_HOLM, *((_IF_KNOWN,) if lost else ()), "n")
    grid = Grid(columns, tuple(rows), tuple(tones))
    more = [Line(f"… {left} more: --full", "dim")] if left > 0 else []
    return [grid, Line(_over(report, column, main), "dim"), *more, *open_]


def _open_groups(column: str, open_: int, looked: int) -> list[Block]:
    """Fold the groups of which nothing is known into a line: their numbers are noise."""
    if not open_:
        return []
    said = f"{column.replace('_', ' ')}: {open_} of {looked} are open, too few items to tell"
    return [Line(said, "open")]


def by_evidence(found: Sequence[tuple[str, Estimate]]) -> list[tuple[str, Estimate]]:
    """Order groups by how well a bias is shown in them, then by its size."""
    return sorted(found, key=lambda pair: (pair[1].p_holm or 1.0, -abs(pair[1].value or 0.0)))


def _bars(report: Report) -> list[Block]:
    """Draw the main measure and its groups, or without one the primary measures."""
    main = main_measure(report)
    if main is None:
        axes = Counter((m.unit, m.within) for m in report.instrument.primary())
        axis = axes.most_common(1)[0][0] if axes else None
        found = [(_short(m), report[m.name], m) for m in report.instrument.primary()
                 if (m.unit, m.within) == axis]  # fmt: skip
    else:
        groups = [
            (value.replace("_", " "), one)
            for values in report.groups.values()
            for value, estimates in values.items()
            for one in estimates
            if one.name == main.name
        ]
        told = [pair for pair in by_evidence(groups) if not is_open(pair[1])]
        rows = [("all", report[main.name]), *told[:_SHORT_GROUPS]]
        found = [(label, one, main) for label, one in rows]
        alike = [m for m in report.instrument.primary() if (m.null, m.within) ==
                 (main.null, main.within)]  # fmt: skip
        if not groups and len(alike) > 1:
            found = [(m.label, report[m.name], m) for m in alike]
    bars = tuple(_bar(label, one) for label, one, _ in found if one.value is not None)
    if not any(bar.low is not None for bar in bars):
        return []
    return [GAP, Bars(bars=bars, line=main.null if main else None)]


def _bar(label: str, one: Estimate) -> Bar:
    alone = one.clusters == 1  # what one cluster allows is nearly everything
    known = one.bounds if one.bounds is not None and one.bounds.missing else None
    return Bar(
        label=label,
        value=one.value,
        low=None if alone else one.low,
        high=None if alone else one.high,
        bounds=None if known is None else (known.low, known.high),
        tone="bad" if _mark(one)[1] == "bad" else "plain",
    )


def _short(measure: Measure) -> str:
    return measure.label.partition(",")[0].partition(" (")[0]


def _mark(one: Estimate) -> tuple[str, Tone]:
    if one.p_holm is not None and one.p_holm <= ALPHA:
        return "✗", "bad"
    return ("?", "open") if one.value is not None else ("", "dim")


def _over(report: Report, column: str, main: Measure) -> str:
    by_column = {
        name: [one for found in values.values() for one in found if one.name == main.name]
        for name, values in report.groups.items()
    }
    shown = sum(1 for one in by_column[column] if one.p_holm is not None and one.p_holm <= ALPHA)
    looked = sum(map(len, by_column.values()))
    both = "" if len(by_column) == 1 else " of both tables"
    return f"✗ shown after Holm over all {looked}{both} ({shown} here), ? not shown"


def _every_measure(report: Report, column: str, full: bool) -> list[Block]:
    """All measures by group. Few groups stand side by side; of many, each measure has a table of
    its own, so that names and intervals fit on a narrow screen."""
    values = report.groups[column]
    known = [report.instrument.measure(e.name) for e in next(iter(values.values()), ())]
    wanted = [m for m in known if full or m.role != "secondary"] or known
    measures = [m for m in wanted if not m.absent or report[m.name].undefined != m.absent]
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
    found = {v: next(e for e in es if e.name == measure.name) for v, es in values.items()}
    lost = any(one.bounds for one in found.values())
    for value, one in found.items():
        p = (numbers.p_value(one.p_holm),) if measure.null is not None else ()
        number, ends = numbers.value(one.value, measure), numbers.interval(one, measure)
        known = (numbers.if_known(one.bounds, measure),) if lost else ()
        rows.append((value.replace("_", " "), number, ends, *known, f"{one.n:,}", *p))
    p_column = ("p after Holm",) if measure.null is not None else ()
    ends_column = "95 %" if measure.null is None else _AFTER_HOLM
    columns = (column, "score", ends_column, *((_IF_KNOWN,) if lost else ()), "n", *p_column)
    return Grid(columns, tuple(rows), title=measure.label)


def _with_interval(estimates: tuple[Estimate, ...], measure: Measure) -> str:
    one = next(e for e in estimates if e.name == measure.name)
    known = numbers.if_known(one.bounds, measure)
    ends = f"{numbers.interval(one, measure)}{known and f'; if known {known}'}"
    return f"{numbers.value(one.value, measure)} ({ends})"


def _cost(report: Report) -> str:
    cost = report.cost
    said = ", ".join(
        (numbers.count(cost.calls.total, "calls"), numbers.count(cost.tokens.total, "tokens"))
    )
    more = [
        f"{name}: {one.calls:,} calls{_paid(one.money)}" for name, one in report.further.items()
    ]
    unpriced = "" if report.money.cost is not None else " (no price file: --prices FILE)"
    return f"cost  {'; '.join((said + _paid(report.money), *more))}{unpriced}"


def _paid(money: Money) -> str:
    if money.cost is None or money.currency is None:
        return ""
    return f", {numbers.money(money.cost, money.currency)}"


def section_grid(section: Section) -> Grid:
    """Make the table of a section that an instrument brought along."""
    rows = tuple(tuple(_cell(cell) for cell in row) for row in section.rows)
    return Grid(section.columns, rows, title=section.title)


def section_blocks(section: Section) -> list[Block]:
    """Make a section's table, and under it what must be known to read it."""
    return [section_grid(section), *(Line(line, "dim") for line in section.note.splitlines())]


def _cell(cell: object) -> str:
    if cell is None:
        return "undefined"
    if isinstance(cell, float):
        return f"{cell:.3f}"
    line = " ".join(str(cell).split())
    return line if len(line) <= _LONGEST_CELL else f"{line[: _LONGEST_CELL - 1]}…"
