"""The page of a combined report: the first screen, then changes, guardrails, groups, examples,
judges, cost, every number, and the method."""

import shlex

from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import direction
from evenhand.findings.estimates import Section
from evenhand.findings.measures import Measure
from evenhand.findings.remedy import RemedySummary
from evenhand.findings.report import Report
from evenhand.views import (
    catalog,
    comparison_page,
    dossier_evidence,
    dossier_summary,
    numbers,
    report_page,
    run_page,
)
from evenhand.views.blocks import GAP, Block, Details, Grid, Heading, Line, Tone
from evenhand.views.charts import Pictures
from evenhand.views.dossier_summary import RunNames


def page(dossier: CombinedReport, *, full: bool = False) -> list[Block]:
    """Return the blocks of a combined report.

    Args:
        dossier: The report.
        full: Whether to add the parts below the first screen.
    """
    pictures, names = Pictures(), RunNames(dossier)
    first = [*dossier_summary.page(dossier, names, pictures), *_limits(dossier, names)]
    return [*first, *_parts(dossier, names, pictures)] if full else first


def _parts(dossier: CombinedReport, names: RunNames, pictures: Pictures) -> list[Block]:
    people_alone = _of_people_alone(dossier)
    parts: list[Block] = []
    if dossier.comparisons or not people_alone:
        parts += _changes(dossier, names, pictures)
        parts += _guardrails(dossier, names, with_side_effects=not people_alone)
    parts += _who(dossier, names, pictures)
    if not people_alone:
        parts += dossier_evidence.examples(dossier, names)
        parts += dossier_evidence.judges(dossier, names, pictures)
        parts += _cost(dossier, names, pictures)
    parts += _each(dossier, names)
    return [*pictures.remarks(), *parts, *dossier_evidence.method(dossier, names)]


def _of_people_alone(dossier: CombinedReport) -> bool:
    """Say whether all of it is about decisions on people: no model was asked, so that there is no
    judge, remedy, cost or answer to look at."""
    others = dossier.summaries or dossier.audits or dossier.judges
    return (
        bool(dossier.reports)
        and not others
        and all(r.instrument.of_people for r in dossier.reports)
    )


def _against(dossier: CombinedReport, report: Report) -> Comparison | None:
    """Find the comparison of the run of a report with the run before it."""
    of = (report.instrument.name, report.side.run)
    comparisons = dossier.comparisons
    return next((c for c in comparisons if (c.instrument.name, c.after.run) == of), None)


# -- limits ----------------------------------------------------------------------------------------


def _limits(dossier: CombinedReport, names: RunNames) -> list[Block]:
    """Say what is missing, what is open, and what these numbers cannot say: what several runs have
    in common is said once."""
    runs_by_text: dict[str, list[str]] = {}
    for report in dossier.reports:
        for line in report_page.warnings(report):
            runs_by_text.setdefault(line.text, []).append(names.of(report.side.run))
    for comparison in dossier.comparisons:
        for text in (
            *catalog.texts(comparison.notes),
            *(line.text for line in comparison_page.causes(comparison)),
        ):
            runs_by_text.setdefault(text, []).append(names.pair(comparison))
    for summary in dossier.summaries:
        for line in run_page.summary_warnings(summary):
            runs_by_text.setdefault(line.text, []).append(names.of(summary.run))
    rows = tuple((text, ", ".join(runs)) for text, runs in runs_by_text.items())
    blocks: list[Block] = [Heading("Limits of these numbers", 3)]
    blocks += [Grid(("what", "where"), rows), GAP] if rows else []
    blocks += [Line(f"Not compared: {why}", "open") for why in dossier.not_compared]
    if len(dossier.comparisons) > 1:
        blocks.append(
            Line(
                f"{len(dossier.comparisons)} comparisons on this page: significance is "
                "Holm-adjusted over "
                "the primary metrics of all of them."
            )
        )
    model, people = (
        "These runs show what the model did with these items, not with other prompts. "
        "“Inconclusive” does not mean “no bias”.",
        "A table of decisions shows who was selected, not why. It does not cover other people "
        "or other times.",
    )
    about = [report.instrument.of_people for report in dossier.reports]
    limits = [people] * any(about) + [model] * (not about or not all(about))
    return [*blocks, *map(Line, limits)]


# -- guardrails and side effects -------------------------------------------------------------------


def _guardrails(
    dossier: CombinedReport, names: RunNames, *, with_side_effects: bool
) -> list[Block]:
    """Show what must not get worse: regressions, the guardrails of each comparison, and what
    a remedy does to benign texts."""
    blocks: list[Block] = [Heading("Guardrails")]
    blocks += [run_page.remedy_worse(remedy, names.of(remedy.run)) for remedy in _remedies(dossier)]
    for comparison in dossier.comparisons:
        blocks += [Heading(names.pair(comparison), 3), *_guarded(comparison)]
    return [*blocks, *(_side_effects(dossier, names) if with_side_effects else ())]


def _guarded(comparison: Comparison) -> list[Block]:
    worse = [m.label for change, m in comparison.judged() if direction(change, m) == "regressed"]
    states = [("✗", f"{label}: regressed") for label in worse]
    for state, sign in (("violated", "✗"), ("inconclusive", "?")):
        states += [
            (sign, catalog.text(line.says)) for line in comparison.guardrails if line.state == state
        ]
    blocks: list[Block] = []
    if not any(sign == "✗" for sign, _ in states):
        blocks.append(Line("No metric is shown to have regressed."))
    tones: list[Tone] = ["bad" if sign == "✗" else "open" for sign, _ in states]
    if states:
        blocks.append(Grid(("", ""), tuple(states), tuple(tones)))
    return [*blocks, *comparison_page.flips(comparison)]


def _remedies(dossier: CombinedReport) -> list[RemedySummary]:
    return [summary.remedy for summary in dossier.summaries if summary.remedy is not None]


# -- who ----------------------------------------------------------------------------------------


def _who(dossier: CombinedReport, names: RunNames, pictures: Pictures) -> list[Block]:
    blocks: list[Block] = [Heading("Who is affected")]
    for report in dossier.reports:
        tables = [section for section in report.sections if _says_whom(report, section)]
        if not (report.groups or tables) or report.instrument.overdone:
            continue
        blocks += [Heading(names.report(report), 3), *pictures.of(report, names.report(report))]
        for table in tables:
            blocks += [GAP, *report_page.section_blocks(table)]
        if not report.groups:
            continue
        for column in report.groups:
            blocks += _without_hint(report_page.groups(report, column, full=False))
        every = [
            block
            for column in report.groups
            for block in (*report_page.groups(report, column, full=True), GAP)
        ]
        blocks.append(Details("every measure of every group", tuple(every)))
    if len(blocks) == 1:
        blocks.append(Line("No instrument here tells groups apart.", "open"))
    return blocks


def _says_whom(report: Report, section: Section) -> bool:
    begins = report.instrument.whom
    return begins is not None and section.name.startswith(begins)


def _without_hint(blocks: list[Block]) -> list[Block]:
    """The same without what only a terminal can do about a long table."""
    return [
        block for block in blocks if not (isinstance(block, Line) and block.text.endswith("--full"))
    ]


# -- what changed ----------------------------------------------------------------------------------


def _changes(dossier: CombinedReport, names: RunNames, pictures: Pictures) -> list[Block]:
    blocks: list[Block] = [Heading("What changed")]
    for comparison in dossier.comparisons:
        pair = names.pair(comparison)
        blocks.append(Heading(pair, 3))
        blocks.append(
            comparison_page.changes(
                comparison, comparison.primary or comparison.secondary, "", full=False
            )
        )
        blocks += [comparison_page.LEGEND, *comparison_page.methods(comparison)]
        blocks += pictures.of(comparison, pair)
        more: list[Block] = []
        if comparison.primary and comparison.secondary:
            title = "further metrics (exploratory, Benjamini–Hochberg-adjusted p)"
            more += [
                comparison_page.changes(comparison, comparison.secondary, title, full=True),
                GAP,
            ]
        for column in comparison.groups:
            more += [comparison_page.groups(comparison, column), GAP]
        more += [report_page.section_grid(section) for section in comparison.sections]
        blocks.append(Details("every metric and group", tuple(more)))
    for remedy in _remedies(dossier):
        blocks += [Heading(names.of(remedy.run), 3), *run_page.remedy_before_and_after(remedy)]
    if not dossier.comparisons and not _remedies(dossier):
        run = dossier.folders[0].run if dossier.folders else "RUN"
        step = shlex.join(["evenhand", "report", "BASELINE", run, "--out", "report.html"])
        blocks += [Line("This report compares no runs.", "open"), Line(f"next  {step}", "dim")]
    return blocks


# -- every number ----------------------------------------------------------------------------------


def _each(dossier: CombinedReport, names: RunNames) -> list[Block]:
    """Return the numbers of every measured run by itself; of those compared above, folded."""
    blocks: list[Block] = [Heading("Each run by itself")] if dossier.reports else []
    compared = {
        run
        for comparison in dossier.comparisons
        for run in (comparison.before.run, comparison.after.run)
    }
    for report in dossier.reports:
        title = "every metric and table"
        if report.side.run in compared:
            title = f"{names.report(report)}: {title}"
        else:
            blocks += [Line(names.report(report), "strong"), *_estimates(report)]
            blocks += _tables(report, in_short=True)
        more = _tables(report, in_short=False)
        if report.side.run in compared:
            more = [*_tables(report, in_short=True), *more]
        blocks.append(Details(title, (report_page.estimates(report, full=True), *more)))
    return blocks


def _estimates(report: Report) -> list[Block]:
    """The main numbers; of an instrument that tests each group the tables by group have them."""
    if report.instrument.selects is not None:
        return []
    return [report_page.estimates(report, full=False)]


def _tables(report: Report, *, in_short: bool) -> list[Block]:
    """The tables of a run that are shown in short, or the others; without those that say who is
    affected."""
    sections = [s for s in report.sections if s.in_short == in_short and not _says_whom(report, s)]
    return [block for section in sections for block in (GAP, *report_page.section_blocks(section))]


# -- cost ---------------------------------------------------------------------------------------


def _cost(dossier: CombinedReport, names: RunNames, pictures: Pictures) -> list[Block]:
    rows = []
    for report in dossier.reports:
        cost = report.cost
        further = "; ".join(f"{name}: {extra.calls:,}" for name, extra in report.further.items())
        rows.append((
            names.of(report.side.run), f"{cost.calls.total or 0:,.0f}", further,
            _number(cost.tokens.total, 0), _number(cost.calls.mean, 1),
            _number(cost.tokens.mean, 0), _number(cost.seconds.mean, 1),
            numbers.paid(report.money, ""),
        ))  # fmt: skip
    columns = ("run", "calls", "further runs", "tokens", "calls per item", "tokens per item",
               "seconds per item", "paid")  # fmt: skip
    rows += [(names.of(s.run), f"{s.calls:,}", "", f"{s.prompt_tokens + s.completion_tokens:,}",
              "", "", "", numbers.paid(s.money, "")) for s in dossier.summaries]  # fmt: skip
    blocks: list[Block] = [Heading("Cost"), _lean(Grid(columns, tuple(rows)))]
    if any(report.money.cost is None for report in dossier.reports):
        blocks.append(Line("No prices were given (--prices FILE), so money is not counted.", "dim"))
    return [*blocks, *pictures.cost]


def _lean(grid: Grid) -> Grid:
    """The same table without columns that are empty in every row."""
    indices = [index for index, cells in enumerate(zip(*grid.rows, strict=True)) if any(cells)]
    rows = tuple(tuple(row[index] for index in indices) for row in grid.rows)
    return Grid(tuple(grid.columns[index] for index in indices), rows, grid.tones, grid.title)


def _number(value: float | None, digits: int) -> str:
    return "not counted" if value is None else f"{value:,.{digits}f}"


def _side_effects(dossier: CombinedReport, names: RunNames) -> list[Block]:
    """Show what a remedy must not damage: the guardrails of every instrument, and every metric of
    those that measure overcorrection."""
    blocks: list[Block] = []
    for report in dossier.reports:
        against = _against(dossier, report)
        pairs = [_spoiled_row(report, measure, against) for measure in _spoiled(report)]
        if pairs:
            rows, tones = zip(*pairs, strict=True)
            columns = ("", "score", "95% CI", "change", "95% CI")
            blocks.append(_lean(Grid(columns, rows, tones, title=names.report(report))))
    if blocks:
        blocks.append(comparison_page.LEGEND)
    if not any(report.instrument.overdone for report in dossier.reports):
        blocks += [
            Line("No run measured whether the remedy damages benign texts.", "open"),
            Line("next  evenhand overcorrection --out runs/benign", "dim"),
        ]
    return [Heading("Side effects", 3), *blocks]


def _spoiled(report: Report) -> list[Measure]:
    measures = report.instrument.measures
    relevant = [m for m in measures if report.instrument.overdone or m.role == "guardrail"]
    return [m for m in relevant if report[m.name].value is not None]


def _spoiled_row(
    report: Report, measure: Measure, against: Comparison | None
) -> tuple[tuple[str, ...], Tone]:
    estimate = report[measure.name]
    ends = numbers.interval(estimate, measure)
    cells = (measure.label, numbers.value(estimate.value, measure), ends)
    if against is None:
        return (*cells, "", ""), "plain"
    change = against[measure.name]
    sign, tone = comparison_page.mark(change, measure)
    moved = f"{sign} {numbers.signed(change.effect, measure)}"
    return (*cells, moved, numbers.change_interval(change, measure)), tone
