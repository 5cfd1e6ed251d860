"""The page of a dossier has the answer first, then what got worse, then who, then the rest that a
reader must know before using the numbers."""

from dataclasses import replace

from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import direction
from evenhand.findings.estimates import Section
from evenhand.findings.measures import Measure
from evenhand.findings.remedy import RemedySummary
from evenhand.findings.report import Report, Side
from evenhand.findings.summary import Summary
from evenhand.views import (
    audit_page,
    catalog,
    comparison_page,
    dossier_evidence,
    numbers,
    report_page,
    run_page,
)
from evenhand.views.blocks import GAP, Block, Box, Details, Grid, Heading, Line, Tone
from evenhand.views.charts import Pictures


def page(dossier: CombinedReport) -> list[Block]:
    """Give the blocks of a dossier."""
    pictures = Pictures()
    if _of_people_alone(dossier):
        parts = [
            *(_worse(dossier) if dossier.comparisons else ()),
            *_who(dossier, pictures),
            *_numbers(dossier, pictures),
            *dossier_evidence.method(dossier),
        ]
        return [*_opening(dossier), *_answer(dossier), *pictures.remarks(), *parts]
    parts = [
        *_worse(dossier),
        *_who(dossier, pictures),
        *_numbers(dossier, pictures),
        *_cost(dossier, pictures),
        *_overcorrection(dossier),
        *dossier_evidence.judges(dossier, pictures),
        *dossier_evidence.look(dossier),
        *dossier_evidence.method(dossier),
    ]
    return [*_opening(dossier), *_answer(dossier), *pictures.remarks(), *parts]


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


def _opening(dossier: CombinedReport) -> list[Block]:
    rows, tones = [], []
    for report in dossier.reports:
        against, side = _against(dossier, report), report.side
        change, tone = comparison_page.state(against) if against else ("", "plain")
        what = f"{report.instrument.title} · {_system(side, report)}"
        state = report.verdict.state or ""
        scored = f"{report.coverage.scored:,} of {report.source['items']:,}"
        rows.append((side.run, what, scored, state, change.rstrip(".").lower()))
        tones.append(tone)
    tones += ["plain"] * len(dossier.summaries)
    tones += [audit_page.tone(audit) for audit in dossier.audits]
    for summary in dossier.summaries:
        what = f"no instrument · {summary.cast['default']['model']} · {summary.method['name']}"
        so_far = " so far" if summary.open else ""
        rows.append(
            (summary.run, what, f"{summary.answered:,} of {summary.planned:,}{so_far}", "", "")
        )
    for audit in dossier.audits:
        ended = f": {audit.state}" if audit.state else ""
        what = f"audit of a {audit.kind} · {audit.title}{ended}"
        rows.append((str(audit.more.get("run", "")), what, "", "", ""))
    columns = ("run", "what", "scored", "a bias is", "than before")
    return [Heading(dossier.title, 1), _lean(Grid(columns, tuple(rows), tuple(tones)))]


# -- 1. the answer, and what is not shown ----------------------------------------------------------


def _answer(dossier: CombinedReport) -> list[Block]:
    blocks: list[Block] = [Heading("The answer")]
    for report in dossier.reports:
        lines = [
            (replace(line, tone="plain") if line.tone == "strong" else line)
            for line in report_page.verdict(report)
        ]
        tone = lines[0].tone if lines else "plain"
        against = _against(dossier, report)
        if against is not None:
            change = comparison_page.verdict(against)
            tone = change[0].tone
            lines += [Line(f"Compared with {_side(against.before)}:", "strong"), *change]
        blocks.append(Box((Line(_named(report), "strong"), *lines), tone))
    for audit in dossier.audits:
        title = Line(f"{audit.kind} · {audit.title}", "strong")
        blocks.append(Box((title, *audit_page.opening(audit)), audit_page.tone(audit)))
    for summary in dossier.summaries:
        blocks.append(_done_by(summary))
    return [*blocks, Heading("What remains inconclusive", 3), *_not_shown(dossier)]


def _done_by(summary: Summary) -> Box:
    """What a run did that no instrument measured."""
    title = f"{summary.cast['default']['model']} · {summary.method['name']} ({summary.run})"
    blocks: list[Block] = [Line(title, "strong")]
    if summary.remedy is None:
        blocks.append(Line("The method judges no draft, and no instrument measured the answers."))
    else:
        blocks += run_page.remedy_lines(summary.remedy)
    return Box(tuple(blocks), "plain")


def _side(side: Side) -> str:
    return f"{side.method['name']} ({side.run})"


def _named(report: Report) -> str:
    if report.instrument.of_people:
        return f"{report.instrument.title} · {report.side.run}"
    return f"{report.instrument.title} · {report.side.asked} · {_side(report.side)}"


def _system(side: Side, report: Report) -> str:
    """What decided or answered."""
    if report.instrument.of_people:
        return "a table of people; no model was asked"
    return f"{side.asked} · {side.method['name']}"


def _not_shown(dossier: CombinedReport) -> list[Block]:
    """Say what is missing, what is open, and what these numbers cannot say: what several runs have
    in common is said once."""
    runs_by_text: dict[str, list[str]] = {}
    for report in dossier.reports:
        for line in report_page.warnings(report):
            runs_by_text.setdefault(line.text, []).append(report.side.run)
    for comparison in dossier.comparisons:
        for text in (
            *catalog.texts(comparison.notes),
            *(line.text for line in comparison_page.causes(comparison)),
        ):
            runs_by_text.setdefault(text, []).append(
                f"{comparison.before.run} → {comparison.after.run}"
            )
    for summary in dossier.summaries:
        for line in run_page.summary_warnings(summary):
            runs_by_text.setdefault(line.text, []).append(summary.run)
    rows = tuple((text, ", ".join(runs)) for text, runs in runs_by_text.items())
    blocks: list[Block] = [Grid(("what", "where"), rows), GAP] if rows else []
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


def _pair(comparison: Comparison) -> str:
    return f"{comparison.instrument.title}: {_side(comparison.before)} → {_side(comparison.after)}"


# -- 2. what got worse -----------------------------------------------------------------------------


def _worse(dossier: CombinedReport) -> list[Block]:
    blocks: list[Block] = [Heading("What got worse")]
    blocks += [run_page.remedy_worse(remedy) for remedy in _remedies(dossier)]
    if not dossier.comparisons and not _remedies(dossier):
        run = dossier.folders[0].run if dossier.folders else "RUN"
        text = "Nothing here is compared with anything, so nothing can be said of what got worse."
        return [*blocks, Line(text, "open"),
                Line(f"next  evenhand report BASELINE {run} --out report.html", "dim")]  # fmt: skip
    for comparison in dossier.comparisons:
        worse = [
            m.label for change, m in comparison.judged() if direction(change, m) == "regressed"
        ]
        states = [("✗", f"{label}: shown to be worse") for label in worse]
        for state, sign in (("violated", "✗"), ("inconclusive", "?")):
            states += [
                (sign, catalog.text(line.says))
                for line in comparison.guardrails
                if line.state == state
            ]
        blocks.append(Heading(_pair(comparison), 3))
        if not any(sign == "✗" for sign, _ in states):
            blocks.append(Line("Nothing is shown to have got worse."))
        tones: list[Tone] = ["bad" if sign == "✗" else "open" for sign, _ in states]
        if states:
            blocks.append(Grid(("", ""), tuple(states), tuple(tones)))
        blocks += comparison_page.flips(comparison)
    return blocks


def _remedies(dossier: CombinedReport) -> list[RemedySummary]:
    return [summary.remedy for summary in dossier.summaries if summary.remedy is not None]


# -- 3. who ----------------------------------------------------------------------------------------


def _who(dossier: CombinedReport, pictures: Pictures) -> list[Block]:
    blocks: list[Block] = [Heading("Who is affected")]
    for report in dossier.reports:
        tables = [section for section in report.sections if _says_whom(report, section)]
        if not (report.groups or tables) or report.instrument.overdone:
            continue
        blocks += [Heading(_named(report), 3), *pictures.of(report, _named(report))]
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


# -- 4. the numbers, before and after --------------------------------------------------------------


def _numbers(dossier: CombinedReport, pictures: Pictures) -> list[Block]:
    blocks: list[Block] = [Heading("Before and after")]
    for comparison in dossier.comparisons:
        blocks += [Heading(_pair(comparison), 3), *pictures.of(comparison, _pair(comparison))]
        blocks += [
            comparison_page.changes(
                comparison, comparison.primary or comparison.secondary, "", full=False
            )
        ]
        blocks += [comparison_page.LEGEND]
        more: list[Block] = []
        if comparison.primary and comparison.secondary:
            title = "further (exploratory: p after Benjamini-Hochberg)"
            more += [
                comparison_page.changes(comparison, comparison.secondary, title, full=True),
                GAP,
            ]
        for column in comparison.groups:
            more += [comparison_page.groups(comparison, column), GAP]
        more += [report_page.section_grid(section) for section in comparison.sections]
        blocks.append(Details("every measure and group", tuple(more)))
    for remedy in _remedies(dossier):
        blocks += [Heading(remedy.run, 3), *run_page.remedy_before_and_after(remedy)]
    if not dossier.comparisons and not _remedies(dossier):
        text = "Nothing here could be compared" if dossier.not_compared else (
            "One measurement of each kind")  # fmt: skip
        blocks.append(Line(f"{text}: a comparison needs a run from before.", "open"))
    return [*blocks, *_each(dossier)]


def _each(dossier: CombinedReport) -> list[Block]:
    """Give the numbers of every measured run by itself."""
    blocks: list[Block] = [Heading("Each run by itself", 3)] if dossier.reports else []
    compared = {
        run
        for comparison in dossier.comparisons
        for run in (comparison.before.run, comparison.after.run)
    }
    for report in dossier.reports:
        title = "every measure and table"
        if report.side.run in compared:
            title = f"{_named(report)}: {title}"
        else:
            blocks += [Line(_named(report), "strong"), *_estimates(report)]
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


# -- 5. cost ---------------------------------------------------------------------------------------


def _cost(dossier: CombinedReport, pictures: Pictures) -> list[Block]:
    rows = []
    for report in dossier.reports:
        cost = report.cost
        further = "; ".join(f"{name}: {extra.calls:,}" for name, extra in report.further.items())
        rows.append((
            report.side.run, f"{cost.calls.total or 0:,.0f}", further,
            _number(cost.tokens.total, 0), _number(cost.calls.mean, 1),
            _number(cost.tokens.mean, 0), _number(cost.seconds.mean, 1),
            numbers.paid(report.money, ""),
        ))  # fmt: skip
    columns = ("run", "calls", "further runs", "tokens", "calls per item", "tokens per item",
               "seconds per item", "paid")  # fmt: skip
    rows += [(s.run, f"{s.calls:,}", "", f"{s.prompt_tokens + s.completion_tokens:,}", "", "", "",
              numbers.paid(s.money, "")) for s in dossier.summaries]  # fmt: skip
    blocks: list[Block] = [Heading("What it cost"), _lean(Grid(columns, tuple(rows)))]
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


# -- 6. over-correction ----------------------------------------------------------------------------


def _overcorrection(dossier: CombinedReport) -> list[Block]:
    """Show what a remedy must not spoil: the guardrails of every instrument, and all that those
    measure which look for nothing else."""
    blocks: list[Block] = [Heading("Over-correction")]
    for report in dossier.reports:
        against = _against(dossier, report)
        found_rows = [_spoiled_row(report, measure, against) for measure in _spoiled(report)]
        if found_rows:
            rows, tones = zip(*found_rows, strict=True)
            columns = ("", "score", "95% CI", "change", "95% CI")
            blocks.append(_lean(Grid(columns, rows, tones, title=_named(report))))
    if len(blocks) > 1:
        blocks.append(comparison_page.LEGEND)
    if not any(report.instrument.overdone for report in dossier.reports):
        blocks += [
            Line("Nobody looked whether benign texts suffer from the remedy.", "open"),
            Line("next  evenhand overcorrection --out runs/benign", "dim"),
        ]
    return blocks


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
