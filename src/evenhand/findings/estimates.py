"""The types of findings are numbers that can be printed, each with what it rests on."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from evenhand.core.conclusions import GuardrailResult
from evenhand.core.errors import Undefined
from evenhand.findings.display import RemarkOrText
from evenhand.statistics.bootstrap import BootstrapInterval
from evenhand.statistics.clusters import Interval
from evenhand.statistics.proportions import without_spread

if TYPE_CHECKING:
    from evenhand.findings.change_test import ChangeTest

NO_SPREAD = "no_spread"  # every cluster gave the same value: the interval is what they allow
COVERAGE_FLOOR = 0.95  # our choice: with less than that scored, a result is not quoted unsaid

VerdictState = Literal["detected", "ruled_out", "inconclusive"]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBounds(Bounds):
    """Bounds of a number whose interval, too, is known for every value of the missing answers."""

    interval: tuple[float, float]  # from the lowest of the lower ends to the highest upper one


def if_known(bounds: Bounds | None, written: Callable[[float], str]) -> str:
    """Say between which values a number lies if its missing answers were known, for a headline;
    empty where none is missing."""
    if bounds is None or not bounds.missing:
        return ""
    condition = "if the missing answer were known"
    if bounds.missing > 1:
        condition = f"if the {bounds.missing:,} missing answers were known"
    if bounds.low is None or bounds.high is None:
        return f"any number {condition}"
    return f"between {written(bounds.low)} and {written(bounds.high)} {condition}"


def bounds_in_columns(bounds: Bounds | None) -> dict[str, float | int | None]:
    """Give the bounds as columns of a table: missing, worst_low, worst_high, overturn."""
    values = bounds or Bounds(missing=0)
    return {
        "missing": values.missing,
        "worst_low": values.low,
        "worst_high": values.high,
        "overturn": values.overturn,
    }


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
        """Make an estimate from an interval.

        Args:
            name: The name of the metric.
            compute: Computes the interval; an `Undefined` that it raises becomes the reason.
            within: The smallest and the largest value of the number; the interval is cut there.
        """
        try:
            interval = compute()
        except Undefined as reason:
            return cls(name=name, value=None, undefined=str(reason))
        low, high = ends_of(interval, within)
        return cls(
            name=name,
            value=interval.estimate,
            low=low,
            high=high,
            n=interval.n,
            clusters=interval.clusters,
            undefined=NO_SPREAD if interval.no_spread else None,
        )

    @classmethod
    def of_resamples(cls, name: str, resampled: BootstrapInterval, n: int) -> "Estimate":
        """Make an estimate from a cluster bootstrap. Without variation between resamples it has no
        interval.

        Args:
            name: The name of the metric.
            resampled: The interval that the bootstrap gave.
            n: The number of rows behind it.
        """
        ends = (None, None) if resampled.no_spread else (resampled.low, resampled.high)
        return cls(name=name, value=resampled.estimate, low=ends[0], high=ends[1], n=n,
                   clusters=resampled.clusters,
                   undefined=NO_SPREAD if resampled.no_spread else None)  # fmt: skip

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None


def how_sure(estimate: Estimate, written: Callable[[float], str], *, if_missing: str = "") -> str:
    """Write the confidence interval and the worst-case bounds of a number in brackets, for a
    headline.

    Args:
        estimate: The estimate.
        written: Formats a number in the unit of the metric.
        if_missing: Text to add after the bounds, which names what is assumed of missing answers.

    Returns:
        The text with a leading space; empty without an interval and bounds.
    """
    bounds_text = if_known(estimate.bounds, written)
    parts = [f"{bounds_text}{if_missing}"] if bounds_text else []
    if estimate.low is not None and estimate.high is not None:
        parts.insert(0, f"95% CI {written(estimate.low)} to {written(estimate.high)}")
    return f" ({'; '.join(parts)})" if parts else ""


def ends_of(
    interval: Interval, within: tuple[float, float]
) -> tuple[float, float] | tuple[None, None]:
    """Give the ends of an interval, cut to the values that the number can take. Without spread they
    are what so many clusters still allow, and none if the number has no largest value."""
    if not interval.no_spread:
        return max(interval.low, within[0]), min(interval.high, within[1])
    try:
        return without_spread(interval.estimate, interval.clusters, within, interval.confidence)
    except Undefined:
        return None, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change is after minus before, over the items that both runs answered.

    `effect` is what is tested: the difference, or for a score that has an unbiased value the change
    of its distance from that value. `low` to `high` is its 95% CI; `limits` are the one-sided
    97.5% limits that a margin is compared with. Both are inversions of the tests that decide, with
    every missing answer at its worst. After a correction for several tests, `low_adjusted` to
    `high_adjusted` is the interval at the level at which the correction tested this one.
    """

    name: str
    before: float | None
    after: float | None
    difference: float | None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    low_adjusted: float | None = None
    high_adjusted: float | None = None
    limits: tuple[float, float] | None = None
    se: float = 0.0
    p: float | None = None
    p_holm: float | None = None
    p_bh: float | None = None  # of an exploratory change: after Benjamini-Hochberg over all of them
    n: int = 0
    clusters: int = 0
    undefined: str | None = None
    bounds: Bounds | None = None  # None where no answer is missing
    # What computes the interval at another level; None of a number that has no test.
    test: "ChangeTest | None" = field(default=None, repr=False, compare=False)

    @property
    def p_adjusted(self) -> float | None:
        """The p-value that may be quoted: after the correction of the family it belongs to."""
        return next((p for p in (self.p_holm, self.p_bh) if p is not None), self.p)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval that the outcome rests on: adjusted where the decision is."""
        if self.low_adjusted is not None and self.high_adjusted is not None:
            return self.low_adjusted, self.high_adjusted
        return None if self.low is None or self.high is None else (self.low, self.high)

    def values(self) -> dict[str, Any]:
        """Return the fields by name, without the test."""
        return {
            attribute.name: getattr(self, attribute.name)
            for attribute in fields(self)
            if attribute.name != "test"
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Flips count how many items became right and how many became wrong, with the p-value of
    clustered sign flips: items of one cluster are alike, so they are not counted one by one."""

    fixed: int
    broken: int
    p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSize:
    """What a whole benchmark holds: more cannot be asked of it."""

    items: int
    clusters: int | None = None  # None: not counted on its card


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
        """The coverage in percent, cut and not rounded: 94.96% is not 95%."""
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
    note: RemarkOrText = ""
    in_short: bool = False  # shown without `--full` too


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailTest:
    """A guardrail says what a change must not do, and whether it did: violated is
    shown, non_inferior is shown, inconclusive is neither."""

    name: str
    state: GuardrailResult
    says: RemarkOrText


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A verdict is the answer: its state, and what it rests on. `state` is None where the
    instrument asks no yes-or-no question."""

    state: VerdictState | None
    says: tuple[RemarkOrText, ...]
    next: tuple[RemarkOrText, ...] = ()  # commands


NO_VERDICT = Verdict(state=None, says=())
