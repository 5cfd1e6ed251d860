"""How much of a score is the item, and how much is the order, the wording or the seed.

A generalizability study (Cronbach et al. 1972; Brennan 2001) takes the same items through several
runs that differ in named facets, and splits the variance of the answers. All facets, items too, are
random and fully crossed: every combination of levels has exactly one run.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import ROUNDING, FloatArray

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
    """Compute Φ = σ²(object) / (σ²(object) + σ²(Δ)) for a design with so many levels of each facet.

    σ²(Δ) is the sum over all other effects of σ² divided by the levels that their facets are
    averaged over; negative components count as 0. Source: Brennan 2001, 3.3. Range: 0 to 1. Not a
    number: nothing varies.
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
