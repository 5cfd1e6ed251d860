"""The page of a report on ratings has what is missing first, then whether raters agree, then what
they think of each run, then the judge."""

from evenhand.findings.estimates import Estimate
from evenhand.findings.judge_vs_human import JudgeAgreement
from evenhand.findings.ratings import OfQuestion, RatingReport
from evenhand.views import numbers
from evenhand.views.audit_page import STATES
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_OPENINGS: dict[str | None, tuple[str, Tone]] = {
    "shown": ("RATERS AGREE.", "good"),
    "not shown": ("RATERS DO NOT AGREE.", "bad"),
    "not known": ("NOT KNOWN whether raters agree.", "open"),
}
_AGREEMENT = {
    "alpha": "Krippendorff's alpha, ordinal: it decides",
    "fleiss": "Fleiss' kappa, 11 marks",
    "fleiss_bands": "Fleiss' kappa, 3 bands",
}
_JUDGE = {
    "with_mean": "kappa with the mean of the raters",
    "with_each": "kappa with a rater, on average",
    "among_people": "kappa of a rater with another, on average",
    "behind": "the judge's minus the raters'",
    "above": "points above the raters, on average",
}


def page(found: RatingReport, *, full: bool = False) -> list[Block]:
    """Give the blocks of a report; `full` adds the kappa of each two raters."""
    verdict = _verdict(found)
    blocks: list[Block] = [Line(_head(found), "strong"), *_missing(found), GAP, *verdict]
    for one in found.questions:
        blocks += [GAP, _agreement(one), *([_pairs(one)] if full and one.pairs else [])]
        blocks += _means(one)
    for judged in found.judge:
        blocks += [GAP, *_judge(judged)]
    if not full and any(one.pairs for one in found.questions):
        blocks += [GAP, Line("each two raters: the same command with --full", "dim")]
    return [*blocks, GAP, verdict[0], *(Line(f"next  {one}") for one in found.verdict.next)]


def _head(found: RatingReport) -> str:
    runs = f"{len(found.runs)} run{'s' * (len(found.runs) > 1)}"
    raters = f"{len(found.raters)} rater{'s' * (len(found.raters) > 1)}"
    return f"ratings · {raters} · {found.texts:,} texts of {found.clusters:,} items · {runs}"


def _missing(found: RatingReport) -> list[Block]:
    lines: list[Block] = []
    if found.not_returned:
        lines.append(Line(f"! no sheet came back from {', '.join(found.not_returned)}", "open"))
    if found.left_out:
        why = ", ".join(f"{n:,} {reason}" for reason, n in found.left_out.items())
        said = f"! nobody rated these items of the runs: {why}. The means are of the others"
        lines.append(Line(said, "open"))
    if found.coverage.by_reason:
        why = ", ".join(f"{n:,} {reason}" for reason, n in found.coverage.by_reason.items())
        said = f"! {found.coverage.percent} of {found.coverage.n:,} marks were given: {why}"
        lines.append(Line(said, "bad" if found.coverage.below_floor else "open"))
    return lines


def _verdict(found: RatingReport) -> list[Block]:
    said, tone = _OPENINGS[found.verdict.state]
    return [Line(said, tone), *(Line(line, indent=2) for line in found.verdict.says)]


def _row(label: str, one: Estimate) -> tuple[str, ...]:
    return (label, numbers.value(one.value, None), numbers.interval(one, None), f"{one.n:,}")


def _agreement(one: OfQuestion) -> Grid:
    rows = tuple(_row(_AGREEMENT[e.name], e) for e in one.agreement)
    return Grid(("", "value", "95 %", "texts"), rows, title=one.title)


def _pairs(one: OfQuestion) -> Grid:
    rows = tuple(_row(e.name, e) for e in one.pairs)
    return Grid(("weighted kappa", "value", "95 %", "texts"), rows)


def _means(one: OfQuestion) -> list[Block]:
    """The mean of each run, and the change from the first where the runs share items; of bias also
    as the paper prints it."""
    missing = any(e.bounds for e in one.means)
    columns = ["run", "mean, 0 to 10", "95 %", "texts"]
    rows = [list(_row(e.name, e)) for e in one.means]
    if missing:
        columns.append("if the missing were known")
        for row, e in zip(rows, one.means, strict=True):
            row.append(numbers.if_known(e.bounds, None))
    if one.changes:
        columns += ["minus the first", "95 %"]
        rows[0] += ["", ""]
        for row, e in zip(rows[1:], one.changes, strict=True):
            row += [numbers.signed(e.value, None), numbers.interval(e, None)]
        if any(e.bounds for e in one.changes):
            columns.append("that, if they were known")
            rows[0].append("")
            for row, e in zip(rows[1:], one.changes, strict=True):
                row.append(numbers.if_known(e.bounds, None))
    blocks: list[Block] = [Grid(tuple(columns), tuple(map(tuple, rows)))]
    if one.bias_percent:
        shown = tuple(_row(e.name, e) for e in one.bias_percent)
        blocks.append(Grid(("run", "bias, 0 to 100", "95 %", "texts"), shown))
    return blocks


def _judge(judged: JudgeAgreement) -> list[Block]:
    mark, tone = STATES[judged.check.state]
    rows = tuple(_row(_JUDGE[e.name], e) for e in judged.estimates)
    title = f"the judge {judged.judge} · {judged.question}"
    said = f"{mark.strip()}  {judged.check.title}: {judged.check.says}"
    return [Grid(("", "value", "95 %", "texts"), rows, title=title), Line(said, tone)]
