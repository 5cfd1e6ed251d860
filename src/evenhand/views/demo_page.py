"""The pages of the demo's parts: the shortest form of each finding that a newcomer can read."""

from itertools import pairwise

from evenhand.findings.audit import Audit
from evenhand.findings.comparison import Comparison
from evenhand.findings.examples import ChosenExamples
from evenhand.findings.report import Report
from evenhand.views import audit_page, catalog, comparison_page, report_page
from evenhand.views.blocks import GAP, Bar, Bars, Block, Line, Tone, diff
from evenhand.views.timeline_page import clipped, conversation

_LONGEST = (
    900  # our choice, in characters of a question: the screen is for looking, not for reading
)


def page(finding: ChosenExamples | Comparison | Audit | Report, tables: list[str]) -> list[Block]:
    """Give the blocks of a part; of a report those tables."""
    match finding:
        case ChosenExamples():
            return _choice(finding)
        case Comparison():
            return _comparison(finding)
        case Audit():
            return _audit(finding)
        case Report():
            return _report(finding, tables)


def _choice(choice: ChosenExamples) -> list[Block]:
    """The question, who said what, and the words that changed from draft to draft."""
    blocks: list[Block] = []
    for item in choice.answers:
        blocks += [Line(f"{item.item_id}: {catalog.text(item.why)}", "strong")]
        blocks += [Line(clipped(item.asked, _LONGEST), "dim", indent=2), GAP]
        blocks += conversation(item.turns, item.drafts, item.ended)
        texts = [draft.text for draft in item.drafts]
        for number, (before, after) in enumerate(pairwise(texts), start=1):
            blocks += [GAP, Line(f"word by word, revision {number}", "dim"), diff(before, after)]
    return [*blocks, GAP, Line(catalog.text(choice.rule), "dim")]


def _comparison(comparison: Comparison) -> list[Block]:
    """The page that `compare` prints, with its changes drawn as well."""
    blocks = comparison_page.page(comparison)
    bars = Bars(
        bars=tuple(_bar(comparison, change.name) for change in comparison.primary), line=0.0
    )
    legend = next(index for index, block in enumerate(blocks) if block == comparison_page.LEGEND)
    return [*blocks[: legend + 1], GAP, bars, *blocks[legend + 1 :]]


def _bar(comparison: Comparison, name: str) -> Bar:
    change, measure = comparison[name], comparison.instrument.measure(name)
    tone: Tone = comparison_page.mark(change, measure)[1]
    return Bar(
        label=measure.label,
        value=change.effect,
        low=None if change.interval is None else change.interval[0],
        high=None if change.interval is None else change.interval[1],
        tone=tone,
    )


def _audit(audit: Audit) -> list[Block]:
    blocks = [*audit_page.opening(audit), *(Line(line, indent=2) for line in audit.says[1:])]
    return [*blocks, GAP, *audit_page.checks(audit)]


def _report(report: Report, tables: list[str]) -> list[Block]:
    """The tables before the verdict, which may be about something else than they are."""
    blocks: list[Block] = [*report_page.warnings(report)]
    for section in report.sections:
        if section.name in tables:
            blocks += [GAP, *report_page.section_blocks(section)]
    return [*blocks, GAP, *report_page.verdict(report)]
