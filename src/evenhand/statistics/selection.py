"""Who is selected how often: rates by group, each as a ratio to the best group's.

The best group is the one that came out best, so a ratio to it is below 1 without any bias, and
resampling the counts misses the truth nearly always where the groups are alike. Here the best is
chosen anew in every draw, and an interval holds the ratios under which the one that was seen is
not unusual. Draws are multinomial where one of several wins each time, as in a ranking; binomial
by group where everybody is decided on alone (`decided.py` has what chance does there).
"""

from collections.abc import Callable

import numpy as np
import scipy  # its parts are loaded when first used
from numpy.typing import ArrayLike

from evenhand.errors import Undefined, UserError
from evenhand.statistics._shared import FloatArray, IntArray, open_share

DRAWS = 2000  # our choice: a share of 2.5 % is then known to within 0.7 points
TEST_DRAWS = 10_000  # our choice: the least p-value is 1 in 10,001
_STEPS = 12  # halvings of the range from 0 to 1: ends are found to within 0.0003
_ROUNDING = 1e-9
_SEED = 0


def impact_ratios(selected: ArrayLike, candidates: ArrayLike) -> FloatArray:
    """Each group's rate over that of the group with the highest: x_g/c_g / max x_h/c_h.

    Source: 6 RCNY 5-301 (New York City), "impact ratio". Range: 0 to 1. Undefined: nobody was
    selected.
    """
    x, c = _groups(selected, candidates)
    return np.asarray(_ratios(x[None, :], c)[0])


def uneven_p(selected: ArrayLike, expected: ArrayLike, seed: int = _SEED) -> float:
    """The p-value of a chi-square test that every group is selected as often as expected.

    χ² = Σ(x_g − e_g)²/e_g against that of 10,000 multinomial draws from e; (1 + as large)/10,001.
    Source: Pearson 1900; Barnard 1963. Range: 0 to 1. Undefined: nobody was selected.
    """
    x, e = _groups(selected, expected)
    drawn = np.random.default_rng(seed).multinomial(int(x.sum()), e / e.sum(), TEST_DRAWS)
    return p_among(x, e * x.sum() / e.sum(), drawn)


def p_among(selected: ArrayLike, expected: ArrayLike, drawn: ArrayLike) -> float:
    """The p-value of Σ(x_g − e_g)²/e_g among draws by chance: (1 + as large)/(1 + draws).

    Source: Barnard 1963. Range: above 0 to 1. Undefined: nobody was selected.
    """
    x, e = _groups(selected, expected)
    chi2 = ((np.vstack([x, np.asarray(drawn)]) - e) ** 2 / e).sum(axis=1)
    return float((1 + (chi2[1:] >= chi2[0] - _ROUNDING).sum()) / len(chi2))


def smallest_by_chance(
    n: int, expected: ArrayLike, candidates: ArrayLike, share: float = 0.05, seed: int = _SEED
) -> float:
    """The smallest ratio below which chance alone gets in `share` of all audits of this size.

    The `smallest_among` of 10,000 draws of n selections by the expected shares. Range: 0 to 1.
    """
    e, c = _groups(expected, candidates)
    drawn = np.random.default_rng(seed).multinomial(n, e / e.sum(), TEST_DRAWS)
    return smallest_among(drawn, c, share)


def smallest_among(drawn: ArrayLike, candidates: ArrayLike, share: float = 0.05) -> float:
    """The quantile of min_g(ratio) over draws by chance, one a row.

    Two standard errors of a quantile of so many draws are taken off, so that it is not above by
    luck. Our choice: one number for all groups, so that an audit without bias finds any of them
    below it in at most `share` of cases. Range: 0 to 1.
    """
    made, c = np.asarray(drawn), np.asarray(candidates, dtype=np.float64)
    smallest = _ratios(made, c).min(axis=1)
    sure = share - 2 * (open_share(share, "share") * (1 - share) / len(made)) ** 0.5
    return float(np.quantile(smallest, max(0.0, sure), method="lower"))


def ratio_interval(
    selected: ArrayLike,
    candidates: ArrayLike,
    group: int | None = None,
    confidence: float = 0.95,
    seed: int = _SEED,
    *,
    each_alone: bool = False,
) -> tuple[float, float]:
    """The interval of one group's true ratio to the truly best, or of the smallest of all ratios.

    It holds each ratio under which the one that was seen, or one beyond it on either side, comes
    in (1 − confidence)/2 of 2,000 draws; in each of them the best, and without `group` the worst,
    is chosen anew. The other groups' rates are pulled towards their mean, as far as chance may
    have spread them: by d/χ², where d is their number less 1 for the lower end and chi-square's
    95 % point for the upper one, which the best of many alike ones moves most. Without `group` the
    upper end is also sought with the best as far ahead as it was seen and the others alone pulled
    together, and the higher one counts: the smallest of many that are alike and behind is lower
    than one group's would be. Our choice: groups that come out more alike than in half of all
    audits without bias get the interval of that half. With `each_alone` a draw is binomial in each
    group, of whole numbers of people, at rates that select as many in all as there were; without,
    one of several wins each time. Source: test inversion, Carpenter 1999; James & Stein 1961.
    Coverage: 92 % (one group far behind many alike ones) to 99 % (`bench/simulated/selections.py`,
    `bench/simulated/audits.py`). Range: within 0 to 1. Undefined: nobody was selected.
    """
    x, c = _groups(selected, candidates)
    place = int((x / c).argmin()) if group is None else group
    seen = float(_of_interest(x[None, :], c, group)[0])
    if each_alone and not np.isfinite(seen):  # nobody of the others: their rate says nothing
        return 0.0, 1.0
    tail = (1 - open_share(confidence, "confidence")) / 2
    rest = np.delete(x, place), np.delete(c, place)
    by_chance = len(rest[0]) - 1.0
    # A group that leads may do so by chance: it is the best of so many, and those behind it stay.
    leads = group is not None and seen > 1
    by_low, low_tail = (0.0, tail / len(x)) if leads else (by_chance, tail)
    for_low = _pulled(*rest, by_low, each_alone)
    for_high = [_pulled(*rest, _most_by_chance(len(rest[0])), each_alone)]
    if group is None and len(rest[0]) > 1:
        for_high.append(_one_ahead(*rest, each_alone))

    def drawn(ratio: float, others: FloatArray) -> FloatArray:
        best = float(others.max())
        rates = np.insert(others, place, ratio * best)
        if group is None:
            rates = np.maximum(rates, ratio * best)
        made = _draws(rates, c, int(x.sum()), each_alone, seed)
        return _of_interest(made, c, group)

    def too_low(ratio: float) -> bool:  # what was seen is hardly ever reached from there
        return bool((drawn(ratio, for_low) >= seen - _ROUNDING).mean() < low_tail)

    def too_high(ratio: float) -> bool:
        below = (drawn(ratio, others) <= seen + _ROUNDING for others in for_high)
        return all(bool(each.mean() < tail) for each in below)

    if group is None:  # an audit with more luck than most has no shorter interval for it
        seen = min(seen, float(np.median(drawn(1.0, for_low))))
    low = _turn(too_low) if seen > 0 else 0.0
    high = 1.0 if not too_high(1.0) else _turn(lambda ratio: not too_high(ratio))
    return min(low, high), high


def levelled(selected: ArrayLike, expected: ArrayLike, missing: int) -> IntArray:
    """The counts with as many more selections, each to the group where it adds least to chi-square:
    (x + 1)²/e − x²/e is least where (x + ½)/e is. No other way to fill in the missing ones has a
    smaller chi-square, since each group's part of it is convex."""
    x, e = _groups(selected, expected)
    for _ in range(missing):
        x[int(((x + 0.5) / e).argmin())] += 1
    return x.astype(np.int64)


def _groups(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, c = (np.asarray(one, dtype=np.float64) for one in (first, second))
    if x.ndim != 1 or x.shape != c.shape or len(x) < 2 or not ((x >= 0) & (c > 0)).all():
        raise UserError("two groups or more are needed, each with candidates and a count from 0")
    if not x.sum():
        raise Undefined("nobody was selected")
    return x, c


def _ratios(selected: ArrayLike, candidates: FloatArray) -> FloatArray:
    """Of each draw; where it selects nobody, nobody is behind."""
    rates = np.asarray(selected, dtype=np.float64) / candidates
    best = rates.max(axis=1, keepdims=True)
    return np.asarray(np.divide(rates, best, out=np.ones_like(rates), where=best > 0))


def _of_interest(made: ArrayLike, c: FloatArray, group: int | None) -> FloatArray:
    """The smallest ratio, or the group's to the best of the others: above 1 if it leads, and 1
    where nobody does."""
    if group is None:
        return np.asarray(_ratios(made, c).min(axis=1))
    rates = np.asarray(made, dtype=np.float64) / c
    with np.errstate(divide="ignore", invalid="ignore"):
        found = rates[:, group] / np.delete(rates, group, axis=1).max(axis=1)
    return np.asarray(np.nan_to_num(found, nan=1.0, posinf=np.inf))


def _draws(rates: FloatArray, c: FloatArray, n: int, each_alone: bool, seed: int) -> IntArray:
    """Selections drawn by these rates: n of them in all, or of each group for itself, n on average,
    so that a rate of 1 that was seen is not taken for certain."""
    rng = np.random.default_rng(seed)
    if each_alone:
        level = min(n / float(rates @ c), 1 / float(rates.max()))
        return rng.binomial(c.astype(np.int64), np.minimum(level * rates, 1.0), (DRAWS, len(c)))
    return rng.multinomial(n, rates * c / (rates * c).sum(), DRAWS)


def _pulled(x: FloatArray, c: FloatArray, by_chance: float, each_alone: bool) -> FloatArray:
    """The rates with as much of their spread taken away as chance may have made."""
    mean = max(float(x.sum() / c.sum()), _ROUNDING)
    varies = max(1 - mean, _ROUNDING) if each_alone else 1.0
    chi2 = float(((x - mean * c) ** 2 / (mean * c * varies)).sum())
    kept = 1 - by_chance / chi2 if len(x) > 1 and chi2 > by_chance else 0.0
    return np.maximum(mean + kept * (x / c - mean), _ROUNDING)  # shares of nothing are no shares


def _one_ahead(x: FloatArray, c: FloatArray, each_alone: bool) -> FloatArray:
    """The rates with the highest as it was seen, and the others pulled together."""
    best = int((x / c).argmax())
    behind = np.delete(x, best), np.delete(c, best)
    others = _pulled(*behind, _most_by_chance(len(behind[0])), each_alone)
    return np.insert(others, best, x[best] / c[best])


def _most_by_chance(groups: int) -> float:
    """The chi-square that so many alike groups stay below in 95 % of draws."""
    return float(scipy.special.chdtri(max(groups - 1, 1), 0.05))


def _turn(below: Callable[[float], bool]) -> float:
    """Where `below` turns from true to false on the way from 0 to 1."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2
