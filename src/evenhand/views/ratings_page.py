"""The pages of what people marked: how far raters agree, and a rate from labels."""

from evenhand.findings.estimates import Estimate
from evenhand.findings.judge_vs_human import JudgeAgreement
from evenhand.findings.labelled import LabelledRate
from evenhand.training.rating.findings import QuestionRatings, RatingReport
from evenhand.views import catalog, numbers
from evenhand.views.audit_page import STATES
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_OPENINGS: dict[str | None, tuple[str, Tone]] = {
    "detected": ("RATERS AGREE.", "good"),
    "ruled_out": ("RATERS DO NOT AGREE.", "bad"),
    "inconclusive": ("INCONCLUSIVE: agreement of the raters.", "open"),
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


def page(report: RatingReport, *, full: bool = False) -> list[Block]:
    """Give the blocks of a report; `full` adds the kappa of each two raters."""
    verdict = _verdict(report)
    blocks: list[Block] = [Line(_head(report), "strong"), *_missing(report), GAP, *verdict]
    for question in report.questions:
        blocks += [
            GAP,
            _agreement(question),
            *([_pairs(question)] if full and question.pairs else []),
        ]
        blocks += _means(question)
    for judged in report.judge:
        blocks += [GAP, *_judge(judged)]
    if not full and any(question.pairs for question in report.questions):
        blocks += [GAP, Line("each two raters: the same command with --full", "dim")]
    return [
        *blocks,
        GAP,
        verdict[0],
        *(Line(f"next  {catalog.text(step)}") for step in report.verdict.next),
    ]


def _head(report: RatingReport) -> str:
    runs = f"{len(report.runs)} run{'s' * (len(report.runs) > 1)}"
    raters = f"{len(report.raters)} rater{'s' * (len(report.raters) > 1)}"
    return f"ratings · {raters} · {report.texts:,} texts of {report.clusters:,} items · {runs}"


def _missing(report: RatingReport) -> list[Block]:
    lines: list[Block] = []
    if report.not_returned:
        lines.append(Line(f"! no sheet came back from {', '.join(report.not_returned)}", "open"))
    if report.left_out:
        why = ", ".join(f"{n:,} {reason}" for reason, n in report.left_out.items())
        text = f"! nobody rated these items of the runs: {why}. The means are of the others"
        lines.append(Line(text, "open"))
    if report.coverage.by_reason:
        why = ", ".join(f"{n:,} {reason}" for reason, n in report.coverage.by_reason.items())
        text = f"! {report.coverage.percent} of {report.coverage.n:,} marks were given: {why}"
        lines.append(Line(text, "bad" if report.coverage.below_floor else "open"))
    return lines


def _verdict(report: RatingReport) -> list[Block]:
    opening, tone = _OPENINGS[report.verdict.state]
    return [
        Line(opening, tone),
        *(Line(line, indent=2) for line in catalog.texts(report.verdict.says)),
    ]


def _row(label: str, estimate: Estimate) -> tuple[str, ...]:
    return (
        label,
        numbers.value(estimate.value, None),
        numbers.interval(estimate, None),
        f"{estimate.n:,}",
    )


def _agreement(question: QuestionRatings) -> Grid:
    rows = tuple(_row(_AGREEMENT[e.name], e) for e in question.agreement)
    return Grid(("", "value", "95% CI", "texts"), rows, title=question.title)


def _pairs(question: QuestionRatings) -> Grid:
    rows = tuple(_row(e.name, e) for e in question.pairs)
    return Grid(("weighted kappa", "value", "95% CI", "texts"), rows)


def _means(question: QuestionRatings) -> list[Block]:
    """The mean of each run, and the change from the first where the runs share items; of bias also
    as the paper prints it."""
    missing = any(e.bounds for e in question.means)
    columns = ["run", "mean, 0 to 10", "95% CI", "texts"]
    rows = [list(_row(e.name, e)) for e in question.means]
    if missing:
        columns.append("if the missing were known")
        for row, e in zip(rows, question.means, strict=True):
            row.append(numbers.if_known(e.bounds, None))
    if question.changes:
        columns += ["minus the first", "95% CI"]
        rows[0] += ["", ""]
        for row, e in zip(rows[1:], question.changes, strict=True):
            row += [numbers.signed(e.value, None), numbers.interval(e, None)]
        if any(e.bounds for e in question.changes):
            columns.append("that, if they were known")
            rows[0].append("")
            for row, e in zip(rows[1:], question.changes, strict=True):
                row.append(numbers.if_known(e.bounds, None))
    blocks: list[Block] = [Grid(tuple(columns), tuple(map(tuple, rows)))]
    if question.bias_percent:
        bias_rows = tuple(_row(e.name, e) for e in question.bias_percent)
        blocks.append(Grid(("run", "bias, 0 to 100", "95% CI", "texts"), bias_rows))
    return blocks


def _judge(judged: JudgeAgreement) -> list[Block]:
    mark, tone = STATES[judged.check.state]
    rows = tuple(_row(_JUDGE[e.name], e) for e in judged.estimates)
    title = f"the judge {judged.judge} · {judged.question}"
    text = f"{mark.strip()}  {judged.check.title}: {judged.check.says}"
    return [Grid(("", "value", "95% CI", "texts"), rows, title=title), Line(text, tone)]


def labelled_page(rate: LabelledRate) -> list[Block]:
    """The blocks of a rate."""
    sure = f"95% CI {rate.low:.1%} to {rate.high:.1%}"
    value = "not one number" if rate.estimate is None else f"{rate.estimate:.1%}"
    rows = (
        ("labels and predictions", value, f"{rate.low:.1%} to {rate.high:.1%}"),
        ("labels alone", "", "{:.1%} to {:.1%}".format(*rate.labels_alone)),
    )
    return [
        Line(f"Label 1: {value} of {rate.texts:,} texts ({sure}).", "strong"),
        *(Line(line, "bad") for line in _labelled_missing(rate)),
        GAP,
        Grid(("", "rate", "95% CI"), rows),
        Line(_rests_on(rate), "dim"),
    ]


def _labelled_missing(rate: LabelledRate) -> list[str]:
    lines = []
    if rate.missing:
        lines.append(
            f"{rate.missing} of {rate.drawn} labels are missing: the interval holds all that "
            "they could make of it."
        )
    if rate.without_prediction:
        lines.append(f"{rate.without_prediction:,} texts have no prediction; that widens it.")
    return lines


def _rests_on(rate: LabelledRate) -> str:
    text = f"{rate.labels:,} labels of {rate.drawn:,} drawn, predictions of {rate.scorer}"
    if rate.share_used == 0:
        return f"{text}, which are not used: too few labels, or they tell nothing"
    return f"{text}; as wide as {rate.width_ratio:.0%} of labels alone"
