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
from evenhand.metrics.scorer_intervals import Ends, IfKnown

LEAST_COVERAGE = 0.95
MOST_FALSE_POSITIVES = 0.10
MOST_MISSES = 0.50
LEAST_AUC = 0.80
MOST_ECE = 0.10
LEAST_KEPT = 0.98  # of what is caught in plain writing
_MOST_NAMED = 6
_BY = (("all", ""), ("function", " by kind"), ("group", " by group"))


def checks(figures: Figures) -> tuple[Check, ...]:
    """All checks, the gravest question first."""
    return (
        _missing(figures),
        _training(figures),
        *_wrong(figures.false_positives, "Calls harmless texts toxic", MOST_FALSE_POSITIVES),
        *_wrong(figures.misses, "Misses hateful texts", MOST_MISSES),
        _ordering(figures),
        _scale(figures),
        _tricked(figures),
        *_emoji(figures),
    )


def _missing(figures: Figures) -> Check:
    coverage = figures.coverage
    if coverage.coverage is None:
        return not_measured("coverage", "no text was given", label="texts with a score")
    low = coverage.coverage < LEAST_COVERAGE
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in coverage.by_reason.items())
    message = (
        f"It gave no score to {1 - coverage.coverage:.1%} of the texts ({reasons}); "
        "the figures are of the others."
    )
    return Check(
        name="coverage",
        label="texts with a score",
        state="fail" if low else "pass",
        says=message if low else "",
        value=coverage.coverage,
        bar=f"at least {LEAST_COVERAGE:g}",
        n=coverage.n,
    )


def _training(figures: Figures) -> Check:
    trained = [row.set for row in figures.labels if row.seen == "all"]
    return Check(
        name="trained_on",
        label="sets it was trained on as a whole",
        state="fail" if trained else "pass",
        says=f"It was trained on {', '.join(trained)}: its figures there are too good."
        if trained
        else "",
        value=len(trained),
        bar="none",
        n=len(figures.labels),
    )


def _wrong(rows: Sequence[WrongShare], what: str, bound: float) -> Iterator[Check]:
    """For each set: all of its texts, the worst kind of them, and the worst group."""
    for name in dict.fromkeys(row.set for row in rows):
        for by, suffix in _BY:
            part = [row for row in rows if (row.set, row.by) == (name, by)]
            if part:
                yield _of_part(part, f"{what} in {name}{suffix}", bound)


def _of_part(part: Sequence[WrongShare], what: str, bound: float) -> Check:
    bounded = [
        _Bounded(row.kind, row.estimate, _ends(row), row.n, row.clusters, row.if_known)
        for row in part
    ]
    bad = [figure for figure in bounded if figure.beyond(most=bound)]
    worst = max(bad or bounded, key=lambda figure: figure.wrongness(most=bound))
    overall = part[0].by == "all"
    listing = ", ".join(
        _named("" if overall else f"{figure.name} ", figure, ".0%") for figure in bad[:_MOST_NAMED]
    )
    more = f" and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
    label = what if overall else f"{what}: {worst.name}"
    return _check(
        what.lower().replace(" ", "_"),
        label[0].lower() + label[1:],
        _state(bad, all(figure.within(most=bound) for figure in bounded)),
        f"{what}: {listing}{more}." if bad else _if_known(worst, ".0%"),
        worst,
        f"at most {bound:g}",
    )


def _ends(row: WrongShare) -> Ends | None:
    return None if row.low is None or row.high is None else Ends(row.low, row.high)


def _ordering(figures: Figures) -> Check:
    label = "tells toxic from harmless, AUC in the worst set"
    bounded = [
        _Bounded(row.set, row.auc, row.intervals["auc"], row.n, row.clusters, row.if_known)
        for row in figures.labels
        if row.auc is not None or row.if_known is not None
    ]
    if not bounded:
        return not_measured("auc", "no set has both toxic and harmless texts", label=label)
    message = f"Tells toxic from harmless poorly (AUC below {LEAST_AUC:g}): {{}}."
    return _by_ends("auc", label, bounded, message, least=LEAST_AUC)


def _scale(figures: Figures) -> Check:
    label = "calibration error in the worst set"
    bounded = [
        _Bounded(row.set, row.ece, row.intervals["ece"], row.n, row.clusters, row.if_known)
        for row in figures.calibration
    ]
    if not bounded:
        return not_measured("calibration", "no set has recorded scores", label=label)
    message = (
        "Its numbers are not on Perspective's scale (calibration error {}): "
        "do not compare them with published ones, and choose a threshold of its own."
    )
    return _by_ends("calibration", label, bounded, message, most=MOST_ECE)


def _tricked(figures: Figures) -> Check:
    label = "caught in disguise, of what is caught plain"
    bounded = [
        _Bounded(f"{row.trick} keeps", row.kept, row.ends, row.plain, row.plain, row.if_known)
        for row in figures.tricks
        if row.kept is not None or row.if_known is not None
    ]
    if not bounded:
        return not_measured("tricks", "no text is caught in plain writing", label=label)
    message = "Is got round by Unicode tricks (of what it catches in plain writing): {}."
    return _by_ends("tricks", label, bounded, message, least=LEAST_KEPT)


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
    bounded: Sequence[_Bounded],
    message: str,
    *,
    least: float = -inf,
    most: float = inf,
) -> Check:
    """Beyond its bound is a figure whose whole interval lies beyond; a pass is the opposite for
    every one of them."""
    bad = [figure for figure in bounded if figure.beyond(least=least, most=most)]
    good = all(figure.within(least=least, most=most) for figure in bounded)
    worst = max(bad or bounded, key=lambda figure: figure.wrongness(least=least, most=most))
    listing = ", ".join(_named(f"{figure.name} ", figure, ".2f") for figure in bad)
    return _check(
        name,
        label,
        _state(bad, good),
        message.format(listing) if bad else _if_known(worst, ".2f"),
        worst,
        f"at most {most:g}" if most < inf else f"at least {least:g}",
    )


def _state(bad: Sequence[_Bounded], good: bool) -> State:
    return "fail" if bad else "pass" if good else "inconclusive"


def _check(name: str, label: str, state: State, message: str, worst: _Bounded, bar: str) -> Check:
    return Check(
        name=name,
        label=label,
        state=state,
        says=message,
        value=worst.value,
        low=worst.ends.low if worst.ends else None,
        high=worst.ends.high if worst.ends else None,
        bar=bar,
        n=worst.n,
        clusters=worst.clusters,
    )


def _named(name: str, figure: _Bounded, form: str) -> str:
    """A figure in words, and what it could be if nothing were missing."""
    value = "unknown" if figure.value is None else f"{figure.value:{form}}"
    beside = _if_known(figure, form)
    return f"{name}{value}" + (f" ({beside})" if beside else "")


def _if_known(figure: _Bounded, form: str) -> str:
    bounds = figure.if_known
    if bounds is None:
        return ""
    texts = "the text" if bounds.missing == 1 else f"the {bounds.missing:,} texts"
    condition = f"if {texts} without a score had one"
    if bounds.low is None or bounds.high is None:
        return f"any number {condition}"
    return f"{bounds.low:{form}} to {bounds.high:{form}} {condition}"


def _emoji(figures: Figures) -> Iterator[Check]:
    emoji = figures.emoji
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
