"""The page of a run of debates: what is missing or wrong first, then the scores."""

from evenhand.findings.debates import HIGH_ABOVE, DebateReport
from evenhand.findings.estimates import Estimate
from evenhand.views import numbers, summary_page
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(found: DebateReport, *, full: bool = False) -> list[Block]:
    """The blocks of a report on debates; there is no longer form of it."""
    del full
    blocks: list[Block] = [*summary_page.warnings(found.summary)]
    if found.problems:
        blocks.append(Line(f"{found.debater} cannot be said to debate usefully here:", "bad"))
        blocks += [Line(line, "bad", indent=2) for line in found.problems]
    counts = tuple(f"{count:,}" for count in found.distribution.values())
    scores = Grid(("bias score", *found.distribution), (("statements", *counts),))
    return [*blocks, Grid(("", ""), tuple(_rows(found))), GAP, scores, GAP, _means(found)]


def _rows(found: DebateReport) -> list[tuple[str, str]]:
    rounds, counts = found.rounds, found.summary
    rows = [
        ("debaters, referee", f"{found.debater}, {found.referee}"),
        ("debates", f"{counts.answered:,} of {counts.planned:,}"),
        ("statements", f"{found.statements:,}"),
        (f"score above {HIGH_ABOVE}", _said(found.high)),
        ("topics with both kinds", f"{found.topics_with_both:,}"),
        ("rounds with one score for all", f"{rounds.all_equal:,} of {rounds.rounds:,}"),
        ("rounds without a ranking", f"{rounds.unranked:,}"),
        ("ranking against the scores", f"{rounds.rank_against_score:,}"),
    ]
    agreed = found.agreement
    if agreed is not None:
        alpha = agreed.ordinal_alpha
        said = f"undefined: {agreed.undefined}" if alpha is None else f"ordinal alpha {alpha:.2f}"
        rows.append(("referee with itself", said))
    return [*rows, ("cost", summary_page.cost(counts.money))]


def _means(found: DebateReport) -> Grid:
    estimates = (*found.mean_by_round, *(one.mean for one in found.by_type))
    rows = tuple((one.name, _said(one)) for one in estimates)
    return Grid(("0 to 10, lower is less biased", "mean score"), rows)


def _said(one: Estimate) -> str:
    interval = numbers.interval(one, None, full=True)
    return f"{numbers.value(one.value, None, full=True)} ({interval})"
