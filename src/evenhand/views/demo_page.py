"""The pages of the demo's parts: the shortest form of each finding that a newcomer can read."""

from itertools import pairwise

from evenhand.findings.audit import Audit
from evenhand.findings.comparison import Comparison
from evenhand.findings.examples import Choice
from evenhand.findings.report import Report
from evenhand.views import audit_page, comparison_page, report_page
from evenhand.views.blocks import GAP, Bar, Bars, Block, Line, Tone
from evenhand.views.diffs import diff
from evenhand.views.timeline_page import clipped, conversation

_LONGEST = (
    900  # our choice, in characters of a question: the screen is for looking, not for reading
)


def page(found: Choice | Comparison | Audit | Report, tables: list[str]) -> list[Block]:
    """Give the blocks of a part; of a report those tables."""
    match found:
        case Choice():
            return _choice(found)
        case Comparison():
            return _comparison(found)
        case Audit():
            return _audit(found)
        case Report():
            return _report(found, tables)


def _choice(found: Choice) -> list[Block]:
    """The question, who said what, and the words that changed from draft to draft."""
    blocks: list[Block] = []
    for one in found.answers:
        blocks += [Line(f"{one.item_id}: {one.why}", "strong")]
        blocks += [Line(clipped(one.asked, _LONGEST), "dim", indent=2), GAP]
        blocks += conversation(one.turns, one.drafts, one.ended)
        texts = [draft.text for draft in one.drafts]
        for number, (before, after) in enumerate(pairwise(texts), start=1):
            blocks += [GAP, Line(f"word by word, revision {number}", "dim"), diff(before, after)]
    return [*blocks, GAP, Line(found.rule, "dim")]


def _comparison(found: Comparison) -> list[Block]:
    """The page that `compare` prints, with its changes drawn as well."""
    blocks = comparison_page.page(found)
    bars = Bars(bars=tuple(_bar(found, one.name) for one in found.primary), line=0.0)
    legend = next(place for place, one in enumerate(blocks) if one == comparison_page.LEGEND)
    return [*blocks[: legend + 1], GAP, bars, *blocks[legend + 1 :]]


def _bar(found: Comparison, name: str) -> Bar:
    change, measure = found[name], found.instrument.measure(name)
    tone: Tone = comparison_page.mark(change, measure)[1]
    return Bar(
        label=measure.label,
        value=change.effect,
        low=None if change.interval is None else change.interval[0],
        high=None if change.interval is None else change.interval[1],
        tone=tone,
    )


def _audit(found: Audit) -> list[Block]:
    said = [*audit_page.opening(found), *(Line(line, indent=2) for line in found.says[1:])]
    return [*said, GAP, *audit_page.checks(found)]


def _report(found: Report, tables: list[str]) -> list[Block]:
    """The tables before the verdict, which may be about something else than they are."""
    blocks: list[Block] = [*report_page.warnings(found)]
    for section in found.sections:
        if section.name in tables:
            blocks += [GAP, *report_page.section_blocks(section)]
    return [*blocks, GAP, *report_page.verdict(found)]
