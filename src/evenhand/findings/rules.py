"""The rules of evidence are each written once for every report, comparison, frontier and plan."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from evenhand.findings.found import NO_SPREAD, Change, Coverage, Estimate, Evidence, RedLine
from evenhand.findings.measures import Measure
from evenhand.statistics.equivalence import non_inferiority
from evenhand.statistics.multiplicity import benjamini_hochberg, holm
from evenhand.statistics.paired import sign_flip_without_spread
from evenhand.statistics.planning import detectable_change
from evenhand.statistics.proportions import zero_event_upper
from evenhand.statistics.sign_flips import least_p

ALPHA = 0.05
MISSING_MARGIN = 0.01  # our choice: by how much the share of unscored answers may rise

Direction = Literal["better", "worse", "open"]
State = Literal["crossed", "open", "kept"]
Adjustment = Callable[[Sequence[float]], tuple[float, ...]]


def p_value(difference: float, se: float, clusters: int, of_t: float | None) -> float:
    """Give the p-value of a difference from 0: that of t, or that of sign flips where there is no
    spread."""
    if se == 0 or of_t is None:
        return sign_flip_without_spread(difference, clusters)
    return of_t


def adjusted(family: Sequence[Change]) -> list[Change]:
    """Adjust the p-values of a family of changes by Holm, those of what may be claimed too. A
    change without a value keeps its place as 1."""
    after = holm([1.0 if change.p is None else change.p for change in family])
    claimed = _claims(family, holm)
    return [replace(change, p_holm=p) for change, p in zip(claimed, after, strict=True)]


def _claims(family: Sequence[Change], adjust: Adjustment) -> list[Change]:
    """The changes with the evidence for and against them adjusted over the family."""
    better = adjust([evidence_of(change).better for change in family])
    worse = adjust([evidence_of(change).worse for change in family])
    return [
        change
        if change.evidence is None
        else replace(change, evidence_adjusted=replace(change.evidence, better=b, worse=w))
        for change, b, w in zip(family, better, worse, strict=True)
    ]


def evidence_of(change: Change) -> Evidence:
    """Give what may be claimed before any adjustment. Of a number that is no mean the p-value says
    it, and where any of its answers is missing nothing may be claimed in its favour."""
    if change.evidence is not None:
        return change.evidence
    p = 1.0 if change.p is None else change.p
    return Evidence(better=1.0 if _is_missing(change) else p, worse=p)


def unadjusted(change: Change) -> Change:
    """Give the change as if it were the only one that was looked at."""
    return replace(change, p_holm=None, evidence_adjusted=None)


def _is_missing(change: Change) -> bool:
    return change.bounds is not None and change.bounds.missing > 0


def exploratory(family: Sequence[Change]) -> list[Change]:
    """Adjust the p-values of changes that nobody declared to judge by, by Benjamini-Hochberg. One
    without a p-value counts in the family as 1 and stays without."""
    after = benjamini_hochberg([1.0 if change.p is None else change.p for change in family])
    claimed = _claims(family, benjamini_hochberg)
    return [
        replace(change, p_bh=None if change.p is None else p)
        for change, p in zip(claimed, after, strict=True)
    ]


def adjusted_estimates(family: Sequence[Estimate]) -> list[Estimate]:
    """Adjust the p-values of one measure's estimates in several groups by Holm over all that were
    looked at."""
    raw = [1.0 if one.p is None else one.p for one in family]
    return [replace(one, p_holm=p) for one, p in zip(family, holm(raw), strict=True)]


def direction(change: Change, measure: Measure) -> Direction:
    """Say whether a change is shown to be for the better or for the worse: p ≤ 0.05, after Holm
    where the change belongs to a family, with every missing answer counted against the run that
    failed to give it."""
    if measure.better == "none":
        return "open"
    found = change.evidence if change.evidence_adjusted is None else change.evidence_adjusted
    if found is not None:
        if found.worse <= ALPHA:
            return "worse"
        return "better" if found.better <= ALPHA else "open"
    claimed = _by_p(change, measure)
    return "open" if claimed == "better" and _is_missing(change) else claimed


def _by_p(change: Change, measure: Measure) -> Direction:
    """The direction of a number that is no mean, from its p-value and its interval."""
    p = change.p if change.p_holm is None else change.p_holm
    if change.difference in (None, 0.0) or p is None or p > ALPHA:
        return "open"
    if measure.null is not None:
        assert change.before is not None
        assert change.after is not None
        return _nearer(change.before - measure.null, change.after - measure.null, change)
    rose = (change.difference or 0.0) > 0
    return "better" if rose == (measure.better == "higher") else "worse"


def _nearer(before: float, after: float, change: Change) -> Direction:
    """Say whether a number came nearer to "no bias". Where it passed over to the other side, a
    change that is shown need not be a change of the distance: that must itself exceed the
    interval."""
    gained = abs(before) - abs(after)
    passed = before * after < 0
    reach = 0.0 if change.low is None or change.high is None else (change.high - change.low) / 2
    if passed and abs(gained) <= reach:
        return "open"
    return "better" if gained > 0 else "worse" if gained < 0 else "open"


def kept(change: Change, measure: Measure) -> State:
    """Say whether a number stayed within its margin: non-inferiority, one-sided at 2.5 %.

    Kept: shown, however the missing answers came out, with one more cluster that lost all it could,
    and from so many clusters that a loss which none of them shows is within the margin too (2.5 %
    of them again: 183 clusters for a margin of 0.02).
    Crossed: shown to be worse at all, and not kept. Open: neither.
    """
    assert measure.margin is not None
    found = change.evidence
    if found is not None and found.kept is not None:
        enough = change.clusters and allowed_unseen(change, measure) <= measure.margin
        if found.kept <= ALPHA / 2 and (enough or found.better <= ALPHA):
            return "kept"
        return "crossed" if found.worse <= ALPHA and found.kept > ALPHA / 2 else "open"
    state = _kept_by_t(change, measure)
    return "open" if state == "kept" and _is_missing(change) else state


def _kept_by_t(change: Change, measure: Measure) -> State:
    """The same of a number without a smallest and a largest value, or that is no mean."""
    assert measure.margin is not None
    if change.difference is None:
        return "open"
    gain = _gain(change, measure)
    if change.se == 0:
        allowed = allowed_unseen(change, measure)  # a number without ends allows anything
        shown = allowed <= measure.margin + min(gain, 0.0)
        fell = gain < 0 and p_value(gain, 0.0, change.clusters, None) <= ALPHA
    else:
        # A distance from "no bias" varies by the error of either run, not by that of the change.
        test = non_inferiority(gain, change.se, change.clusters - 1, measure.margin)
        shown = measure.null is None and test.not_inferior
        moved = sorted(end for end in (change.low, change.high) if end is not None)
        fell = gain < 0 and len(moved) == 2 and not moved[0] <= 0 <= moved[1]
    return "kept" if shown else "crossed" if fell else "open"


def _gain(change: Change, measure: Measure) -> float:
    """By how much a number came out better: nearer to "no bias" where it has such a value."""
    assert change.difference is not None
    if measure.null is None:
        return change.difference if measure.better == "higher" else -change.difference
    assert change.before is not None
    assert change.after is not None
    return abs(change.before - measure.null) - abs(change.after - measure.null)


def allowed_unseen(change: Change, measure: Measure, alpha: float = ALPHA / 2) -> float:
    """Compute how large a change that no cluster shows may still be: a share of clusters that were
    not drawn, one-sided at `alpha`, each of which changed by all that the measure allows. A number
    without ends allows anything: no spread is not certainty."""
    if not measure.bounded:
        return math.inf
    least, most = measure.range
    return (most - least) * zero_event_upper(change.clusters, 1 - alpha)


def red_line(change: Change, measure: Measure) -> RedLine:
    """Write the red line of a measure with a margin, in words."""
    if measure.absent and change.undefined == measure.absent:
        return RedLine(name=measure.name, state="open", says=f"not compared: {measure.absent}")
    state = kept(change, measure)
    wrong = "fell" if measure.better == "higher" else "rose"
    said = {
        "kept": f"{measure.label} kept within {measure.margin:g}",
        "crossed": f"{measure.label} {wrong}",
        "open": f"{measure.label} is not shown to have kept within {measure.margin:g}",
    }[state]
    return RedLine(name=measure.name, state=state, says=f"{said}: {seen(change, measure)}")


Sides = tuple[Coverage, Coverage]  # of the run before and of the run after, over shared items


def missing_line(parts: Mapping[str, Sides]) -> RedLine:
    """Say whether more answers are missing than before, of that part of the items (all of them, a
    condition, a measure) where it is worst: what is lost in one is not made good by another. It is
    a count of these very runs: kept where hardly any is missing, open where many are in both."""
    asked = {of: sides for of, sides in parts.items() if all(one.n for one in sides)}
    found = [_missing_in(of, *sides) for of, sides in asked.items()]
    nothing = RedLine(name="missing", state="open", says="no item was asked in both runs")
    return max(found, key=lambda pair: pair[0], default=((0, 0.0, 0.0), nothing))[1]


def _missing_in(
    of: str, before: Coverage, after: Coverage
) -> tuple[tuple[int, float, float], RedLine]:
    """The line of one part of the items, and how bad it is."""
    old, new = ((one.n - one.scored) / one.n for one in (before, after))
    rise = new - old
    state: State = "kept" if new <= MISSING_MARGIN else "open"
    if rise > MISSING_MARGIN:
        state = "crossed"
    moved = "rose" if rise > 0 else "fell" if rise < 0 else "stayed the same"
    by = f" by {abs(rise):.3f}, to {new:.3f}" if rise else f" at {new:.3f}" if new else ""
    counts = f"{before.n - before.scored:,} → {after.n - after.scored:,} of {after.n:,}"
    says = f"unreadable or missing answers{of and f', {of},'} {moved}{by} ({counts})"
    line = RedLine(name="missing", state=state, says=says)
    return (("kept", "open", "crossed").index(state), rise, new), line


def seen(change: Change, measure: Measure) -> str:
    """Write the change with its interval, or why there is none."""
    if change.difference is None:
        return f"it could not be compared ({change.undefined})"
    digits = 3 if measure.unit in ("share", "nats") else 1
    alike = f"the same in all {change.clusters} clusters"
    why = alike if change.undefined == NO_SPREAD else change.undefined or ""
    lost = _if_known(change, digits)
    if change.low is None or change.high is None:
        return f"{change.difference:+.{digits}f} ({why}){lost}"
    ends = f"{change.low:+.{digits}f} to {change.high:+.{digits}f}"
    return f"{change.difference:+.{digits}f} ({ends}{f'; {why}' if why else ''}){lost}"


def _if_known(change: Change, digits: int) -> str:
    """Write what the change could be if the missing answers were known."""
    found = change.bounds
    if found is None:
        return ""
    many = f"{found.missing:,} missing answer{'s' * (found.missing > 1)}"
    if found.low is None or found.high is None:
        return f"; {many} could make it anything"
    return f"; if the {many} were known: {found.low:+.{digits}f} to {found.high:+.{digits}f}"


def too_few(change: Change, family: int) -> bool:
    """Say whether a change over so few clusters cannot be shown at all after Holm over `family`
    changes, however large it is: not even if every cluster changed the same way."""
    return change.difference is not None and least_p(change.clusters) > ALPHA / family


def smallest_shown(
    change: Change, measure: Measure, *, family: int, together: int = 1
) -> float | None:
    """Compute the smallest change that this comparison would have shown 4 times in 5, after Holm
    over `family` changes of which `together` must all be shown. Where nothing has spread, it is the
    largest change that so many clusters may hide; None for a number without ends, which may hide
    any, and where there are too few clusters to show anything."""
    if change.difference is None or too_few(change, family):
        return None
    if not change.se:
        hidden = allowed_unseen(change, measure)
        return hidden if math.isfinite(hidden) else None
    return detectable_change(change.se, change.clusters - 1, family=family, together=together)


def benefit_excluded(
    change: Change, measure: Measure, size: float, alpha: float = ALPHA / 2
) -> bool:
    """Say whether a change for the better by `size`, which is what matters to the instrument, is
    excluded: one-sided at `alpha`, however the missing answers came out. Of a number that is no
    mean, t over clusters says it, and only where no answer is missing; where no cluster changed,
    what so many clusters still allow is held against it."""
    if change.evidence is not None and change.evidence.little is not None:
        return change.evidence.little <= alpha
    if change.difference is None or _is_missing(change):
        return False
    gain = _gain(change, measure)
    if not change.se:
        return gain + allowed_unseen(change, measure, alpha) < size
    return non_inferiority(-gain, change.se, change.clusters - 1, size, alpha).not_inferior


def in_unit(matters: float, measure: Measure) -> float:
    """Give what an instrument declares to matter, as a share, in the unit of one of its
    measures."""
    return matters * (100 if measure.unit == "percent" else 1)
