"""People who are decided on one by one: what chance alone does to each group's selections.

Without bias an outcome says nothing of the group. So the outcomes that there were may be dealt out
anew among the people, and every dealing is as likely: a permutation test, exact at any size.
Tables here have one row a stratum (a requisition, a month), within which people are dealt anew, and
one column a group; people who are not told apart by strata are one row.
"""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import UserError
from evenhand.statistics._shared import FloatArray, IntArray, counts, open_share
from evenhand.statistics.selection import TEST_DRAWS, Chance, Family, Grouped, smallest_p

STRATIFIED_DRAWS = 2000  # our choice: strata are drawn one by one, and there may be thousands
_FEW_STRATA = 8  # our choice: up to so many take all draws
_LEVELS = 401  # our choice: the level is known to a quarter of a percent of the range
_SEED = 0
_MOST_PEOPLE = 10_000_000  # of a plan, in each group: our choice, more than any audit has


def dealt_anew(
    people: ArrayLike, selected: ArrayLike, seed: int = _SEED, draws: int | None = None
) -> IntArray:
    """How many each group has selected if the outcomes are dealt anew within each stratum.

    `selected` has one number a stratum. Multivariate hypergeometric, 10,000 draws, or 2,000 where
    there are more than eight strata; one draw a row. Source: Fisher 1935.
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
    """The selections of one stratum with the missing outcomes filled in so that the groups are as
    alike as can be.

    At a level λ each group of n people has λ·n selected, or as near to it as its missing ones let
    it come: for one number of selected people no other filling has a smaller Σx²/n. The level is
    the one with the least chi-square, (Σ(x − e)²/e)/(1 − share selected), of 401.
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
    """People in each of so many equal groups, so that one with this ratio is shown with `power`.

    The others are selected at `rate`, the one at ratio·rate, and it is shown where its test is, at
    the level of the family of all groups. Without `each_alone` one of each group stands in a
    ranking, and the number is that of rankings; `rate` is then not used. By 2,000 draws at each
    size, doubled and then halved. Source: ours.
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
    level = Family((smallest_p([every]),)).level
    below = np.cumsum(by_chance.weights())
    critical = by_chance.start + int(np.searchsorted(below, level / 2, side="right")) - 1
    behind = selected[:, -1] - selected.sum(axis=1) / groups
    return float((behind <= critical - total / groups).mean())
