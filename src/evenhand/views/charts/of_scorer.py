"""The charts of an audit of a scorer: which harmless and hateful texts it gets wrong, and how its
scores lie beside the recorded ones."""

from collections.abc import Iterator, Sequence

from evenhand.instruments.scorer.audit import ScorerAudit
from evenhand.instruments.scorer.figures import Calibration, WrongShare
from evenhand.views.charts import Chart
from evenhand.views.charts.curve import Step, curve
from evenhand.views.charts.forest import Panel, Row, forest
from evenhand.views.charts.of_report import DASHED, MOST_ROWS


def charts(audit: ScorerAudit) -> tuple[Chart, ...]:
    """Draw the audit of one scorer."""
    figures = audit.figures
    return (
        *_shares("false_positives", "Harmless texts called toxic ↓", figures.false_positives),
        *_shares("misses", "Hateful texts missed ↓", figures.misses),
        *(chart for one in figures.calibration for chart in _calibration(one)),
    )


def _shares(name: str, title: str, shares: Sequence[WrongShare]) -> Iterator[Chart]:
    """The share that is judged wrongly, of each set and of the worst kinds and groups."""
    whole = [one for one in shares if one.by == "all"]
    worst = sorted(shares, key=lambda one: -(one.estimate or 0.0))
    kept = [*whole, *(one for one in worst if one.by != "all")][:MOST_ROWS]
    if not kept:
        return
    panel = Panel(rows=[_row(one) for one in kept], axis="share", within=(0, 1), from_zero=True)
    legend = [f"The worst {len(kept)} of {len(shares)}."] if len(kept) < len(shares) else []
    legend += [DASHED.replace("answers", "scores")] if any(one.if_known for one in kept) else []
    yield forest(name, title, [panel], legend)


def _row(one: WrongShare) -> Row:
    said = "too few have a score"
    if one.estimate is not None:
        ends = "no interval" if one.low is None else f"{one.low:.2f} to {one.high:.2f}"
        said = f"{one.estimate:.2f} ({ends})"
    return Row(
        label=one.set if one.by == "all" else f"{one.set}: {one.kind}",
        value=one.estimate,
        low=one.low,
        high=one.high,
        bounds=None if one.if_known is None else (one.if_known.low, one.if_known.high),
        says=said,
        n=one.n,
    )


def _calibration(one: Calibration) -> Iterator[Chart]:
    steps = [Step(score=part.score, target=part.target, n=part.n) for part in one.curve if part.n]
    if not steps or one.ece is None:
        return
    ends = one.intervals["ece"]
    sure = "no interval" if ends is None else f"{ends.low:.2f} to {ends.high:.2f}"
    says = f"Calibration error {one.ece:.2f} ({sure}), n {one.n:,}."
    axes = ("this scorer's score", "the recorded score")
    yield curve(f"calibration_{one.set}", f"Scores beside the recorded ones: {one.set}", steps,
                axes, says)  # fmt: skip
