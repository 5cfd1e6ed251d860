"""Who is selected how often: each group against all others, by exact tests of one family.

Without bias an outcome says nothing of the group. So the number of a group's selections has a known
distribution: hypergeometric where the outcomes are reshuffled among the people, binomial where
one of several wins each time. With other odds for the group, every probability of it is multiplied
by odds to the power of the count, so that the test inverts to an interval: outcome, p-value and
interval are one thing. Over all groups of an audit the smallest p-value is compared with that of
draws without bias (Westfall & Young 1993). A tiny group, whose p-values are seldom small, costs the
others nothing.

People who are decided on one by one: what chance alone does to each group's selections.

Without bias an outcome says nothing of the group. So the outcomes that there were may be
reshuffled among the people, and every order is as likely: a permutation test, exact at any size.
Tables here have one row per stratum (a requisition, a month), within which outcomes are reshuffled,
and one column per group. People without strata are one row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when first used
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import FloatArray, IntArray, counts, open_share

TEST_DRAWS = 10_000  # our choice: the least p-value is 1 in 10,001
ALPHA = 0.05
POWER = 0.8
_ROUNDING = 1e-9
_TINY = 1e-40  # our choice: an end of a distribution this much less likely than its top is cut off
_FURTHEST = 64.0  # the largest logarithm of an odds ratio that is tried
_NEAR = 1e-12  # how near to the end of an interval its search comes
_SEED = 0


def impact_ratios(selected: ArrayLike, candidates: ArrayLike) -> FloatArray:
    """Each group's rate over that of the group with the highest: x_g/c_g / max x_h/c_h.

    Source: 6 RCNY 5-301 (New York City), "impact ratio". Range: 0 to 1. Undefined: nobody was
    selected. It describes: the best of several groups is ahead without any bias, so no test or
    interval rests on it.
    """
    x, c = _groups(selected, candidates)
    rates = x / c
    return np.asarray(rates / rates.max())


def uneven_p(selected: ArrayLike, expected: ArrayLike, seed: int = _SEED) -> float:
    """Return the p-value of a chi-square test that every group is selected as often as expected.

    χ² = Σ(x_g − e_g)²/e_g against that of 10,000 multinomial draws from e; (1 + as large)/10,001.
    Source: Pearson 1900; Barnard 1963. Range: 0 to 1.

    Args:
        selected: The number of people selected per group, x.
        expected: The expected number per group, up to a common factor.
        seed: The seed of the draws.

    Raises:
        Undefined: If nobody was selected.
    """
    x, e = _groups(selected, expected)
    draws = np.random.default_rng(seed).multinomial(int(x.sum()), e / e.sum(), TEST_DRAWS)
    return p_among(x, e * x.sum() / e.sum(), draws)


def p_among(selected: ArrayLike, expected: ArrayLike, drawn: ArrayLike) -> float:
    """Return the p-value of Σ(x_g − e_g)²/e_g among draws by chance: (1 + as large)/(1 + draws).

    Source: Barnard 1963. Range: above 0 to 1.

    Args:
        selected: The number of people selected per group, x.
        expected: The expected number per group, e.
        drawn: The selections by chance, one draw per row.

    Raises:
        Undefined: If nobody was selected.
    """
    x, e = _groups(selected, expected)
    chi2 = ((np.vstack([x, np.asarray(drawn)]) - e) ** 2 / e).sum(axis=1)
    return float((1 + (chi2[1:] >= chi2[0] - _ROUNDING).sum()) / len(chi2))


def levelled(selected: ArrayLike, expected: ArrayLike, missing: int) -> IntArray:
    """Fill in missing selections so that chi-square is smallest.

    Each selection goes to the group where it adds least: (x + 1)²/e − x²/e is least where (x + ½)/e
    is. No other way to fill in the missing ones has a smaller chi-square, since each group's part
    of it is convex.

    Args:
        selected: The number of people selected per group, x.
        expected: The expected number per group, e.
        missing: The number of selections to add.

    Returns:
        The filled counts per group.
    """
    x, e = _groups(selected, expected)
    for _ in range(missing):
        x[int(((x + 0.5) / e).argmin())] += 1
    return x.astype(np.int64)


def _groups(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, c = (np.asarray(column, dtype=np.float64) for column in (first, second))
    if x.ndim != 1 or x.shape != c.shape or len(x) < 2 or not ((x >= 0) & (c > 0)).all():
        raise UserError("two groups or more are needed, each with candidates and a count from 0")
    if not x.sum():
        raise Undefined("nobody was selected")
    return x, c


# -- one group -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chance:
    """The distribution of a group's number of selections: the logarithm of the probability of
    `start`, `start` + 1 and so on, up to a constant."""

    start: int
    log: FloatArray

    @classmethod
    def dealt(
        cls, members: ArrayLike, others: ArrayLike, selected: ArrayLike, near: float = 0.0
    ) -> "Chance":
        """Reshuffle the outcomes within each stratum: the sum of hypergeometric counts.

        Args:
            members: People of the group, one number per stratum.
            others: People of all other groups.
            selected: People who were selected, of both.
            near: The logarithm of odds around which the sum over strata is exact to the digit.
        """
        columns = (
            np.atleast_1d(np.asarray(column, dtype=np.int64))
            for column in (members, others, selected)
        )
        rows = [row for row in zip(*columns, strict=True) if row[2]]
        start, log_weights = 0, np.zeros(1)
        for n, rest, chosen in rows:
            first, last = max(0, chosen - rest), min(n, chosen)
            start += int(first)
            if first == last:
                continue
            x = np.arange(first, last + 1)
            log = _choose(n, x) + _choose(rest, chosen - x)
            start, log_weights = (
                (start, log) if len(rows) == 1 else _joined(start, log_weights, log, near)
            )
        return cls(start, log_weights - log_weights.max())

    @classmethod
    def drawn(cls, n: int, share: float) -> "Chance":
        """Draw one winner n times, who is of the group with a chance of `share`: binomial."""
        x = np.arange(n + 1)
        return cls(0, _choose(n, x) + x * np.log(share) + (n - x) * np.log1p(-share))

    def weights(self, log_odds: float = 0.0) -> FloatArray:
        """The probability of each count, with the odds of the group multiplied by exp(log_odds)."""
        log = self.log + np.arange(len(self.log)) * log_odds
        relative = np.exp(log - log.max())
        return np.asarray(relative / relative.sum())

    def at_most(self, count: int, log_odds: float = 0.0) -> float:
        return float(min(1.0, self.weights(log_odds)[: max(count - self.start + 1, 0)].sum()))

    def at_least(self, count: int, log_odds: float = 0.0) -> float:
        return float(min(1.0, self.weights(log_odds)[max(count - self.start, 0) :].sum()))

    def mean(self, log_odds: float = 0.0) -> float:
        if np.isinf(log_odds):
            return float(self.start + (len(self.log) - 1 if log_odds > 0 else 0))
        return float(self.start + self.weights(log_odds) @ np.arange(len(self.log)))

    def two_sided(self) -> FloatArray:
        """The p-value of each count: twice the smaller tail, at most 1."""
        weights = self.weights()
        below, above = np.cumsum(weights), np.cumsum(weights[::-1])[::-1]
        return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)))

    def odds_up_to(self, count: int, tail: float) -> float:
        """The logarithm of the largest odds under which so few come in `tail` of cases."""
        if count >= self.start + len(self.log) - 1:
            return np.inf
        return _turn(lambda odds: tail - self.at_most(count, odds))

    def odds_from(self, count: int, tail: float) -> float:
        """The logarithm of the smallest odds under which so many come in `tail` of cases."""
        if count <= self.start:
            return -np.inf
        return _turn(lambda odds: self.at_least(count, odds) - tail)


def _choose(n: int, x: ArrayLike) -> FloatArray:
    k = np.asarray(x, dtype=np.float64)
    log_of = scipy.special.gammaln
    return np.asarray(log_of(n + 1.0) - log_of(k + 1) - log_of(n - k + 1))


def _joined(start: int, summed: FloatArray, log: FloatArray, near: float) -> tuple[int, FloatArray]:
    """Add one stratum's count to the sum of those before; ends that are hardly possible near the
    odds in question are cut off."""
    both = []
    for logs in (summed, log):
        tilted = logs + np.arange(len(logs)) * near
        both.append(np.exp(tilted - tilted.max()))
    joined = np.convolve(*both)
    possible = np.flatnonzero(joined > _TINY * joined.max())
    first, last = int(possible[0]), int(possible[-1])
    index = np.arange(first, last + 1)
    with np.errstate(divide="ignore"):
        return start + first, np.log(joined[first : last + 1]) - index * near


def _turn(rising: Callable[[float], float]) -> float:
    """Where a rising function passes 0."""
    step = -1.0 if rising(0.0) > 0 else 1.0
    before, end = 0.0, step
    while abs(end) < _FURTHEST and (rising(end) > 0) == (step < 0):
        before, end = end, 2 * end
    if abs(end) >= _FURTHEST:
        return float(end)
    return float(scipy.optimize.brentq(rising, before, end, xtol=_NEAR, rtol=_NEAR))


@dataclass(frozen=True, slots=True)
class FilledSelections:
    """A group's selections with the missing outcomes filled in one way.

    `expected` of the `total` selections are the group's by chance; `scale` turns a surplus over
    that into a difference of rates.
    """

    selected: int
    total: float
    expected: float
    scale: float
    chance: Chance

    def ratio(self, count: float) -> float:
        """The group's rate over that of all others, if it had `count` of the selections; with
        strata, its count over the expected one against theirs."""
        if not 0 < self.expected < self.total:
            return float("nan")
        others = (self.total - count) / (self.total - self.expected)
        return float(count / self.expected / others) if others > 0 else float("inf")

    def difference(self, count: float) -> float:
        return (count - self.expected) * self.scale


@dataclass(frozen=True, slots=True)
class Selections:
    """One group's selections: as they are known, and with the missing outcomes filled in against
    the claim that it is selected less often, or more often."""

    seen: FilledSelections
    for_less: FilledSelections
    for_more: FilledSelections

    @property
    def p(self) -> float:
        """The p-value, two-sided, of the group being selected as often as the others, however the
        missing outcomes came out: no other filling has a larger tail."""
        less = self.for_less.chance.at_most(self.for_less.selected)
        more = self.for_more.chance.at_least(self.for_more.selected)
        return min(1.0, 2 * min(less, more))


class GroupContrast(NamedTuple):
    """What is said of a group against all others, at the level of its family."""

    ratio: float
    ratio_low: float
    ratio_high: float
    difference: float
    difference_low: float
    difference_high: float
    p: float  # adjusted over the family
    detectable: float | None  # the ratio below 1 that would be shown 4 times in 5

    @property
    def shown(self) -> bool:
        return self.p <= ALPHA


# -- all groups ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FamilyOfTests:
    """The tests that one audit makes: the smallest p-value of each draw without bias, of one or
    several ways in which the missing outcomes may have come out."""

    smallest: tuple[FloatArray, ...]

    @cached_property
    def level(self) -> float:
        """The largest p-value that is shown: it comes as the smallest of an audit without bias in
        at most 5% of draws. No interval is shorter than one of 95%."""
        levels = [ALPHA]
        for p_values in self.smallest:
            allowed = int(ALPHA * (len(p_values) + 1)) - 1
            levels.append(float(np.partition(p_values, allowed)[allowed]) * (1 - 2 * _ROUNDING)
                        if allowed >= 0 else 0.0)  # fmt: skip
        return min(levels)

    def adjusted(self, p: float) -> float:
        """The p-value after correction for all tests of the family: at most 0.05 exactly where p is
        at most `level`."""
        reached = p * (1 + _ROUNDING)
        corrected = [
            (1 + int((p_values <= reached).sum())) / (len(p_values) + 1)
            for p_values in self.smallest
        ]
        return float(min(1.0, max([p, *corrected])))

    def contrast(self, group: Selections) -> GroupContrast:
        """Invert the test of a group at the level of the family."""
        level, p = self.level, self.adjusted(group.p)
        less, more = group.for_less, group.for_more
        high = less.chance.mean(less.chance.odds_up_to(less.selected, level / 2))
        low = more.chance.mean(more.chance.odds_from(more.selected, level / 2))
        observed = group.seen
        ratios = _around(1.0, (more.ratio(low), less.ratio(high)), p)
        differences = _around(0.0, (more.difference(low), less.difference(high)), p)
        return GroupContrast(
            ratio=observed.ratio(observed.selected),
            ratio_low=ratios[0],
            ratio_high=ratios[1],
            difference=observed.difference(observed.selected),
            difference_low=differences[0],
            difference_high=differences[1],
            p=p,
            detectable=_detectable(less, level),
        )


def _around(null: float, ends: tuple[float, float], p: float) -> tuple[float, float]:
    """The ends, which hold "no bias" where the test does not exclude it: halving leaves an end
    off by some digit."""
    low, high = ends
    return (low, high) if p <= ALPHA else (min(low, null), max(high, null))


def _detectable(filling: FilledSelections, level: float) -> float | None:
    """The ratio below which 80% of audits detect that a group is selected less often."""
    below = np.cumsum(filling.chance.weights())
    critical = int(np.searchsorted(below, level / 2, side="right")) - 1
    if critical < 0 or not 0 < filling.expected < filling.total:
        return None
    odds = filling.chance.odds_up_to(filling.chance.start + critical, POWER)
    return filling.ratio(filling.chance.mean(odds))


class Grouped(NamedTuple):
    """The groups of one grouping in draws without bias: one draw a row, one group a column."""

    drawn: IntArray
    chances: Sequence[Chance]
    expected: FloatArray


def smallest_p(groupings: Sequence[Grouped]) -> FloatArray:
    """The smallest p-value of each draw, over all groups and the chi-square of each grouping."""
    p_values = []
    for draws, chances, expected in groupings:
        for column, chance in enumerate(chances):
            places = np.clip(draws[:, column] - chance.start, 0, len(chance.log) - 1)
            p_values.append(chance.two_sided()[places])
        some = expected > 0
        chi2 = ((draws[:, some] - expected[some]) ** 2 / expected[some]).sum(axis=1)
        as_large = len(chi2) - np.searchsorted(np.sort(chi2), chi2 - _ROUNDING)
        p_values.append(as_large / len(chi2))
    return np.asarray(np.min(p_values, axis=0))


STRATIFIED_DRAWS = 2000  # our choice: strata are drawn one by one, and there may be thousands
_FEW_STRATA = 8  # our choice: up to so many take all draws
_LEVELS = 401  # our choice: the level is known to a quarter of a percent of the range

_MOST_PEOPLE = 10_000_000  # of a plan, in each group: our choice, more than any audit has


def dealt_anew(
    people: ArrayLike, selected: ArrayLike, seed: int = _SEED, draws: int | None = None
) -> IntArray:
    """Redistribute the outcomes at random within each stratum, and count the selections per group.

    Multivariate hypergeometric. Source: Fisher 1935.

    Args:
        people: The number of people of each group, one row per stratum.
        selected: The number of people selected, one number per stratum.
        seed: The seed of the draws.
        draws: The number of draws. Defaults to 10,000, or 2,000 where there are more than eight
            strata.

    Returns:
        The selections per group, one draw per row.

    Raises:
        UserError: If `selected` does not fit the strata.
    """
    table, chosen = counts(people), np.asarray(selected, dtype=np.int64)
    if chosen.shape != table.shape[:1] or (chosen > table.sum(axis=1)).any():
        raise UserError("one number of selected people a stratum is needed, at most all of them")
    if draws is None:
        draws = TEST_DRAWS if len(table) <= _FEW_STRATA else STRATIFIED_DRAWS
    rng, totals = np.random.default_rng(seed), np.zeros((draws, table.shape[1]), np.int64)
    for row, n in zip(table, chosen, strict=True):
        there = row > 0
        if n and there.any():
            totals[:, there] += rng.multivariate_hypergeometric(row[there], n, draws, "marginals")
    return totals


def expected(people: ArrayLike, selected: ArrayLike) -> FloatArray:
    """How many of each group chance would select: Σ over strata of its share of those selected."""
    table = counts(people)
    share = np.asarray(selected, dtype=np.float64) / np.maximum(table.sum(axis=1), 1)
    return np.asarray(share @ table)


def evened(people: ArrayLike, selected: ArrayLike, missing: ArrayLike) -> IntArray:
    """Fill in the missing outcomes of one stratum so that the groups are as alike as possible.

    At a level λ each group of n people has λ·n selected, or as near to it as its missing ones let
    it come: for one number of selected people no other filling has a smaller Σx²/n. The level is
    the one with the least chi-square, (Σ(x − e)²/e)/(1 − share selected), of 401.

    Args:
        people: The number of people per group.
        selected: The number of people known to be selected per group.
        missing: The number of people per group whose outcome is missing.

    Returns:
        The filled number of people selected per group.
    """
    n, x, m = (np.asarray(column, dtype=np.float64) for column in (people, selected, missing))
    if not m.any():
        return x.astype(np.int64)
    rates = np.concatenate([x / np.maximum(n, 1), (x + m) / np.maximum(n, 1)])
    levels = np.linspace(rates.min(), rates.max(), _LEVELS)[:, None]
    ways = np.floor(np.clip(levels * n, x, x + m) + 0.5)
    share = ways.sum(axis=1, keepdims=True) / n.sum()
    varies = np.maximum(n * share * (1 - share), 1e-12)
    chi2 = ((ways - n * share) ** 2 / varies).sum(axis=1)
    return np.asarray(ways[int(chi2.argmin())], dtype=np.int64)


def people_needed(
    groups: int, rate: float, ratio: float, power: float = 0.8, *, each_alone: bool = True
) -> int:
    """Compute how many people each group needs so that a given impact ratio is detected.

    The group with the ratio is detected where its test is significant at the level of the family of
    all groups. By 2,000 draws at each size, doubled and then halved. Source: ours.

    Args:
        groups: The number of groups, all of the same size.
        rate: The selection rate of the other groups; not used without `each_alone`.
        ratio: The impact ratio to detect, below 1.
        power: The chance of detecting it.
        each_alone: Whether people are selected one by one. Else each ranking holds one person per
            group.

    Returns:
        The number of people per group; without `each_alone` the number of rankings.

    Raises:
        UserError: If an argument is outside its range, or no affordable number is enough.
    """
    if groups < 2 or not 0 < rate < 1 or not 0 < ratio < 1:
        raise UserError("a plan needs two groups or more, and a rate and a ratio between 0 and 1")
    shows = partial(_power, groups, rate, ratio, each_alone)
    target = open_share(power, "power")
    low, high = 1, 16
    while shows(high) < target:
        low, high = high, 2 * high
        if high > _MOST_PEOPLE:
            raise UserError(
                f"more than {_MOST_PEOPLE:,} in each group would be needed: plan for a ratio that "
                "is further from 1, or fewer groups"
            )
    while high - low > max(1, high // 100):  # our choice: to within a percent
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) >= target else (middle, high)
    return high


def _power(groups: int, rate: float, ratio: float, each_alone: bool, n: int) -> float:
    """How often the one group is shown to be behind, with n people in each."""
    rng, sizes = np.random.default_rng(1), np.full(groups, n)
    rates = np.full(groups, 1.0)
    rates[-1] = ratio
    if each_alone:
        selected = rng.binomial(sizes, rate * rates, (STRATIFIED_DRAWS, groups))
        total = round(float(selected.sum(axis=1).mean()))
        by_chance = Chance.dealt(n, n * (groups - 1), total)
        null_draws = dealt_anew([sizes], [total])
    else:
        selected = rng.multinomial(n, rates / rates.sum(), STRATIFIED_DRAWS)
        total, by_chance = n, Chance.drawn(n, 1 / groups)
        null_draws = np.random.default_rng(_SEED).multinomial(
            n, np.full(groups, 1 / groups), TEST_DRAWS
        )
    every = Grouped(null_draws, [by_chance] * groups, np.full(groups, total / groups))
    level = FamilyOfTests((smallest_p([every]),)).level
    below = np.cumsum(by_chance.weights())
    critical = by_chance.start + int(np.searchsorted(below, level / 2, side="right")) - 1
    behind = selected[:, -1] - selected.sum(axis=1) / groups
    return float((behind <= critical - total / groups).mean())
