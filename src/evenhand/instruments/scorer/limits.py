"""Where not to trust a scorer: every bound, and the checks that hold it against them.

All bounds are our choice, fixed before a scorer was audited: no paper sets them. A figure fails
where its whole interval lies beyond its bound, and passes where its whole interval does not. A
count of these very texts passes or fails by itself.
"""

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from evenhand.findings.check import Check, State, not_measured
from evenhand.instruments.scorer.figures import Figures, WrongShare
from evenhand.metrics.scorer_intervals import Ends

LEAST_COVERAGE = 0.95
MOST_FALSE_POSITIVES = 0.10
MOST_MISSES = 0.50
LEAST_AUC = 0.80
MOST_ECE = 0.10
LEAST_KEPT = 0.98  # of what is caught in plain writing
_MOST_NAMED = 6
_BY = (("all", ""), ("function", " by kind"), ("group", " by group"))


def checks(found: Figures) -> tuple[Check, ...]:
    """All checks, the gravest question first."""
    return (
        _missing(found),
        _training(found),
        *_wrong(found.false_positives, "Calls harmless texts toxic", MOST_FALSE_POSITIVES),
        *_wrong(found.misses, "Misses hateful texts", MOST_MISSES),
        _ordering(found),
        _scale(found),
        _tricked(found),
        *_emoji(found),
    )


def _missing(found: Figures) -> Check:
    seen = found.coverage
    if seen.coverage is None:
        return not_measured("coverage", "no text was given", label="texts with a score")
    low = seen.coverage < LEAST_COVERAGE
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in seen.by_reason.items())
    said = (
        f"It gave no score to {1 - seen.coverage:.1%} of the texts ({reasons}); "
        "the figures are of the others."
    )
    return Check(
        name="coverage",
        label="texts with a score",
        state="fail" if low else "pass",
        says=said if low else "",
        value=seen.coverage,
        bar=f"at least {LEAST_COVERAGE:g}",
        n=seen.n,
    )


def _training(found: Figures) -> Check:
    whole = [row.set for row in found.labels if row.seen == "all"]
    return Check(
        name="trained_on",
        label="sets it was trained on as a whole",
        state="fail" if whole else "pass",
        says=f"It was trained on {', '.join(whole)}: its figures there are too good."
        if whole
        else "",
        value=len(whole),
        bar="none",
        n=len(found.labels),
    )


def _wrong(rows: Sequence[WrongShare], what: str, bound: float) -> Iterator[Check]:
    """For each set: all of its texts, the worst kind of them, and the worst group."""
    for name in dict.fromkeys(row.set for row in rows):
        for by, said in _BY:
            part = [row for row in rows if (row.set, row.by) == (name, by)]
            if part:
                yield _of_part(part, f"{what} in {name}{said}", bound)


def _of_part(part: Sequence[WrongShare], what: str, bound: float) -> Check:
    bad = [row for row in part if row.low > bound]
    state: State = "fail" if bad else "underpowered"
    if all(row.high <= bound for row in part):
        state = "pass"
    worst = (bad or part)[0]
    named = ", ".join(
        f"{row.estimate:.0%}" if row.by == "all" else f"{row.kind} {row.estimate:.0%}"
        for row in bad[:_MOST_NAMED]
    )
    more = f" and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
    label = what if worst.by == "all" else f"{what}: {worst.kind}"
    return Check(
        name=what.lower().replace(" ", "_"),
        label=label[0].lower() + label[1:],
        state=state,
        says=f"{what}: {named}{more}." if bad else "",
        value=worst.estimate,
        low=worst.low,
        high=worst.high,
        bar=f"at most {bound:g}",
        n=worst.n,
        clusters=worst.clusters,
    )


def _ordering(found: Figures) -> Check:
    label = "tells toxic from harmless, AUC in the worst set"
    known = [
        _Bounded(row.set, row.auc, row.intervals["auc"], row.n, row.clusters)
        for row in found.labels
        if row.auc is not None
    ]
    if not known:
        return not_measured("auc", "no set has both toxic and harmless texts", label=label)
    said = f"Tells toxic from harmless poorly (AUC below {LEAST_AUC:g}): {{}}."
    return _by_ends("auc", label, known, said, least=LEAST_AUC)


def _scale(found: Figures) -> Check:
    label = "calibration error in the worst set"
    known = [
        _Bounded(row.set, row.ece, row.intervals["ece"], row.n, row.clusters)
        for row in found.calibration
    ]
    if not known:
        return not_measured("calibration", "no set has recorded scores", label=label)
    said = (
        "Its numbers are not on Perspective's scale (calibration error {}): "
        "do not compare them with published ones, and choose a threshold of its own."
    )
    return _by_ends("calibration", label, known, said, most=MOST_ECE)


def _tricked(found: Figures) -> Check:
    label = "caught in disguise, of what is caught plain"
    known = [
        _Bounded(f"{row.trick} keeps", row.kept, row.ends, row.plain, row.plain)
        for row in found.tricks
        if row.kept is not None
    ]
    if not known:
        return not_measured("tricks", "no text is caught in plain writing", label=label)
    said = "Is got round by Unicode tricks (of what it catches in plain writing): {}."
    return _by_ends("tricks", label, known, said, least=LEAST_KEPT)


class _Bounded(NamedTuple):
    """One figure that has a bound, of a set or a trick."""

    name: str
    value: float
    ends: Ends | None
    n: int
    clusters: int


def _by_ends(
    name: str,
    label: str,
    known: Sequence[_Bounded],
    said: str,
    *,
    least: float = -inf,
    most: float = inf,
) -> Check:
    """Beyond its bound is a figure whose whole interval lies beyond; a pass is the opposite for
    every one of them. A figure without an interval shows neither."""
    bad = [one for one in known if one.ends and (one.ends.high < least or one.ends.low > most)]
    good = all(one.ends and least <= one.ends.low and one.ends.high <= most for one in known)
    # The figure that is furthest on the wrong side: of one end only one is a bound.
    worst = max(bad or known, key=lambda one: one.value - most if most < inf else least - one.value)
    listed = ", ".join(f"{one.name} {one.value:.2f}" for one in bad)
    return Check(
        name=name,
        label=label,
        state="fail" if bad else "pass" if good else "underpowered",
        says=said.format(listed) if bad else "",
        value=worst.value,
        low=worst.ends.low if worst.ends else None,
        high=worst.ends.high if worst.ends else None,
        bar=f"at most {most:g}" if most < inf else f"at least {least:g}",
        n=worst.n,
        clusters=worst.clusters,
    )


def _emoji(found: Figures) -> Iterator[Check]:
    emoji = found.emoji
    if emoji is None:
        return
    label = "harmless texts with emoji called toxic"
    if not emoji.n:
        yield not_measured("emoji", "no text with emoji has a score", label=label)
        return
    yield Check(
        name="emoji",
        label=label,
        state="fail" if emoji.flagged else "pass",
        says=f"Calls {emoji.flagged} of {emoji.n} harmless texts with emoji toxic."
        if emoji.flagged
        else "",
        value=emoji.flagged / emoji.n,
        bar="none",
        n=emoji.n,
    )
