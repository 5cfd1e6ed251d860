"""Shares of independent trials: wins, refusals, biased answers; and what "0 of n" still allows.

Rows of one template or scenario are not independent: for those use `clusters`.

Shares over clusters, and what clusters without spread still allow.

t around a share is too short where events are rare or clusters few, and always on the flattering
side: of 11 templates of BBQ it misses an over-abstention of 7% one time in five. These intervals
hold there too; `bench/truth.py` shows how often.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its stats are loaded when first used: that takes most of a second
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import FloatArray, added, open_share, t_quantile
from evenhand.statistics.clusters import (
    NO_ROWS,
    Interval,
    ratio_from_totals,
    sum_of_ratios_from_totals,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """`events` of `n`, with an interval for the share behind them."""

    estimate: float
    low: float
    high: float
    confidence: float
    events: int
    n: int


def wilson(events: int, n: int, confidence: float = 0.95) -> Proportion:
    """Compute the Wilson score interval of a share: near its nominal coverage.

    (p̂ + z²/2n ± z·√(p̂(1 − p̂)/n + z²/4n²)) / (1 + z²/n). Source: Wilson 1927; Brown, Cai &
    DasGupta 2001. Range: within 0 to 1.

    Args:
        events: The number of events.
        n: The number of trials.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: If n = 0.
    """
    _check(events, n)
    # The lower tail: 0.5 + confidence / 2 would round to 1, whose quantile is not finite.
    z = -float(scipy.special.ndtri((1 - open_share(confidence, "confidence")) / 2))
    share = events / n
    middle = share + z**2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = ((middle + end) / (1 + z**2 / n) for end in (-half, half))
    return Proportion(
        estimate=share,
        low=low if events else 0.0,
        high=high if events < n else 1.0,
        confidence=confidence,
        events=events,
        n=n,
    )


def clopper_pearson(events: int, n: int, confidence: float = 0.95) -> Proportion:
    """Compute the exact interval of a share: it never covers less than its confidence, often more.

    Beta quantiles B(α/2; k, n − k + 1) and B(1 − α/2; k + 1, n − k). Source: Clopper & Pearson
    1934. Range: within 0 to 1.

    Args:
        events: The number of events, k.
        n: The number of trials.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: If n = 0.
    """
    _check(events, n)
    interval = scipy.stats.binomtest(events, n).proportion_ci(open_share(confidence, "confidence"))
    return Proportion(
        estimate=events / n,
        low=float(interval.low),
        high=float(interval.high),
        confidence=confidence,
        events=events,
        n=n,
    )


def zero_event_upper(n: float, confidence: float = 0.95) -> float:
    """What share "0 of n" still allows, one-sided: the p with (1 − p)ⁿ = 1 − confidence.

    1 − (1 − confidence)^(1/n). Source: Clopper & Pearson 1934. Range: 0 to 1. Undefined: n = 0.
    """
    _check(0, n)
    return -math.expm1(math.log1p(-open_share(confidence, "confidence")) / n)


def _check(events: int, n: float) -> None:
    if not 0 <= events <= n:
        raise UserError(f"{events} of {n} is not a share")
    if n == 0:
        raise Undefined("no trials: 0/0")


Ends = tuple[float, float]


def clustered_share(totals: ArrayLike, most: float = 1.0, confidence: float = 0.95) -> Interval:
    """Compute the mean of values from 0 to `most`, with the exact binomial interval of the
    effective n.

    n* = p(1 − p)/se² · (t_{n−1}/t_{G−1})², at most n, with the clustered se; then the Beta
    quantiles of Clopper and Pearson for p·n* of n*. Where rows have weights, n and G are the
    `evenness` of that many. Without variation the ends are those of `without_spread` for as many
    clusters as count; one cluster is one of those cases. Source: Korn & Graubard 1998. Range:
    within 0 to `most`.

    Args:
        totals: One row per cluster, columns as in `ratio_from_totals`.
        most: The largest value of a row.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: Without rows.
    """
    mean = _mean(totals, confidence)
    low, high = _share_ends(_scaled(mean, most), evenness(totals))
    return replace(mean, low=most * low, high=most * high)


def evenness(totals: ArrayLike) -> float:
    """The share of the rows that would say as much if all weighed the same: Kish's effective n/n.

    (Σw)²/(n·Σw²), w the mean weight of a cluster's rows: (Σx)²/(n·Σ x_g²/n_g). Where a few heavy
    clusters decide, there are few of them, however many were drawn: with n and G as counted, the
    interval of BBQ's accuracy by records was above the truth in 6% of draws of 25 templates.
    `totals` as in `ratio_from_totals`. Source: Kish 1965, 11.7; that it counts for degrees of
    freedom too is our choice. Range: above 0 to 1, and 1 of a plain mean. Undefined: no rows.
    """
    sums: FloatArray = np.asarray(totals, dtype=np.float64).reshape(-1, 5)
    n, _, x, _, _ = sums[sums[:, 0] > 0].T
    if not n.size:
        raise Undefined(NO_ROWS)
    return float(x.sum()) ** 2 / (float(n.sum()) * float((x**2 / n).sum()))


def largest_ends(rows: ArrayLike, events: ArrayLike, missing: ArrayLike) -> Ends:
    """Compute the largest ends of `clustered_share` over all ways in which missing rows could have
    come out.

    To call each of them an event is not always the worst: it can widen the interval, or leave no
    variation. So for each number k of events among them the ends go by the smallest and the largest
    standard error that k can have: with u_g = y_g − p·n_g, Σ u_g² grows by 2·u_g + 2·j − 1 with the
    j-th event of a cluster, and on average by at most 2·u_g + m_g. Source: ours. More missing rows
    never lower an end. Range: 0 to 1.

    Args:
        rows: The number of rows of each cluster, missing ones too.
        events: The number of events of each cluster among the rows that were seen.
        missing: The number of rows of each cluster without a value.

    Raises:
        Undefined: Without rows.
    """
    n, hits, lost = (np.asarray(column, dtype=np.float64) for column in (rows, events, missing))
    total, clusters = float(n.sum()), len(n)
    if not total:
        raise Undefined(NO_ROWS)
    of = np.repeat(np.arange(clusters), lost.astype(np.int64))  # the cluster of each missing row
    start = np.repeat(np.cumsum(lost) - lost, lost.astype(np.int64))
    number = np.arange(len(of)) - start + 1
    low = high = 0.0
    for k in range(len(of) + 1):
        p = (float(hits.sum()) + k) / total
        apart = hits - p * n
        now = float(apart @ apart)
        by_one = np.sort(2 * apart[of] + 2 * number - 1)[:k]
        at_most = np.sort((2 * apart + lost)[of])[len(of) - k :]
        least, largest = (now + float(more.sum()) for more in (by_one, at_most))
        # Cluster sums are whole numbers, so that less than 1/total² is rounding.
        for squares in {least, max(least, total**-2), largest}:
            spread = squares if squares * total**2 > 0.5 and clusters > 1 else 0.0
            se = math.sqrt(clusters / max(clusters - 1, 1) * spread) / total
            ends = _share_ends(
                Interval(estimate=p, low=p, high=p, confidence=0.95, se=se, df=clusters - 1,
                         p_two_sided=None, n=int(total), clusters=clusters)
            )  # fmt: skip
            low, high = max(low, ends[0]), max(high, ends[1])
    return low, high


def clustered_balance(totals: ArrayLike, most: float = 1.0, confidence: float = 0.95) -> Interval:
    """Compute the mean of values from −`most` to `most`: the share of what is above 0 minus that
    below.

    With both shares and their ends by `clustered_share` and ρ the correlation of their errors, low
    = d − √((p₁ − l₁)² − 2ρ(p₁ − l₁)(u₂ − p₂) + (u₂ − p₂)²), and high the other way round. Source:
    Zou & Donner 2008 (the square-and-add of Newcombe 1998). Range: within ±`most`. Without
    variation: as in `clustered_share`.

    Args:
        totals: One row per cluster, columns as in `ratio_from_totals`.
        most: The largest value of a row.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: Without rows.
    """
    mean = _mean(totals, confidence)
    if mean.no_spread:
        counted = _counted(mean, evenness(totals))
        low, high = without_spread(mean.estimate, counted, (-most, most), confidence)
        return replace(mean, low=low, high=high)
    n, y, x, size, size_x = np.asarray(totals, dtype=np.float64).reshape(-1, 5).T
    sides = [
        np.column_stack([n, side, x, side, size_x]) for side in ((size + y) / 2, (size - y) / 2)
    ]
    up, down = (_scaled(_mean(side, confidence), most) for side in sides)
    se = mean.se / most
    both = 2 * up.se * down.se
    rho = (up.se**2 + down.se**2 - se**2) / both if both else 0.0
    even = evenness(totals)
    (low_up, high_up), (low_down, high_down) = _share_ends(up, even), _share_ends(down, even)
    value = up.estimate - down.estimate
    low = value - added(up.estimate - low_up, high_down - down.estimate, rho)
    high = value + added(high_up - up.estimate, down.estimate - low_down, rho)
    return replace(mean, low=most * max(-1.0, low), high=most * min(1.0, high))


def sum_of_shares(
    parts: Sequence[tuple[float, ArrayLike]], n: int, shift: float = 0.0, confidence: float = 0.95
) -> Interval:
    """Compute shift + Σ weight · share over the same clusters: a share by strata, or one minus
    another.

    Each share has the ends of `clustered_share`, and the distances to them are joined as in
    `clustered_balance`: √(Σ_k Σ_l ρ·d_k·d_l), one ρ standing for all pairs, from the standard error
    of the sum. Source: Zou & Donner 2008. Range: any. Without variation: t, a point.

    Args:
        parts: The weight and the totals of each share, columns as in `ratio_from_totals`.
        n: The number of rows to report.
        shift: A constant to add.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: If `clusters.sum_of_ratios_from_totals` is.
    """
    total = sum_of_ratios_from_totals(parts, n, shift, confidence)
    if total.no_spread:
        return total
    each = [(weight, _mean(totals, confidence)) for weight, totals in parts]
    even = [evenness(totals) for _, totals in parts]
    errors = np.array([weight * mean.se for weight, mean in each])
    apart = float(errors.sum() ** 2 - errors @ errors)
    rho = (total.se**2 - float(errors @ errors)) / apart if apart else 0.0
    rho = min(1.0, max(-1.0, rho))
    ends = [
        sorted(weight * end for end in _share_ends(mean, part))
        for (weight, mean), part in zip(each, even, strict=True)
    ]
    values = [weight * mean.estimate for weight, mean in each]
    down = np.array([value - low for value, (low, _) in zip(values, ends, strict=True)])
    up = np.array([high - value for value, (_, high) in zip(values, ends, strict=True)])
    sides = np.sign([weight for weight, _ in each])
    reach = [
        math.sqrt(max(float(d @ d + rho * ((sides * d).sum() ** 2 - d @ d)), 0.0))
        for d in (down, up)
    ]
    return replace(total, low=total.estimate - reach[0], high=total.estimate + reach[1])


def without_spread(
    value: float, clusters: float, within: Sequence[float], confidence: float = 0.95
) -> Ends:
    """Compute the interval that clusters with one and the same value still allow: a share z of
    others that were not drawn may each have the smallest or the largest possible value.

    z = 1 − ((1 − confidence)/2)^(1/G): value − z·(value − least) to value + z·(largest − value).
    Source: `zero_event_upper`; for a share of 0 or 1 it is the interval of Clopper & Pearson.

    Args:
        value: The value of every cluster.
        clusters: The number of clusters, G; a fraction where clusters have weights.
        within: The smallest and the largest possible value.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: If the smallest or the largest possible value is infinite.
    """
    least, largest = within
    if not (math.isfinite(least) and math.isfinite(largest)):
        raise Undefined("no spread, and no largest value that bounds what was not drawn")
    unseen = zero_event_upper(clusters, (1 + open_share(confidence, "confidence")) / 2)
    return value - unseen * (value - least), value + unseen * (largest - value)


def _mean(totals: ArrayLike, confidence: float) -> Interval:
    """The mean with its t interval, its degrees of freedom those of the clusters that count: with
    weights fewer than there are, and at least 1. One cluster has a mean too, and no spread."""
    sums: FloatArray = np.asarray(totals, dtype=np.float64).reshape(-1, 5)
    sums = sums[sums[:, 0] > 0]
    if not len(sums):
        raise Undefined(NO_ROWS)
    if len(sums) > 1:
        interval = ratio_from_totals(sums, confidence)
        return interval.with_df(max(1.0, _counted(interval, evenness(sums)) - 1))
    n, y, x, _, _ = sums[0].tolist()
    return Interval(estimate=y / x, low=y / x, high=y / x, confidence=confidence, se=0.0, df=0,
                    p_two_sided=None, n=int(n), clusters=1)  # fmt: skip


def _counted(interval: Interval, even: float) -> float:
    """The number of clusters that count: one that was drawn always does."""
    return max(1.0, even * interval.clusters)


def _scaled(interval: Interval, most: float) -> Interval:
    return replace(interval, estimate=interval.estimate / most, se=interval.se / most)


def _share_ends(interval: Interval, even: float = 1.0) -> Ends:
    """The ends of Korn and Graubard, of a share between 0 and 1 and rows of this evenness."""
    p, beyond = interval.estimate, (1 - interval.confidence) / 2
    if interval.no_spread:
        return without_spread(p, _counted(interval, even), (0.0, 1.0), interval.confidence)
    rows = even * interval.n
    by_rows, by_clusters = (t_quantile(df, 1 - beyond) for df in (max(rows - 1, 1), interval.df))
    n = min(p * (1 - p) / interval.se**2 * (by_rows / by_clusters) ** 2, rows)
    low = scipy.special.betaincinv(p * n, n - p * n + 1, beyond) if p > 0 else 0.0
    high = scipy.special.betaincinv(p * n + 1, n - p * n, 1 - beyond) if p < 1 else 1.0
    return float(low), float(high)
