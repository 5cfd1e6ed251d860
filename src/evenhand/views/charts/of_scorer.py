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
        *(chart for calibration in figures.calibration for chart in _calibration(calibration)),
    )


def _shares(name: str, title: str, shares: Sequence[WrongShare]) -> Iterator[Chart]:
    """The share that is judged wrongly, of each set and of the worst kinds and groups."""
    overall = [share for share in shares if share.by == "all"]
    worst = sorted(shares, key=lambda share: -(share.estimate or 0.0))
    visible = [*overall, *(share for share in worst if share.by != "all")][:MOST_ROWS]
    if not visible:
        return
    panel = Panel(
        rows=[_row(share) for share in visible], axis="share", within=(0, 1), from_zero=True
    )
    legend = [f"The worst {len(visible)} of {len(shares)}."] if len(visible) < len(shares) else []
    legend += (
        [DASHED.replace("answers", "scores")] if any(share.if_known for share in visible) else []
    )
    yield forest(name, title, [panel], legend)


def _row(share: WrongShare) -> Row:
    text = "too few have a score"
    if share.estimate is not None:
        ends = "no interval" if share.low is None else f"{share.low:.2f} to {share.high:.2f}"
        text = f"{share.estimate:.2f} ({ends})"
    return Row(
        label=share.set if share.by == "all" else f"{share.set}: {share.kind}",
        value=share.estimate,
        low=share.low,
        high=share.high,
        bounds=None if share.if_known is None else (share.if_known.low, share.if_known.high),
        says=text,
        n=share.n,
    )


def _calibration(calibration: Calibration) -> Iterator[Chart]:
    steps = [
        Step(score=part.score, target=part.target, n=part.n) for part in calibration.curve if part.n
    ]
    if not steps or calibration.ece is None:
        return
    ends = calibration.intervals["ece"]
    sure = "no interval" if ends is None else f"{ends.low:.2f} to {ends.high:.2f}"
    caption = f"Calibration error {calibration.ece:.2f} ({sure}), n {calibration.n:,}."
    axes = ("this scorer's score", "the recorded score")
    yield curve(f"calibration_{calibration.set}",
                f"Scores beside the recorded ones: {calibration.set}", steps, axes,
                caption)  # fmt: skip
