"""The intervals that were recorded: t around shares too, and resampling where it is now a region.

An end of an interval does not tell what it was by another formula, so the findings are computed
with the formulas of then.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.errors import Undefined
from evenhand.findings import changes, defended, totals
from evenhand.metrics import scorer_quality
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.clusters import Interval, ratio_from_totals
from evenhand.statistics.proportions import wilson
from evenhand.statistics.shares import clustered_share


@contextmanager
def as_recorded(instrument: str) -> Iterator[None]:
    """Compute with t around shares; those of over-correction alone were never narrower than
    Wilson's, and a change of theirs was cut at 1."""
    wilsons = instrument == "overcorrection"
    most = 1.0 if wilsons else math.inf
    swapped = {
        (totals, "clustered_share"): _wilson_or_t if wilsons else _t,
        (totals, "clustered_balance"): _t,
        (defended, "with_ends"): lambda found, *_: found,
        (changes, "clustered_balance"): _t,
        (changes, "_reach"): lambda _: (-most, most),
        (totals, "of_means"): _resampled,
        (changes, "of_means"): _resampled,
        (scorer_quality, "clustered_share"): _of_audits,
        (totals, "LEAST"): 0,
        (changes, "LEAST"): 0,
    }
    now = {(room, name): getattr(room, name) for room, name in swapped}
    _set(swapped)
    try:
        yield
    finally:
        _set(now)


def _set(values: dict[tuple[Any, str], Any]) -> None:
    for (room, name), value in values.items():
        setattr(room, name, value)


def _t(table: np.ndarray, most: float = 1.0) -> Interval:
    del most
    return ratio_from_totals(table)


def _wilson_or_t(table: np.ndarray, most: float = 1.0) -> Interval:
    n, events = (round(float(table[:, place].sum())) for place in (0, 1))
    if not n:
        raise Undefined("no rows: 0/0")
    trials = wilson(events, n)
    try:
        found = ratio_from_totals(table)
    except Undefined:
        found = replace(clustered_share(table, most), low=trials.low, high=trials.high)
    # A se of 0 would be read as no spread, which such a share did not say of itself.
    return replace(found, low=min(found.low, trials.low), high=max(found.high, trials.high),
                   se=found.se or 1e-300)  # fmt: skip


def _of_audits(table: np.ndarray) -> Interval:
    """In audits it was t, cut at 0 and 1, or Wilson's with clusters as trials without spread."""
    found = clustered_share(table)
    if not found.no_spread:
        t = ratio_from_totals(table)
        return replace(t, low=max(0.0, t.low), high=min(1.0, t.high))
    trials = wilson(round(found.estimate * found.clusters), found.clusters)
    low, high = min(trials.low, found.estimate), max(trials.high, found.estimate)
    return replace(found, low=low, high=high)


def _resampled(rows: np.ndarray, value: Callable[[np.ndarray], np.ndarray]) -> Interval:
    """Percentiles of the means of resampled clusters."""

    def of_totals(sums: np.ndarray) -> np.ndarray:
        return value(sums[:, :-1] / sums[:, -1:])

    table = np.column_stack([rows, np.ones(len(rows))])
    drawn = cluster_bootstrap(table, of_totals, kind="percentile")
    return Interval(estimate=drawn.estimate, low=drawn.low, high=drawn.high, confidence=0.95,
                    se=drawn.se, df=len(rows) - 1, p_two_sided=None, n=len(rows),
                    clusters=drawn.clusters)  # fmt: skip
