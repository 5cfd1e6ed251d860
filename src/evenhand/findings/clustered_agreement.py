"""An estimate over clusters, with an interval or in words why there is none."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np

from evenhand.core.errors import Undefined
from evenhand.findings.estimates import Estimate
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.agreement import (
    JackknifeInterval,
    jackknife_agreement,
    jackknife_difference,
)
from evenhand.statistics.bootstrap import LEAST, Statistic, of_all
from evenhand.statistics.clusters import cluster_sums, clustered_mean

# With fewer clusters there is a value and no interval: as few as resampling asks for elsewhere.
TOO_FEW = f"open: an interval needs {LEAST} items"
_NO_SPREAD = "open: without one item, or with all, there is no disagreement"
Sums = Callable[[], tuple[FloatArray, Statistic]]


def agreement_over(name: str, compute: Sums, clusters: Sequence[Hashable]) -> Estimate:
    """Estimate an agreement from sums. `clusters` has the cluster of each of their rows; a row of
    nothing but 0 says nothing and is not counted."""
    try:
        sums, statistic = compute()
        marked = (sums != 0).any(axis=1)
        marked_clusters = [
            cluster for cluster, has_marks in zip(clusters, marked, strict=True) if has_marks
        ]
        if not marked_clusters:
            raise Undefined("no marks")
        table = cluster_sums(marked_clusters, *sums[marked].T)
        value = of_all(table, statistic)
    except Undefined as reason:
        return Estimate(name=name, value=None, undefined=str(reason))
    estimate = Estimate(
        name=name, value=value, n=int(np.count_nonzero(marked)), clusters=len(table)
    )
    return _with_ends(estimate, lambda: jackknife_agreement(table, statistic))


def difference_over(
    name: str,
    first: FloatArray,
    second: FloatArray,
    statistic: Statistic,
    clusters: Sequence[Hashable],
) -> Estimate:
    """Estimate one agreement minus another, from the sums of both over the same rows."""
    marked = (first != 0).any(axis=1) | (second != 0).any(axis=1)
    marked_clusters = [
        cluster for cluster, has_marks in zip(clusters, marked, strict=True) if has_marks
    ]
    try:
        first_sums, second_sums = (
            cluster_sums(marked_clusters, *sums[marked].T) for sums in (first, second)
        )
        value = of_all(first_sums, statistic) - of_all(second_sums, statistic)
    except Undefined as reason:
        return Estimate(name=name, value=None, undefined=str(reason))
    estimate = Estimate(
        name=name, value=value, n=int(np.count_nonzero(marked)), clusters=len(first_sums)
    )
    return _with_ends(estimate, lambda: jackknife_difference(first_sums, second_sums, statistic))


def _with_ends(estimate: Estimate, compute: Callable[[], JackknifeInterval]) -> Estimate:
    """Add the interval, or why there is none."""
    if estimate.clusters < LEAST:
        return replace(estimate, undefined=TOO_FEW)
    try:
        ends = compute()
    except Undefined:
        return replace(estimate, undefined=_NO_SPREAD)
    return replace(estimate, low=ends.low, high=ends.high)


def mean_over(
    name: str, values: FloatArray, clusters: Sequence[Hashable], within: tuple[float, float]
) -> Estimate:
    """Estimate a mean over clusters by t; one cluster has a mean and no interval."""
    estimate = Estimate.of(name, lambda: clustered_mean(values, clusters), within)
    if estimate.value is not None or not values.size:
        return estimate
    return replace(estimate, value=float(values.mean()), n=values.size, clusters=len(set(clusters)))
