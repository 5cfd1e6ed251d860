"""Where not to trust a scorer: every bound, and the checks that hold it against them.

All bounds are our choice, fixed before a scorer was audited: no paper sets them. A figure fails
where its whole interval lies beyond its bound, and passes where its whole interval does not. A
count of these very texts passes or fails by itself.

A text without a score counts against the scorer: its interval is then the one in `if_known`, as bad
as any score could make it. So no check comes out better because a score is missing. What is printed
as the figure is that of the texts with a score.
"""

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from evenhand.findings.audit import Check, State, not_measured
from evenhand.instruments.scorer.figures import Figures, WrongShare
from evenhand.metrics.scorer_intervals import Ends
from evenhand.metrics.scorer_missing import IfKnown

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
    known = [
        _Bounded(row.kind, row.estimate, _ends(row), row.n, row.clusters, row.if_known)
        for row in part
    ]
    bad = [one for one in known if one.beyond(most=bound)]
    worst = max(bad or known, key=lambda one: one.wrongness(most=bound))
    whole = part[0].by == "all"
    named = ", ".join(
        _named("" if whole else f"{one.name} ", one, ".0%") for one in bad[:_MOST_NAMED]
    )
    more = f" and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
    label = what if whole else f"{what}: {worst.name}"
    return _check(
        what.lower().replace(" ", "_"),
        label[0].lower() + label[1:],
        _state(bad, all(one.within(most=bound) for one in known)),
        f"{what}: {named}{more}." if bad else _if_known(worst, ".0%"),
        worst,
        f"at most {bound:g}",
    )


def _ends(row: WrongShare) -> Ends | None:
    return None if row.low is None or row.high is None else Ends(row.low, row.high)


def _ordering(found: Figures) -> Check:
    label = "tells toxic from harmless, AUC in the worst set"
    known = [
        _Bounded(row.set, row.auc, row.intervals["auc"], row.n, row.clusters, row.if_known)
        for row in found.labels
        if row.auc is not None or row.if_known is not None
    ]
    if not known:
        return not_measured("auc", "no set has both toxic and harmless texts", label=label)
    said = f"Tells toxic from harmless poorly (AUC below {LEAST_AUC:g}): {{}}."
    return _by_ends("auc", label, known, said, least=LEAST_AUC)


def _scale(found: Figures) -> Check:
    label = "calibration error in the worst set"
    known = [
        _Bounded(row.set, row.ece, row.intervals["ece"], row.n, row.clusters, row.if_known)
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
        _Bounded(f"{row.trick} keeps", row.kept, row.ends, row.plain, row.plain, row.if_known)
        for row in found.tricks
        if row.kept is not None or row.if_known is not None
    ]
    if not known:
        return not_measured("tricks", "no text is caught in plain writing", label=label)
    said = "Is got round by Unicode tricks (of what it catches in plain writing): {}."
    return _by_ends("tricks", label, known, said, least=LEAST_KEPT)


class _Bounded(NamedTuple):
    """One figure that has a bound, of a set or a trick."""

    name: str
    value: float | None
    ends: Ends | None
    n: int
    clusters: int
    if_known: IfKnown | None

    @property
    def against(self) -> Ends | None:
        """The interval that decides: texts without a score are against the scorer in it."""
        return self.if_known.ends if self.if_known else self.ends

    def beyond(self, *, least: float = -inf, most: float = inf) -> bool:
        ends = self.against
        return ends is not None and (ends.high < least or ends.low > most)

    def within(self, *, least: float = -inf, most: float = inf) -> bool:
        """Not the opposite of `beyond`: a figure without an interval shows neither."""
        ends = self.against
        return ends is not None and least <= ends.low and ends.high <= most

    def wrongness(self, *, least: float = -inf, most: float = inf) -> float:
        """How far the figure may be on the wrong side: of one end only one is a bound."""
        at_worst = self.value
        if self.if_known:
            at_worst = self.if_known.high if most < inf else self.if_known.low
        if at_worst is None:
            return inf
        return at_worst - most if most < inf else least - at_worst


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
    every one of them."""
    bad = [one for one in known if one.beyond(least=least, most=most)]
    good = all(one.within(least=least, most=most) for one in known)
    worst = max(bad or known, key=lambda one: one.wrongness(least=least, most=most))
    listed = ", ".join(_named(f"{one.name} ", one, ".2f") for one in bad)
    return _check(
        name,
        label,
        _state(bad, good),
        said.format(listed) if bad else _if_known(worst, ".2f"),
        worst,
        f"at most {most:g}" if most < inf else f"at least {least:g}",
    )


def _state(bad: Sequence[_Bounded], good: bool) -> State:
    return "fail" if bad else "pass" if good else "underpowered"


def _check(name: str, label: str, state: State, says: str, worst: _Bounded, bar: str) -> Check:
    return Check(
        name=name,
        label=label,
        state=state,
        says=says,
        value=worst.value,
        low=worst.ends.low if worst.ends else None,
        high=worst.ends.high if worst.ends else None,
        bar=bar,
        n=worst.n,
        clusters=worst.clusters,
    )


def _named(name: str, one: _Bounded, form: str) -> str:
    """A figure in words, and what it could be if nothing were missing."""
    value = "unknown" if one.value is None else f"{one.value:{form}}"
    beside = _if_known(one, form)
    return f"{name}{value}" + (f" ({beside})" if beside else "")


def _if_known(one: _Bounded, form: str) -> str:
    found = one.if_known
    if found is None:
        return ""
    texts = "the text" if found.missing == 1 else f"the {found.missing:,} texts"
    known = f"if {texts} without a score had one"
    if found.low is None or found.high is None:
        return f"any number {known}"
    return f"{found.low:{form}} to {found.high:{form}} {known}"


def _emoji(found: Figures) -> Iterator[Check]:
    emoji = found.emoji
    if emoji is None:
        return
    label = "harmless texts with emoji called toxic"
    texts, wrong = emoji.n + emoji.missing, emoji.flagged + emoji.missing
    if not texts:
        yield not_measured("emoji", "there is no text with emoji", label=label)
        return
    lost = f", and gives no score to {emoji.missing}" if emoji.missing else ""
    yield Check(
        name="emoji",
        label=label,
        state="fail" if wrong else "pass",
        says=f"Calls {emoji.flagged} of {emoji.n} harmless texts with emoji toxic{lost}."
        if wrong
        else "",
        value=emoji.flagged / emoji.n if emoji.n else None,
        bar="none",
        n=emoji.n,
    )
