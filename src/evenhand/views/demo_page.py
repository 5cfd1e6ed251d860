"""The pages of the demo's parts, in a few lines or in full."""

from collections.abc import Iterator
from itertools import pairwise

from evenhand.findings.audit import Audit
from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import direction
from evenhand.findings.examples import ChosenExamples
from evenhand.findings.plan import PilotSpread, Plan
from evenhand.findings.report import Report
from evenhand.views import (
    audit_page,
    catalog,
    comparison_page,
    numbers,
    plan_page,
    report_page,
)
from evenhand.views.blocks import GAP, Block, Line, diff
from evenhand.views.timeline_page import clipped, conversation

_LONGEST = (
    900  # our choice, in characters of a question: the screen is for looking, not for reading
)
_MOST = 3  # our choice: lines of a part that is shown in short


def short(finding: ChosenExamples | Comparison | Audit | Report | Plan) -> list[Line]:
    """Return a part in at most three lines: what was concluded, and by which numbers."""
    match finding:
        case Comparison():
            lines = [*_decided(finding), Line(comparison_page.cost(finding))]
        case Plan():
            lines = list(_planned(finding))
        case Audit():
            tiles = audit_page.tiles(finding)
            failed = [tile for tile in tiles if tile.tone == "bad"]
            lines = [*audit_page.opening(finding)]
            lines += [Line(f"{tile.label}: {tile.detail}", indent=2) for tile in failed]
        case Report():
            lines = report_page.verdict(finding)
        case ChosenExamples():
            lines = [Line(catalog.text(finding.rule), "dim")]
    return lines[:_MOST]


def _decided(comparison: Comparison) -> Iterator[Line]:
    """The changes that are significant."""
    for change, measure in comparison.judged():
        state = direction(change, measure)
        if state != "inconclusive":
            before, after = (numbers.value(end, measure) for end in (change.before, change.after))
            ends = numbers.change_interval(change, measure)
            text = (
                f"{state.upper()}. {measure.label}: {before} → {after}, change "
                f"{numbers.signed(change.effect, measure)} (95% CI {ends})"
            )
            yield Line(text, comparison_page.mark(change, measure)[1])


def _planned(plan: Plan) -> Iterator[Line]:
    """The open question of two pilot runs, and the sample that would answer it."""
    measure = plan.instrument.measure(plan.measure)
    if isinstance(plan.assumed, PilotSpread):
        text = f"INCONCLUSIVE. {measure.label}: a loss of {plan.detect:g} is not ruled out"
        yield Line(f"{text} by {plan.assumed.items:,} questions.", "open")
    if plan.items is None:
        yield from (block for block in plan_page.page(plan) if isinstance(block, Line))
        return
    yield Line(
        f"About {plan.items:,} questions can detect a change of {plan.detect:g} "
        f"(power {plan.power:.0%})."
    )


def page(finding: ChosenExamples | Comparison | Audit | Report | Plan) -> list[Block]:
    """Return the blocks of a part in full."""
    match finding:
        case ChosenExamples():
            return _choice(finding)
        case Comparison():
            return comparison_page.page(finding)
        case Plan():
            return plan_page.page(finding)
        case Audit():
            lines = [Line(line, indent=2) for line in finding.says[1:]]
            return [*audit_page.opening(finding), *lines, GAP, *audit_page.checks(finding)]
        case Report():
            return report_page.page(finding)


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
