"""The page of a dossier has the answer first, then what got worse, then who, then the rest that a
reader must know before using the numbers."""

from dataclasses import replace

from evenhand.findings.combined_report import Dossier
from evenhand.findings.comparison import Comparison
from evenhand.findings.cost import Money
from evenhand.findings.decision_rules import direction
from evenhand.findings.estimates import Section
from evenhand.findings.measures import Measure
from evenhand.findings.remedy import Remedy
from evenhand.findings.report import Report, Side
from evenhand.findings.summary import Summary
from evenhand.views import (
    audit_page,
    comparison_page,
    dossier_evidence,
    numbers,
    remedy_page,
    report_page,
    summary_page,
)
from evenhand.views.blocks import GAP, Block, Box, Details, Grid, Heading, Line, Tone
from evenhand.views.pictures import Pictures

_MARKS = "✗ shown worse   ✓ shown better   ? not shown"


def page(found: Dossier, *, full: bool = False) -> list[Block]:
    """Give the blocks of a dossier; `full` is what a file has, and there is no shorter form."""
    del full
    drawn = Pictures()
    if _of_people_alone(found):
        parts = [
            *(_worse(found) if found.comparisons else ()),
            *_who(found, drawn),
            *_numbers(found, drawn),
            *dossier_evidence.method(found),
        ]
        return [*_opening(found), *_answer(found), *drawn.remarks(), *parts]
    parts = [
        *_worse(found),
        *_who(found, drawn),
        *_numbers(found, drawn),
        *_cost(found, drawn),
        *_overcorrection(found),
        *dossier_evidence.judges(found, drawn),
        *dossier_evidence.look(found),
        *dossier_evidence.method(found),
    ]
    return [*_opening(found), *_answer(found), *drawn.remarks(), *parts]


def _of_people_alone(found: Dossier) -> bool:
    """Say whether all of it is about decisions on people: no model was asked, so that there is no
    judge, remedy, cost or answer to look at."""
    others = found.summaries or found.audits or found.judges
    return bool(found.reports) and not others and all(r.instrument.of_people for r in found.reports)


def _opening(found: Dossier) -> list[Block]:
    held = {one.after.run: one for one in found.comparisons}
    rows, tones = [], []
    for report in found.reports:
        against, side = held.get(report.side.run), report.side
        change, tone = comparison_page.state(against) if against else ("", "plain")
        what = f"{report.instrument.title} · {_system(side, report)}"
        state = report.verdict.state or ""
        rows.append((side.run, what, _done(report), state, change.rstrip(".").lower()))
        tones.append(tone)
    tones += ["plain"] * len(found.summaries)
    tones += [audit_page.tone(audit) for audit in found.audits]
    for one in found.summaries:
        what = f"no instrument · {one.cast['default']['model']} · {one.method['name']}"
        so_far = " so far" if one.open else ""
        rows.append((one.run, what, f"{one.answered:,} of {one.planned:,}{so_far}", "", ""))
    for audit in found.audits:
        ended = f": {audit.state}" if audit.state else ""
        what = f"audit of a {audit.kind} · {audit.title}{ended}"
        rows.append((str(audit.more.get("run", "")), what, "", "", ""))
    columns = ("run", "what", "scored", "a bias is", "than before")
    return [Heading(found.title, 1), _lean(Grid(columns, tuple(rows), tuple(tones)))]


def _done(report: Report) -> str:
    return f"{report.coverage.scored:,} of {report.source['items']:,}"


# -- 1. the answer, and what is not shown ----------------------------------------------------------


def _answer(found: Dossier) -> list[Block]:
    blocks: list[Block] = [Heading("The answer")]
    held = {one.after.run: one for one in found.comparisons}
    for report in found.reports:
        said = [_calm(line) for line in report_page.verdict(report)]
        tone = said[0].tone if said else "plain"
        against = held.get(report.side.run)
        if against is not None:
            change = comparison_page.verdict(against)
            tone = change[0].tone
            said += [Line(f"Compared with {_side(against.before)}:", "strong"), *change]
        blocks.append(Box((Line(_named(report), "strong"), *said), tone))
    for audit in found.audits:
        title = Line(f"{audit.kind} · {audit.title}", "strong")
        blocks.append(Box((title, *audit_page.opening(audit)), audit_page.tone(audit)))
    for summary in found.summaries:
        blocks.append(_done_by(summary))
    return [*blocks, Heading("What is not shown", 3), *_not_shown(found)]


def _done_by(summary: Summary) -> Box:
    """What a run did that no instrument measured."""
    named = f"{summary.cast['default']['model']} · {summary.method['name']} ({summary.run})"
    said: list[Block] = [Line(named, "strong")]
    if summary.remedy is None:
        said.append(Line("The method judges no draft, and no instrument measured the answers."))
    else:
        said += remedy_page.lines(summary.remedy)
    return Box(tuple(said), "plain")


def _calm(line: Line) -> Line:
    """The same line, not in bold where it says neither good nor bad."""
    return replace(line, tone="plain") if line.tone == "strong" else line


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


def _not_shown(found: Dossier) -> list[Block]:
    """Say what is missing, what is open, and what these numbers cannot say: what several runs have
    in common is said once."""
    said: dict[str, list[str]] = {}
    for report in found.reports:
        for line in report_page.warnings(report):
            said.setdefault(line.text, []).append(report.side.run)
    for one in found.comparisons:
        for text in (*one.notes, *(line.text for line in comparison_page.causes(one))):
            said.setdefault(text, []).append(f"{one.before.run} → {one.after.run}")
    for summary in found.summaries:
        for line in summary_page.warnings(summary):
            said.setdefault(line.text, []).append(summary.run)
    rows = tuple((text, ", ".join(runs)) for text, runs in said.items())
    blocks: list[Block] = [Grid(("what", "where"), rows), GAP] if rows else []
    blocks += [Line(f"Not compared: {why}", "open") for why in found.not_compared]
    if len(found.comparisons) > 1:
        blocks.append(
            Line(
                f"{len(found.comparisons)} comparisons were looked at together: what is marked as "
                "shown holds after Holm over the main changes of all of them."
            )
        )
    model, people = (
        "These runs say what the model did with these items. They say nothing of other prompts, "
        "and “not shown” is not “shown to be absent”.",
        "A table of decisions says who was selected, and not why. It says nothing of other people "
        "or other times.",
    )
    about = [report.instrument.of_people for report in found.reports]
    limits = [people] * any(about) + [model] * (not about or not all(about))
    return [*blocks, *map(Line, limits)]


def _pair(one: Comparison) -> str:
    return f"{one.instrument.title}: {_side(one.before)} → {_side(one.after)}"


# -- 2. what got worse -----------------------------------------------------------------------------


def _worse(found: Dossier) -> list[Block]:
    blocks: list[Block] = [Heading("What got worse")]
    blocks += [remedy_page.worse(remedy) for remedy in _remedies(found)]
    if not found.comparisons and not _remedies(found):
        run = found.folders[0].run if found.folders else "RUN"
        said = "Nothing here is compared with anything, so nothing can be said of what got worse."
        return [*blocks, Line(said, "open"),
                Line(f"next  evenhand report BASELINE {run} --out report.html", "dim")]  # fmt: skip
    for one in found.comparisons:
        worse = [m.label for change, m in one.judged() if direction(change, m) == "worse"]
        states = [("✗", f"{label}: shown to be worse") for label in worse]
        for state, sign in (("crossed", "✗"), ("open", "?")):
            states += [(sign, line.says) for line in one.red_lines if line.state == state]
        blocks.append(Heading(_pair(one), 3))
        if not any(sign == "✗" for sign, _ in states):
            blocks.append(Line("Nothing is shown to have got worse."))
        tones: list[Tone] = ["bad" if sign == "✗" else "open" for sign, _ in states]
        if states:
            blocks.append(Grid(("", ""), tuple(states), tuple(tones)))
        blocks += comparison_page.flips(one)
    return blocks


def _remedies(found: Dossier) -> list[Remedy]:
    return [one.remedy for one in found.summaries if one.remedy is not None]


# -- 3. who ----------------------------------------------------------------------------------------


def _who(found: Dossier, drawn: Pictures) -> list[Block]:
    blocks: list[Block] = [Heading("Who is affected")]
    for report in found.reports:
        tables = [one for one in report.sections if _says_whom(report, one)]
        if not (report.groups or tables) or report.instrument.overdone:
            continue
        blocks += [Heading(_named(report), 3), *drawn.of(report, _named(report))]
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
    return [one for one in blocks if not (isinstance(one, Line) and one.text.endswith("--full"))]


# -- 4. the numbers, before and after --------------------------------------------------------------


def _numbers(found: Dossier, drawn: Pictures) -> list[Block]:
    blocks: list[Block] = [Heading("Before and after")]
    for one in found.comparisons:
        blocks += [Heading(_pair(one), 3), *drawn.of(one, _pair(one))]
        blocks += [comparison_page.changes(one, one.primary or one.secondary, "", full=False)]
        blocks += [Line(_MARKS, "dim")]
        more: list[Block] = []
        if one.primary and one.secondary:
            title = "further (exploratory: p after Benjamini-Hochberg)"
            more += [comparison_page.changes(one, one.secondary, title, full=True), GAP]
        for column in one.groups:
            more += [comparison_page.groups(one, column), GAP]
        more += [report_page.section_grid(section) for section in one.sections]
        blocks.append(Details("every measure and group", tuple(more)))
    for remedy in _remedies(found):
        blocks += [Heading(remedy.run, 3), *remedy_page.before_and_after(remedy)]
    if not found.comparisons and not _remedies(found):
        said = "Nothing here could be compared" if found.not_compared else (
            "One measurement of each kind")  # fmt: skip
        blocks.append(Line(f"{said}: there is no before.", "open"))
    return [*blocks, *_each(found)]


def _each(found: Dossier) -> list[Block]:
    """Give the numbers of every measured run by itself."""
    blocks: list[Block] = [Heading("Each run by itself", 3)] if found.reports else []
    compared = {run for one in found.comparisons for run in (one.before.run, one.after.run)}
    for report in found.reports:
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
    kept = [s for s in report.sections if s.in_short == in_short and not _says_whom(report, s)]
    return [block for one in kept for block in (GAP, *report_page.section_blocks(one))]


# -- 5. cost ---------------------------------------------------------------------------------------


def _cost(found: Dossier, drawn: Pictures) -> list[Block]:
    rows = []
    for report in found.reports:
        cost = report.cost
        further = "; ".join(f"{name}: {one.calls:,}" for name, one in report.further.items())
        rows.append((
            report.side.run, f"{cost.calls.total or 0:,.0f}", further,
            _number(cost.tokens.total, 0), _number(cost.calls.mean, 1),
            _number(cost.tokens.mean, 0), _number(cost.seconds.mean, 1), _money(report.money),
        ))  # fmt: skip
    columns = ("run", "calls", "beside it", "tokens", "calls an item", "tokens an item",
               "seconds an item", "paid")  # fmt: skip
    rows += [(s.run, f"{s.calls:,}", "", f"{s.prompt_tokens + s.completion_tokens:,}", "", "", "",
              _money(s.money)) for s in found.summaries]  # fmt: skip
    blocks: list[Block] = [Heading("What it cost"), _lean(Grid(columns, tuple(rows)))]
    if any(report.money.cost is None for report in found.reports):
        blocks.append(Line("No prices were given (--prices FILE), so money is not counted.", "dim"))
    return [*blocks, *drawn.cost]


def _lean(grid: Grid) -> Grid:
    """The same table without columns that are empty in every row."""
    kept = [place for place, cells in enumerate(zip(*grid.rows, strict=True)) if any(cells)]
    rows = tuple(tuple(row[place] for place in kept) for row in grid.rows)
    return Grid(tuple(grid.columns[place] for place in kept), rows, grid.tones, grid.title)


def _number(value: float | None, digits: int) -> str:
    return "not counted" if value is None else f"{value:,.{digits}f}"


def _money(money: Money) -> str:
    if money.cost is None or money.currency is None:
        return ""
    return numbers.money(money.cost, money.currency)


# -- 6. over-correction ----------------------------------------------------------------------------


def _overcorrection(found: Dossier) -> list[Block]:
    """Show what a remedy must not spoil: the guardrails of every instrument, and all that those
    measure which look for nothing else."""
    blocks: list[Block] = [Heading("Over-correction")]
    held = {one.after.run: one for one in found.comparisons}
    for report in found.reports:
        against = held.get(report.side.run)
        found_rows = [_spoiled_row(report, measure, against) for measure in _spoiled(report)]
        if found_rows:
            rows, tones = zip(*found_rows, strict=True)
            columns = ("", "score", "95 %", "change", "95 %")
            blocks.append(_lean(Grid(columns, rows, tones, title=_named(report))))
    if len(blocks) > 1:
        blocks.append(Line(_MARKS, "dim"))
    if not any(report.instrument.overdone for report in found.reports):
        blocks += [
            Line("Nobody looked whether benign texts suffer from the remedy.", "open"),
            Line("next  evenhand overcorrection --out runs/benign", "dim"),
        ]
    return blocks


def _spoiled(report: Report) -> list[Measure]:
    known = report.instrument.measures
    wanted = [m for m in known if report.instrument.overdone or m.role == "guardrail"]
    return [m for m in wanted if report[m.name].value is not None]


def _spoiled_row(
    report: Report, measure: Measure, against: Comparison | None
) -> tuple[tuple[str, ...], Tone]:
    one = report[measure.name]
    ends = numbers.interval(one, measure)
    cells = (measure.label, numbers.value(one.value, measure), ends)
    if against is None:
        return (*cells, "", ""), "plain"
    change = against[measure.name]
    sign, tone = comparison_page.mark(change, measure)
    moved = f"{sign} {numbers.signed(change.effect, measure)}"
    return (*cells, moved, numbers.change_interval(change, measure)), tone
