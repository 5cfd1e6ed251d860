"""A change is defended against the missing answers of both runs: what they could change, and what
may be claimed all the same."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from evenhand.findings import filled
from evenhand.findings.defended import filled_values
from evenhand.findings.filled import Filled, FilledPair
from evenhand.findings.found import Bounds, Change, Evidence
from evenhand.findings.measures import Mean, Measure, Share
from evenhand.findings.rows import cluster_values, missing_of

AFTER = ":after"
_SIDES = ("", AFTER)


def fill_sums(measure: Measure) -> list[pl.Expr]:
    """Sum a cluster's pairs with the missing answers of each run at their smallest and largest. A
    pair counts if each of its two answers is known or missing."""
    name = measure.name
    lost = [pl.col(f"{missing_of(measure)}{side}") for side in _SIDES]
    if not isinstance(measure.statistic, Mean | Share):
        return [(lost[0] | lost[1]).sum().cast(pl.Float64).alias(f"{name}:m")]
    values = [pl.col(f"{name}.value{side}") for side in _SIDES]
    counts = [value.is_not_null() | gone for value, gone in zip(values, lost, strict=True)]
    counted = counts[0] & counts[1]
    sums = {"rows": counted.sum(), "m": (counted & (lost[0] | lost[1])).sum()}
    for side, value, gone in zip(_SIDES, values, lost, strict=True):
        sums[f"known{side}"] = pl.when(counted & ~gone).then(value).sum()
        sums[f"lost{side}"] = (counted & gone).sum()
    return [expr.cast(pl.Float64).alias(f"{name}:{part}") for part, expr in sums.items()]


def filled_pair(measure: Measure, frame: pl.DataFrame, cluster: str) -> FilledPair | None:
    """Give both runs' sums per cluster, filled both ways; None of a number that is no mean."""
    if not isinstance(measure.statistic, Mean | Share):
        return None
    parts = ["rows", "m", *(f"{part}{side}" for side in _SIDES for part in ("known", "lost")), "y"]
    names = [f"{measure.name}:{part}" for part in parts]
    table = frame.group_by(cluster).agg(pl.col(names).sum()).sort(cluster).select(names).to_numpy()
    rows, m, old, old_lost, new, new_lost, difference = table[table[:, 0] > 0].T
    before = Filled.of(measure, old, rows - old_lost, old_lost)
    after = Filled.of(measure, new, rows - new_lost, new_lost)
    return FilledPair(before, after, m, difference)


def filled_pair_of_clusters(measure: Measure, rows: pl.DataFrame) -> FilledPair | None:
    """The same of a number that is made of the clusters' own numbers, from their rows."""
    lost = [pl.col(f"{missing_of(measure)}{side}") for side in _SIDES]
    values = [pl.col(f"{measure.name}.value{side}") for side in _SIDES]
    counts = [value.is_not_null() | gone for value, gone in zip(values, lost, strict=True)]
    rows = rows.filter(*counts)
    touched = rows.group_by("cluster").agg((lost[0] | lost[1]).any().cast(pl.Float64).alias("m"))
    m = touched.sort("cluster")["m"].to_numpy()
    if m.any() and not measure.bounded:
        return None
    old, new = (filled_values(measure, rows, side) for side in _SIDES)
    known = rows.filter(~lost[0] & ~lost[1])
    sides = [
        cluster_values(measure, known.select("cluster", value.alias(f"{measure.name}.value")))
        for value in values
    ]
    both = sides[0].join(sides[1], on="cluster", suffix=AFTER).sort("cluster")
    difference = both.select(pl.col(f"value{AFTER}") - pl.col("value")).to_series().to_numpy()
    clusters = touched.sort("cluster")["cluster"].to_list()
    placed = np.zeros(len(clusters))
    placed[np.isin(clusters, both["cluster"].to_list())] = difference
    return FilledPair(old, new, m, placed)


def defended_change(
    change: Change,
    measure: Measure,
    ways: Sequence[FilledPair | None],
    *,
    missing: int,
    matters: float,
) -> Change:
    """Add p-value, bounds and evidence to a change. Of several ways to cluster the largest p-value
    counts."""
    known = [one for one in ways if one is not None and len(one.missing)]
    if not known:
        return replace(change, bounds=Bounds(missing=missing) if missing else None)
    found = [one for pair in known if (one := filled.evidence(measure, pair, matters)) is not None]
    return replace(
        change,
        p=None
        if change.difference is None
        else max(filled.p_of_difference(pair) for pair in known),
        bounds=filled.bounds_of_change(measure, known[0]),
        evidence=_largest(found) if len(found) == len(known) else None,
    )


def _largest(found: Sequence[Evidence]) -> Evidence:
    kept, little = ([getattr(one, name) for one in found] for name in ("kept", "little"))
    return Evidence(
        better=max(one.better for one in found),
        worse=max(one.worse for one in found),
        kept=None if None in kept else max(kept),
        little=None if None in little else max(little),
    )
