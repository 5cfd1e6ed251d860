"""The dependability of a measure says which share of its variance over runs belongs to the object
that it should tell apart: the item, or the system."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import prod

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.scoring import SCORED, ScoringSpec, row_values
from evenhand.statistics._shared import ROUNDING, FloatArray
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.proportions import zero_event_upper

ITEM = "item"


Effect = tuple[str, ...]  # a facet alone, or those that interact, in the order of the design


@dataclass(frozen=True, slots=True)
class CrossedDesign:
    """A fully crossed design says which level of each facet every run has, runs in any order."""

    levels: Mapping[str, tuple[Hashable, ...]]  # facet -> the level of each run

    @classmethod
    def of(cls, levels: Mapping[str, Sequence[Hashable]]) -> "CrossedDesign":
        """Keep the facets that vary; refuse runs that are not fully crossed in them."""
        varied = {f: tuple(column) for f, column in levels.items() if len(set(column)) > 1}
        design = cls(varied)
        runs = list(zip(*varied.values(), strict=True))
        if not varied:
            raise Undefined("the runs differ in no facet")
        if len(set(runs)) != len(runs) or len(runs) != prod(design.sizes.values()):
            raise Undefined("the runs are not fully crossed: one for each combination of levels")
        return design

    @property
    def sizes(self) -> dict[str, int]:
        return {facet: len(set(column)) for facet, column in self.levels.items()}

    @property
    def runs(self) -> int:
        return len(next(iter(self.levels.values())))

    def effects(self) -> list[Effect]:
        """List every effect: items and facets alone, then what interacts; the last one has them
        all and holds what nothing else explains."""
        names = (ITEM, *self.levels)
        return [e for size in range(1, len(names) + 1) for e in combinations(names, size)]

    def projector(self, facets: Effect) -> FloatArray:
        """Give the matrix that keeps of the runs' values what these facets alone explain."""
        grand_mean = np.full((self.runs, self.runs), 1 / self.runs)
        parts: FloatArray = np.zeros_like(grand_mean)
        for size in range(len(facets) + 1):
            for subset in combinations(facets, size):
                sign = (-1) ** (len(facets) - size)
                parts += sign * (self._cell_means(subset) if subset else grand_mean)
        return parts

    def _cell_means(self, facets: Effect) -> FloatArray:
        """Give the matrix that replaces each run by the mean of those with the same levels."""
        cells = list(zip(*(self.levels[facet] for facet in facets), strict=True))
        same = np.array([[cell == other for other in cells] for cell in cells], np.float64)
        means: FloatArray = same / same.sum(axis=1, keepdims=True)
        return means


LEAST = 0.5  # our choice: below it, more than half of what a score shows is not its object
_DRAWS = 2_000  # our choice: an interval's ends to about a hundredth, in a second
_REST = " and what is left"
_LACKING = "answers are missing, and a ranking of systems needs all of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponent:
    """A part is the variance of one effect, and its share of all; `negative` says that it came out
    below 0 and is set to 0."""

    effect: str
    variance: float
    share: float | None
    negative: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependability:
    """The dependability of one measure: where its variance lies, and Φ, the share of it that
    belongs to the object."""

    measure: str
    items: int  # that have a value in every run
    incomplete: int  # that lack one in some run
    parts: tuple[VarianceComponent, ...]
    one_run: Estimate  # Φ of a single run
    as_run: Estimate  # Φ of the mean over these runs
    least: Estimate  # what it is at least, however the missing answers would have come out

    @property
    def shown(self) -> bool:
        """Φ is shown to be 0.5 or more, whatever the missing answers were."""
        return self.least.low is not None and self.least.low >= LEAST


def of_measure(
    instrument: ScoringSpec,
    measure: Measure,
    outcomes: Sequence[pl.DataFrame],
    facets: CrossedDesign,
    of: str,
) -> Dependability:
    """Split the variance of a metric over several runs into its sources.

    Args:
        instrument: The benchmark of all runs.
        measure: The metric.
        outcomes: One frame of outcomes per run.
        facets: What differs between the runs, such as the prompt and the seed.
        of: The facet whose differences the score should reflect, such as the item.

    Returns:
        The variance components, and the dependability of one run, of the design, and at worst.
    """
    table = values_by_run(instrument, measure, outcomes)
    numbers = table.drop("item_id", "cluster").to_numpy().astype(np.float64)
    present = ~np.isnan(numbers).any(axis=1)
    clusters = table["cluster"].to_numpy()
    complete, complete_clusters = numbers[present], clusters[present]
    single, as_run = (
        _phi(measure, complete, complete_clusters, facets, of, sizes)
        for sizes in (dict.fromkeys(facets.sizes, 1), facets.sizes)
    )
    least = as_run if present.all() else Estimate(name=measure.name, value=None, undefined=_LACKING)
    if of == ITEM:
        least = _least(measure, numbers, clusters, facets)
    return Dependability(
        measure=measure.name,
        items=int(present.sum()),
        incomplete=int((~present).sum()),
        parts=_parts(complete, facets),
        one_run=single,
        as_run=as_run,
        least=least,
    )


def values_by_run(
    instrument: ScoringSpec, measure: Measure, outcomes: Sequence[pl.DataFrame]
) -> pl.DataFrame:
    """Line up the values of all runs by item. For a metric with one number per cluster, the cluster
    is the item.

    Args:
        instrument: The benchmark of all runs.
        measure: The metric.
        outcomes: One frame of outcomes per run.

    Returns:
        The columns `item_id`, `cluster`, and `run0`, `run1` and so on, null where a run has no
        value.
    """
    long = []
    for index, rows in enumerate(outcomes):
        about = pl.lit(True) if measure.where is None else measure.where
        unscored = pl.col("state") != SCORED  # what an answer would say is not known of it
        values = row_values(rows.filter(about.fill_null(unscored)), instrument)
        values = values.filter(~pl.col("masked"))
        values = measure.statistic.item_values(measure, values)
        selected = values.select("item_id", "cluster", pl.col("value").cast(pl.Float64))
        long.append(selected.with_columns(run=pl.lit(f"run{index}")))
    wide = pl.concat(long).pivot("run", index=["item_id", "cluster"], values="value")
    missing = [f"run{n}" for n in range(len(outcomes)) if f"run{n}" not in wide.columns]
    full = wide.with_columns(pl.lit(None, pl.Float64).alias(name) for name in missing)
    return full.select("item_id", "cluster", *(f"run{n}" for n in range(len(outcomes))))


def _phi(
    measure: Measure,
    values: np.ndarray,
    clusters: np.ndarray,
    facets: CrossedDesign,
    of: str,
    sizes: Mapping[str, int],
) -> Estimate:
    """Estimate Φ; its interval comes from resampling clusters of items."""
    name, counted = measure.name, {**sizes, ITEM: max(len(values), 1)}

    def phi(totals: np.ndarray) -> np.ndarray:
        return dependability(components(totals, facets), of, counted)

    try:
        if not np.isfinite(values).all():
            raise Undefined("the measure has no ends, so that a missing value has no worst case")
        names, places = np.unique(clusters, return_inverse=True)
        table = np.zeros((len(names), 1 + facets.runs + facets.runs**2))
        np.add.at(table, places, totals_of(values))
        bootstrap = cluster_bootstrap(table, phi, kind="percentile", draws=_DRAWS)
    except Undefined as reason:
        message = str(reason) if np.ptp(values) else "every answer has the same value"
        return Estimate(name=name, value=None, undefined=message)
    return Estimate(
        name=name, value=bootstrap.estimate, low=None if bootstrap.no_spread else bootstrap.low,
        high=None if bootstrap.no_spread else bootstrap.high, n=len(values), clusters=len(names),
    )  # fmt: skip


def _least(
    measure: Measure, numbers: np.ndarray, clusters: np.ndarray, facets: CrossedDesign
) -> Estimate:
    """Estimate what the items' Φ of these runs is at least.

    Error is half the squared difference of two runs that differ in every facet, where a missing
    answer is as far from the other as it can be; all variance is that of the answers there are,
    with the missing ones at their mean. Each is the worst over all ways in which the missing
    answers could have come out, so one more of them never raises Φ. An effect is averaged over
    no fewer levels than the facet with the fewest has.
    """
    names, places = np.unique(clusters, return_inverse=True)
    present = np.isfinite(numbers)
    reach = measure.within[1] - measure.within[0]
    averaged = min(facets.sizes.values())
    values = np.where(present, numbers - np.nanmean(numbers), 0.0)
    sums = [_apart(numbers, measure.within, facets), values.sum(axis=1), (values**2).sum(axis=1)]
    table = np.zeros((len(names), 5))
    counted = np.ones(len(numbers))
    np.add.at(table, places, np.column_stack([counted, present.sum(axis=1), *sums]))

    def phi(totals: np.ndarray) -> np.ndarray:
        items, answers, error, total, squares = totals.T
        return _of_mean((squares - total**2 / answers) / (items * facets.runs), error / items,
                        averaged)  # fmt: skip

    try:
        if not np.isfinite(table).all():
            raise Undefined("the measure has no ends, so that a missing value has no worst case")
        bootstrap = cluster_bootstrap(table, phi, kind="percentile", draws=_DRAWS)
    except Undefined as reason:
        return Estimate(name=measure.name, value=None, undefined=str(reason))
    low: float | None = bootstrap.low
    if math.isfinite(reach):  # so many clusters allow that a share differs by the whole range
        items, answers, _, total, squares = table.sum(axis=0)
        variance = (squares - total**2 / answers) / (items * facets.runs)
        unseen = np.array(zero_event_upper(len(names)) * reach**2 / 2)
        low = min(bootstrap.low, float(_of_mean(np.array(variance), unseen, averaged)))
    elif bootstrap.no_spread:
        low = None
    return Estimate(
        name=measure.name, value=bootstrap.estimate, low=low, high=bootstrap.high,
        n=len(numbers), clusters=len(names),
    )  # fmt: skip


def _of_mean(variance: np.ndarray, error: np.ndarray, runs: int) -> np.ndarray:
    """Compute Φ of a mean over runs from all variance and the error of one run; not a number where
    nothing varies."""
    objects = np.maximum(variance - error, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        phi: np.ndarray = objects / (objects + error / runs)
        return phi


def _apart(numbers: np.ndarray, within: tuple[float, float], facets: CrossedDesign) -> np.ndarray:
    """Compute per item the mean of half the squared difference of two runs that differ in every
    facet; a missing answer is as far away as the ends of the measure allow."""
    low, high = within
    levels = list(zip(*facets.levels.values(), strict=True))
    pairs = [
        (first, other)
        for first, other in combinations(range(facets.runs), 2)
        if all(a != b for a, b in zip(levels[first], levels[other], strict=True))
    ]
    total = np.zeros(len(numbers))
    for pair in pairs:
        least, most = (np.where(np.isnan(numbers[:, pair]), end, numbers[:, pair])
                       for end in (low, high))  # fmt: skip
        far = np.maximum(most[:, 0] - least[:, 1], most[:, 1] - least[:, 0])
        total += far**2 / 2
    return total / len(pairs)


def _parts(values: np.ndarray, facets: CrossedDesign) -> tuple[VarianceComponent, ...]:
    if len(values) < 2:
        return ()
    totals = totals_of(values).sum(axis=0, keepdims=True)
    variances = {effect: float(v[0]) for effect, v in components(totals, facets).items()}
    total = sum(max(value, 0.0) for value in variances.values())
    last = len(facets.levels) + 1
    return tuple(
        VarianceComponent(
            effect=" × ".join(effect) + _REST * (len(effect) == last),
            variance=max(value, 0.0),
            share=max(value, 0.0) / total if total else None,
            negative=value < 0,
        )
        for effect, value in variances.items()
    )


def totals_of(values: ArrayLike) -> FloatArray:
    """Give per item what `components` needs in sum: 1, each run's value, and each product of two.
    So a resample of items or clusters enters through its sums alone."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise UserError("values must have one row per item and one column per run, none missing")
    table = table - table.mean()  # variances stay, and equal values become exactly 0
    products = (table[:, :, None] * table[:, None, :]).reshape(len(table), -1)
    return np.column_stack([np.ones(len(table)), table, products])


def components(totals: FloatArray, design: CrossedDesign) -> dict[Effect, FloatArray]:
    """Estimate the variance of each effect, one value per row of totals.

    Method of moments: MS(α) is the mean square of effect α, and
    σ²(α) = Σ over effects β that contain α of (−1)^(|β| − |α|) MS(β) / Π n of the facets not in α.
    Source: Brennan 2001, 3.4. An estimate may be negative, which says that it is near 0. Undefined:
    fewer than two items.
    """
    n, runs = totals[:, 0], design.runs
    if (n < 2).any():
        raise Undefined("fewer than two items: nothing tells them apart")
    sums = totals[:, 1 : runs + 1]
    products = totals[:, runs + 1 :].reshape(-1, runs, runs)
    of_means = sums[:, :, None] * sums[:, None, :] / n[:, None, None]
    squares = {}
    for effect in design.effects():
        facets = tuple(f for f in effect if f != ITEM)
        keeps = design.projector(facets)
        free = prod(design.sizes[f] - 1 for f in facets)
        within = products - of_means if ITEM in effect else of_means
        sum_of_squares = np.einsum("tij,ij->t", within, keeps)
        squares[effect] = sum_of_squares / (free * (n - 1) if ITEM in effect else free)
    return {effect: _moment(effect, squares, design, n) for effect in squares}


def _moment(
    effect: Effect, squares: Mapping[Effect, FloatArray], design: CrossedDesign, n: FloatArray
) -> FloatArray:
    signed = [
        (-1) ** (len(other) - len(effect)) * value
        for other, value in squares.items()
        if set(effect) <= set(other)
    ]
    each = prod(size for facet, size in design.sizes.items() if facet not in effect)
    variance: FloatArray = sum(signed, np.zeros_like(n)) / each
    return variance if ITEM in effect else variance / n


def dependability(
    found: Mapping[Effect, FloatArray], of: str, sizes: Mapping[str, FloatArray | int]
) -> FloatArray:
    """Compute Φ = σ²(object) / (σ²(object) + σ²(Δ)) for a design with a given number of levels per
    facet.

    σ²(Δ) is the sum over all other effects of σ² divided by the levels that their facets are
    averaged over; negative components count as 0. Source: Brennan 2001, 3.3.

    Args:
        found: The variance component of each effect.
        of: The facet that is the object of measurement.
        sizes: The number of levels of each facet that a score averages over.

    Returns:
        Φ from 0 to 1; NaN where nothing varies.
    """
    clipped = {effect: np.maximum(value, 0.0) for effect, value in found.items()}
    of_object = clipped[(of,)]
    error = sum(
        (value / reduce(np.multiply, [np.asarray(sizes[f], np.float64) for f in effect if f != of])
         for effect, value in clipped.items() if effect != (of,)),
        np.zeros_like(of_object),
    )  # fmt: skip
    scale = of_object + error
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(scale > ROUNDING, of_object / scale, np.nan)
