"""The types of findings are numbers that can be printed, each with what it rests on."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from evenhand.errors import Undefined
from evenhand.statistics.clusters import Interval

NO_SPREAD = "no_spread"  # every cluster gave the same value: a value without an interval
COVERAGE_FLOOR = 0.95  # our choice: with less than that scored, a result is not quoted unsaid

Cell = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimate is a number of a report. Without a value it says why, and is never printed as 0.
    Where every cluster gave the same value there is no interval, and `undefined` is "no_spread"."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    clusters: int = 0
    undefined: str | None = None
    p: float | None = None  # against the value that says "no bias", where there is one
    p_holm: float | None = None  # after Holm over all groups that were looked at

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
        return cls(
            name=name,
            value=found.estimate,
            low=None if found.no_spread else max(found.low, within[0]),
            high=None if found.no_spread else min(found.high, within[1]),
            n=found.n,
            clusters=found.clusters,
            undefined=NO_SPREAD if found.no_spread else None,
        )

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change is after minus before, over the items that both runs answered.

    `se` is 0 and the interval a point where every cluster changed alike; p is then that of sign
    flips, never 1 for a change that is not 0.
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
    n: int = 0
    clusters: int = 0
    undefined: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Flips count how many items became right and how many became wrong, with McNemar's exact p."""

    fixed: int
    broken: int
    p_mcnemar: float


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
