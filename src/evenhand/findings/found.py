"""The types of findings are numbers that can be printed, each with what it rests on."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from evenhand.errors import Undefined
from evenhand.statistics.clusters import Interval
from evenhand.statistics.shares import without_spread

NO_SPREAD = "no_spread"  # every cluster gave the same value: the interval is what they allow
COVERAGE_FLOOR = 0.95  # our choice: with less than that scored, a result is not quoted unsaid

Cell = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds are the values that a number could have if the missing answers were known: all of them
    filled the one way, and all the other way. They are not an interval: they hold for certain, and
    say nothing about sampling. Source: Manski 1989."""

    missing: int  # answers, or pairs of which one is missing
    low: float | None = None  # None where an answer could have any value
    high: float | None = None
    overturn: int | None = None  # so many missing answers would overturn what the others show


def if_known(bounds: Bounds | None, written: Callable[[float], str]) -> str:
    """Say between which values a number lies if its missing answers were known, for a headline;
    empty where none is missing."""
    if bounds is None or not bounds.missing:
        return ""
    known = "if the missing answer were known"
    if bounds.missing > 1:
        known = f"if the {bounds.missing:,} missing answers were known"
    if bounds.low is None or bounds.high is None:
        return f"any number {known}"
    return f"between {written(bounds.low)} and {written(bounds.high)} {known}"


def bounds_in_columns(bounds: Bounds | None) -> dict[str, float | int | None]:
    """Give the bounds as columns of a table: missing, worst_low, worst_high, overturn."""
    found = bounds or Bounds(missing=0)
    return {
        "missing": found.missing,
        "worst_low": found.low,
        "worst_high": found.high,
        "overturn": found.overturn,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The p-values of what may be claimed of a change; `better` and `worse` are two-sided, the
    others one-sided. In each of them a missing answer counts against the claim, but for one: that
    it got worse may rest on a failure of the run after, which is harm there. So in the run after a
    missing answer is harm, and none where "little" is claimed; in the run before it is none where
    "better" or "kept" is claimed, and harm where "worse" or "little" is."""

    better: float
    worse: float
    kept: float | None = None  # that no more than the margin was lost
    little: float | None = None  # that less was gained than what matters, whatever is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimate is a number of a report. Without a value it says why, and is never printed as 0.
    Where every cluster gave the same value, `undefined` is "no_spread", and the interval is what so
    many clusters still allow; there is none if the number has no largest value."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    clusters: int = 0
    undefined: str | None = None
    p: float | None = None  # against the value that says "no bias"; missing answers speak for it
    p_holm: float | None = None  # after Holm over all groups that were looked at
    p_small: float | None = None  # of a bias that matters being excluded, missing answers or not
    bounds: Bounds | None = None  # None where no answer is missing

    @classmethod
    def of(
        cls, name: str, compute: Callable[[], Interval], within: tuple[float, float]
    ) -> "Estimate":
        """Make the estimate that an interval is. `within` holds the values that the number can
        take: the interval is cut there."""
        try:
            found = compute()
        except Undefined as reason:
            return cls(name=name, value=None, undefined=str(reason))
        low, high = ends_of(found, within)
        return cls(
            name=name,
            value=found.estimate,
            low=low,
            high=high,
            n=found.n,
            clusters=found.clusters,
            undefined=NO_SPREAD if found.no_spread else None,
        )

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None


def how_sure(one: Estimate, written: Callable[[float], str], *, if_missing: str = "") -> str:
    """Say in brackets within which values a number lies, and within which if its missing answers
    were known, for a headline; `if_missing` says what is assumed of these."""
    known = if_known(one.bounds, written)
    parts = [f"{known}{if_missing}"] if known else []
    if one.low is not None and one.high is not None:
        parts.insert(0, f"95 % sure: {written(one.low)} to {written(one.high)}")
    return f" ({'; '.join(parts)})" if parts else ""


def ends_of(
    found: Interval, within: tuple[float, float]
) -> tuple[float, float] | tuple[None, None]:
    """Give the ends of an interval, cut to the values that the number can take. Without spread they
    are what so many clusters still allow, and none if the number has no largest value."""
    if not found.no_spread:
        return max(found.low, within[0]), min(found.high, within[1])
    try:
        return without_spread(found.estimate, found.clusters, within, found.confidence)
    except Undefined:
        return None, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change is after minus before, over the items that both runs answered.

    `p` is that of clustered sign flips, so that it has a value where every cluster changed alike:
    there `se` is 0, `undefined` is "no_spread", and the interval is what so many clusters still
    allow. Of a ratio or a sum of ratios the clusters' linearised shares of the change are flipped
    (`clusters.shares_of_change`); a function of means or totals has no p. What may be claimed of
    the change is in `evidence`, which counts the missing answers too.
    """

    name: str
    before: float | None
    after: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None
    se: float = 0.0
    p: float | None = None
    p_holm: float | None = None
    p_bh: float | None = None  # of an exploratory change: after Benjamini-Hochberg over all of them
    n: int = 0
    clusters: int = 0
    undefined: str | None = None
    bounds: Bounds | None = None  # None where no answer is missing
    evidence: Evidence | None = None  # None where a missing answer could have any value
    evidence_adjusted: Evidence | None = None  # after Holm, where the change belongs to a family

    @property
    def p_adjusted(self) -> float | None:
        """The p-value that may be quoted: after the correction of the family it belongs to."""
        return next((p for p in (self.p_holm, self.p_bh) if p is not None), self.p)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Flips count how many items became right and how many became wrong, with the p-value of
    clustered sign flips: items of one cluster are alike, so they are not counted one by one."""

    fixed: int
    broken: int
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Coverage says how much of what was asked could be scored, and why the rest could not."""

    n: int
    scored: int
    by_reason: dict[str, int]

    @property
    def coverage(self) -> float | None:
        return self.scored / self.n if self.n else None

    @property
    def percent(self) -> str:
        """The coverage in percent, cut and not rounded: 94.96 % is not 95 %."""
        return "-" if self.coverage is None else f"{math.floor(1000 * self.coverage + 1e-9) / 10}%"

    @property
    def below_floor(self) -> bool:
        return self.coverage is not None and self.coverage < COVERAGE_FLOOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section is a small table that belongs to one instrument and fits no estimate: counts,
    curves, examples. Every view shows it as it is."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    in_short: bool = False  # shown without `--full` too


@dataclass(frozen=True, slots=True, kw_only=True)
class RedLine:
    """A red line says what a change must not do, and whether it did: crossed is shown, kept is
    shown, open is neither."""

    name: str
    state: Literal["crossed", "open", "kept"]
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A verdict is the answer in words. `state` is None where the instrument asks no yes-or-no
    question."""

    state: Literal["shown", "not shown", "not known"] | None
    says: tuple[str, ...]
    next: tuple[str, ...] = ()  # commands


NO_VERDICT = Verdict(state=None, says=())
