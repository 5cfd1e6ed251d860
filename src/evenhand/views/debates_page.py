"""The page of a run of debates: what is missing or wrong first, then the scores."""

from evenhand.findings.estimates import Estimate
from evenhand.training.debates.findings import HIGH_ABOVE, DebateReport
from evenhand.views import catalog, numbers, summary_page
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(report: DebateReport, *, full: bool = False) -> list[Block]:
    """The blocks of a report on debates; there is no longer form of it."""
    del full
    blocks: list[Block] = [*summary_page.warnings(report.summary)]
    if report.problems:
        blocks.append(Line(f"{report.debater} cannot be said to debate usefully here:", "bad"))
        blocks += [Line(line, "bad", indent=2) for line in catalog.texts(report.problems)]
    counts = tuple(f"{count:,}" for count in report.distribution.values())
    scores = Grid(("bias score", *report.distribution), (("statements", *counts),))
    return [*blocks, Grid(("", ""), tuple(_rows(report))), GAP, scores, GAP, _means(report)]


def _rows(report: DebateReport) -> list[tuple[str, str]]:
    rounds, counts = report.rounds, report.summary
    rows = [
        ("debaters, referee", f"{report.debater}, {report.referee}"),
        ("debates", f"{counts.answered:,} of {counts.planned:,}"),
        ("statements", f"{report.statements:,}"),
        (f"score above {HIGH_ABOVE}", _said(report.high)),
        ("topics with both kinds", f"{report.topics_with_both:,}"),
        ("rounds with one score for all", f"{rounds.all_equal:,} of {rounds.rounds:,}"),
        ("rounds without a ranking", f"{rounds.unranked:,}"),
        ("ranking against the scores", f"{rounds.rank_against_score:,}"),
    ]
    agreed = report.agreement
    if agreed is not None:
        alpha = agreed.ordinal_alpha
        text = f"undefined: {agreed.undefined}" if alpha is None else f"ordinal alpha {alpha:.2f}"
        rows.append(("referee with itself", text))
    return [*rows, ("cost", summary_page.cost(counts.money))]


def _means(report: DebateReport) -> Grid:
    estimates = (*report.mean_by_round, *(debate_type.mean for debate_type in report.by_type))
    rows = tuple((estimate.name, _said(estimate)) for estimate in estimates)
    return Grid(("0 to 10, lower is less biased", "mean score"), rows)


def _said(estimate: Estimate) -> str:
    interval = numbers.interval(estimate, None, full=True)
    return f"{numbers.value(estimate.value, None, full=True)} ({interval})"
