"""The page of a watch has the verdict first, then each number with its looks, then what changed."""

from evenhand.findings.monitoring import Change, MonitoredNumber, Monitoring, Point, Verdict
from evenhand.views import numbers, pictures
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_TONES: dict[Verdict, Tone] = {"steady": "good", "alarm": "bad", "open": "open", "broken": "bad"}
_MEANS: dict[Verdict, str] = {
    "steady": "No change is shown.",
    "alarm": "Something has changed.",
    "open": "There is one look that can be judged: the next ones are held against it.",
    "broken": "This look cannot be judged, which is no all-clear.",
}
_SHOWN = 12  # our choice: looks in a terminal; a file has all


def page(found: Monitoring, *, full: bool = False) -> list[Block]:
    """Give the blocks of a watch; the longer form has every look and the charts."""
    tone = _TONES[found.verdict]
    blocks: list[Block] = [Line(f"Watch: {found.verdict.upper()}. {_MEANS[found.verdict]}", tone)]
    blocks += [Line(note, "open") for note in found.notes]
    blocks += [
        Line(f"Looks so far: {found.looks:,}. While nothing changes, there is at most one alarm in "
             f"{found.false_alarm_every:,} looks on average.", "dim")
    ]  # fmt: skip
    if full:
        blocks += pictures.Pictures().of(found, "Over time")
    for one in found.numbers:
        blocks += [GAP, *_number(one, f"evidence, alarm at {found.threshold:,.0f}", full=full)]
    return blocks


def _number(one: MonitoredNumber, evidence: str, *, full: bool) -> list[Block]:
    points = one.points if full else one.points[-_SHOWN:]
    raised = {change.raised for change in one.changes}
    rows = tuple(_row(one, point, point.began in raised) for point in points)
    tones: tuple[Tone, ...] = tuple(
        "bad" if point.began in raised or point.why else "plain" for point in points
    )
    columns = ("look (UTC)", "value", "95 %", evidence, "")
    left = len(one.points) - len(points)
    more = f" (the last {len(points)} of {len(one.points)} looks)" if left else ""
    blocks: list[Block] = [Grid(columns, rows, tones, f"{one.name}{more}")]
    shown = one.changes if full else one.changes[-1:]
    return [*blocks, *(Line(_said(change), "bad", indent=2) for change in shown)]


def _row(one: MonitoredNumber, point: Point, raised: bool) -> tuple[str, ...]:
    seen = point.estimate
    value = "-" if seen is None else numbers.value(seen.value, one.measure, full=True)
    interval = "" if seen is None or one.measure is None else numbers.interval(seen, one.measure)
    said = "✗ alarm" if raised else (f"! {point.why}" if point.why else "")
    return _when(point.began), value, interval, f"{point.evidence:,.1f}", said


def _when(began: str) -> str:
    return began[:19].replace("T", " ")


def _said(change: Change) -> str:
    way = "rose" if change.upwards else "fell"
    also = "; ".join(change.also)
    known = f"There also changed {also}." if also else (
        "Nothing else that is recorded changed there: what answers under the same name may have."
    )  # fmt: skip
    return (
        f"alarm of {_when(change.raised)}: it {way}, likeliest since {_when(change.since)}. {known}"
    )
