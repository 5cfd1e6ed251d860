"""An estimate over clusters, by resampling them or by t, or in words why there is none."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np

from evenhand.errors import Undefined
from evenhand.findings.found import NO_SPREAD, Estimate
from evenhand.findings.totals import TOO_FEW
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.bootstrap import LEAST, Statistic, cluster_bootstrap, of_all
from evenhand.statistics.clusters import cluster_sums, clustered_mean

Sums = Callable[[], tuple[FloatArray, Statistic]]


def resampled(name: str, compute: Sums, clusters: Sequence[Hashable]) -> Estimate:
    """Estimate a statistic of sums. `clusters` has the cluster of each of their rows; a row of
    nothing but 0 says nothing and is not counted. Below 15 clusters there is a value and no
    interval, and none either where some resample has no value."""
    try:
        sums, statistic = compute()
        says = (sums != 0).any(axis=1)
        kept = [cluster for cluster, one in zip(clusters, says, strict=True) if one]
        if not kept:
            raise Undefined("no marks")
        table = cluster_sums(kept, *sums[says].T)
        value = of_all(table, statistic)
    except Undefined as reason:
        return Estimate(name=name, value=None, undefined=str(reason))
    low, high, undefined = _ends(table, statistic)
    return Estimate(
        name=name,
        value=value,
        low=low,
        high=high,
        n=int(np.count_nonzero(says)),
        clusters=len(table),
        undefined=undefined,
    )


def _ends(table: FloatArray, statistic: Statistic) -> tuple[float | None, float | None, str | None]:
    if len(table) < LEAST:
        return None, None, TOO_FEW
    try:
        drawn = cluster_bootstrap(table, statistic, kind="percentile")
    except Undefined as reason:
        return None, None, str(reason)
    return (None, None, NO_SPREAD) if drawn.no_spread else (drawn.low, drawn.high, None)


def mean_over(
    name: str, values: FloatArray, clusters: Sequence[Hashable], within: tuple[float, float]
) -> Estimate:
    """Estimate a mean over clusters by t; one cluster has a mean and no interval."""
    found = Estimate.of(name, lambda: clustered_mean(values, clusters), within)
    if found.value is not None or not values.size:
        return found
    return replace(found, value=float(values.mean()), n=values.size, clusters=len(set(clusters)))
