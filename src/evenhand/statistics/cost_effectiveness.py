"""What a remedy costs for what it prevents: the Pareto front, and the price of one harm less."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import finite, same_length
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.clusters import cluster_sums, clustered_mean


def dominates(first: Sequence[float], second: Sequence[float]) -> bool:
    """At least as good in everything and better in something; smaller is better."""
    return all(a <= b for a, b in zip(first, second, strict=True)) and any(
        a < b for a, b in zip(first, second, strict=True)
    )


def front(points: Sequence[Sequence[float]]) -> tuple[int, ...]:
    """The places, in the order given, of the points that no other one dominates.

    Every coordinate is to be small: negate what is to be large. Equal points stay or go together.
    Source: Pareto 1906. Always defined; of no points it is empty. A coordinate that is not a number
    compares with nothing, so it is refused.
    """
    if any(math.isnan(value) for point in points for value in point):
        raise UserError("a point with a coordinate that is not a number has no place in a front")
    return tuple(
        index
        for index, point in enumerate(points)
        if not any(dominates(other, point) for other in points)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPerPrevented:
    estimate: float
    low: float
    high: float
    n: int
    clusters: int
    draws: int


def cost_per_prevented(
    extra: ArrayLike,
    prevented: ArrayLike,
    clusters: Iterable[Hashable],
    *,
    seed: int = 0,
    draws: int = 10_000,
) -> CostPerPrevented:
    """Σextra / Σprevented over paired items, with a 95 % percentile interval over whole clusters.

    `extra` is what an item costs more than before; `prevented` is 1 where a harm is gone, −1 where
    there is a new one, else 0. What is resampled is prevented per cost, and the ends are then
    turned over: both have the same percentiles, but a draw that prevents nothing is a 0 there and
    not a division by it. Source: O'Brien & Briggs 2002 (cost-effectiveness). Range: above 0.
    Undefined, in this order: none prevented; an interval of the prevented that reaches 0, since
    the ratio then has no upper end; an interval of the extra cost that does, since then nothing is
    paid for what is prevented.
    """
    costs, gains = finite(extra, "extra costs"), finite(prevented, "prevented harms")
    same_length(costs, gains, "extra costs and prevented harms")
    keys = list(clusters)
    if not gains.sum() > 0:
        raise Undefined("none prevented")
    if not clustered_mean(gains, keys).low > 0:
        raise Undefined("not shown to prevent any")
    if not clustered_mean(costs, keys).low > 0:
        raise Undefined("no extra cost shown")
    sums = cluster_sums(keys, gains, costs)
    resampled = cluster_bootstrap(sums, seed=seed, draws=draws, kind="percentile")
    if not resampled.low > 0:
        raise Undefined("not shown to prevent any")
    return CostPerPrevented(
        estimate=1 / resampled.estimate,
        low=1 / resampled.high,
        high=1 / resampled.low,
        n=gains.size,
        clusters=len(sums),
        draws=draws,
    )
