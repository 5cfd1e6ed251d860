"""The page of a watch has the verdict first, then each number with its looks, then what changed."""

from evenhand.findings.monitoring import (
    DetectedChange,
    MonitoredNumber,
    MonitoredPoint,
    Monitoring,
    Verdict,
)
from evenhand.views import catalog, charts, numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_TONES: dict[Verdict, Tone] = {
    "pass": "good",
    "fail": "bad",
    "inconclusive": "open",
    "error": "bad",
}
_MEANS: dict[Verdict, str] = {
    "pass": "No drift detected.",
    "fail": "Drift detected.",
    "inconclusive": "Only one usable look so far. Later looks are compared with it.",
    "error": "This look could not be evaluated. This is not an all-clear.",
}
_SHOWN = 12  # our choice: looks in a terminal; a file has all


def page(monitoring: Monitoring, *, full: bool = False) -> list[Block]:
    """Give the blocks of a watch; the longer form has every look and the charts."""
    tone = _TONES[monitoring.verdict]
    blocks: list[Block] = [
        Line(f"Watch: {monitoring.verdict.upper()}. {_MEANS[monitoring.verdict]}", tone)
    ]
    blocks += [Line(note, "open") for note in catalog.texts(monitoring.notes)]
    blocks += [
        Line(f"Looks so far: {monitoring.looks:,}. While nothing changes, there is at most one "
             f"alarm in {monitoring.false_alarm_every:,} looks on average.", "dim")
    ]  # fmt: skip
    if full:
        blocks += charts.Pictures().of(monitoring, "Over time")
    for number in monitoring.numbers:
        blocks += [
            GAP,
            *_number(number, f"evidence, alarm at {monitoring.threshold:,.0f}", full=full),
        ]
    return blocks


def _number(number: MonitoredNumber, evidence: str, *, full: bool) -> list[Block]:
    points = number.points if full else number.points[-_SHOWN:]
    raised = {change.raised for change in number.changes}
    rows = tuple(_row(number, point, point.began in raised) for point in points)
    tones: tuple[Tone, ...] = tuple(
        "bad" if point.began in raised or point.why else "plain" for point in points
    )
    columns = ("look (UTC)", "value", "95% CI", evidence, "")
    left = len(number.points) - len(points)
    more = f" (the last {len(points)} of {len(number.points)} looks)" if left else ""
    blocks: list[Block] = [Grid(columns, rows, tones, f"{number.name}{more}")]
    changes = number.changes if full else number.changes[-1:]
    return [*blocks, *(Line(_said(change), "bad", indent=2) for change in changes)]


def _row(number: MonitoredNumber, point: MonitoredPoint, raised: bool) -> tuple[str, ...]:
    estimate = point.estimate
    value = "-" if estimate is None else numbers.value(estimate.value, number.measure, full=True)
    interval = (
        ""
        if estimate is None or number.measure is None
        else numbers.interval(estimate, number.measure)
    )
    note = "✗ alarm" if raised else (f"! {catalog.text(point.why)}" if point.why else "")
    return _when(point.began), value, interval, f"{point.evidence:,.1f}", note


def _when(began: str) -> str:
    return began[:19].replace("T", " ")


def _said(change: DetectedChange) -> str:
    way = "rose" if change.upwards else "fell"
    also = "; ".join(catalog.texts(change.also))
    remark = f"There also changed {also}." if also else (
        "Nothing else that is recorded changed there: what answers under the same name may have."
    )  # fmt: skip
    return (
        f"alarm of {_when(change.raised)}: it {way}, likeliest since {_when(change.since)}. "
        f"{remark}"
    )
