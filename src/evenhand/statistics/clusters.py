"""Means and ratios whose uncertainty comes from clusters, not from rows.

Rows of one template, scenario, prompt or article are alike: counted as independent they make a
standard error up to 4.7 times too small (BBQ, all rows). So the unit that is drawn is the cluster.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import (
    ROUNDING,
    FloatArray,
    IntArray,
    finite,
    open_share,
    same_length,
    t_above,
    t_quantile,
)

NO_ROWS = "no rows: 0/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate that can be printed: never without its interval, its n and its clusters.

    `no_spread`: every cluster gave the same value, so the standard error is 0 and the interval a
    point. That is what the formula gives, and all that it gives: the data show no spread, which is
    not certainty. Print it as "no spread", and bound what was never seen with
    `proportions.zero_event_upper(clusters)`. `p_two_sided` is None then: t would be x/0.
    """

    estimate: float
    low: float
    high: float
    confidence: float
    se: float
    df: float
    p_two_sided: float | None  # against 0
    n: int
    clusters: int

    @property
    def no_spread(self) -> bool:
        return self.se == 0

    def rescaled(self, scale: float, shift: float = 0.0) -> "Interval":
        """The interval of scale · estimate + shift; the p-value is for the new number being 0.

        BBQ's s_DIS is 2 · biased/non-unknown − 1: `clustered_ratio(…).rescaled(2, -1)`.
        """
        return _interval(
            scale * self.estimate + shift,
            abs(scale) * self.se,
            n=self.n,
            clusters=self.clusters,
            confidence=self.confidence,
            df=self.df,
        )

    def with_df(self, df: float) -> "Interval":
        """The t interval and p-value of the same estimate with other degrees of freedom."""
        return replace(self, df=df).rescaled(1.0)


def clustered_mean(
    values: ArrayLike, clusters: Iterable[Hashable], confidence: float = 0.95
) -> Interval:
    """Compute the mean of all rows, with a standard error that allows rows of a cluster to be
    alike.

    mean = Σx/n; u_g = Σ_{i in g} (x_i − mean); se² = G/(G−1) · Σ u_g² / n²; t with G − 1 degrees of
    freedom. Source: Liang & Zeger 1986; Cameron & Miller 2015. Range: that of the values, but the
    interval is symmetric and not cut off at their ends.

    Args:
        values: One number per row.
        clusters: The cluster of each row.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: Without rows, or with fewer than two clusters, since one cluster says nothing
            about another.
    """
    rows = finite(values, "values")
    return clustered_ratio(rows, np.ones_like(rows), clusters, confidence)


def clustered_ratio(
    numerator: ArrayLike,
    denominator: ArrayLike,
    clusters: Iterable[Hashable],
    confidence: float = 0.95,
) -> Interval:
    """Compute R = Σy/Σx over all rows by linearization: how far each cluster is from its share of
    R.

    u_g = Σ_{i in g} (y_i − R·x_i); se² = G/(G−1) · Σ u_g² / (Σx)²; t with G − 1 degrees of freedom.
    Source: Woodruff 1971; Cochran 1977, chapter 6. Range: any; for a share it may pass 0 or 1.

    `n` and `clusters` of the result count only rows and clusters with x ≠ 0 or y ≠ 0. A template
    whose answers are all UNKNOWN says nothing about a ratio of the others, and would only feign
    precision.

    Args:
        numerator: The y of each row.
        denominator: The x of each row.
        clusters: The cluster of each row.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: If Σx = 0, or fewer than two clusters carry anything.
    """
    above, below = finite(numerator, "numerators"), finite(denominator, "denominators")
    same_length(above, below, "numerators and denominators")
    carries = (above != 0) | (below != 0)
    sums = cluster_sums(clusters, carries, above, below, np.abs(above), np.abs(below))
    return ratio_from_totals(sums, confidence)


def ratio_from_totals(totals: ArrayLike, confidence: float = 0.95) -> Interval:
    """`clustered_ratio` from the totals of its clusters, so that rows need not be held.

    One row per cluster, the columns n, Σy, Σx, Σ|y|, Σ|x|; n counts the rows with x ≠ 0 or y ≠ 0.
    """
    sums = _carrying(totals)
    n, y, x, size_y, size_x = sums.T
    ratio = _ratio(sums)
    apart = _without_rounding(y - ratio * x, size_y + abs(ratio) * size_x)
    se = math.sqrt(len(sums) / (len(sums) - 1) * float(apart @ apart)) / abs(float(x.sum()))
    return _interval(ratio, se, n=int(n.sum()), clusters=len(sums), confidence=confidence)


def ratio_change_from_totals(
    before: ArrayLike, after: ArrayLike, confidence: float = 0.95
) -> Interval:
    """Compute R₂ − R₁ of two ratios over the same clusters, by linearization of the difference.

    u_g = (y₂_g − R₂·x₂_g)/Σx₂ − (y₁_g − R₁·x₁_g)/Σx₁; se² = G/(G−1) · Σ u_g²; t with G − 1 degrees
    of freedom. Source: Woodruff 1971.

    Args:
        before: The totals of R₁, one row per cluster, columns as in `ratio_from_totals`.
        after: The totals of R₂, with the same clusters in the same order.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: If one of the ratios is, or fewer than two clusters carry anything.
    """
    old, new = (np.asarray(totals, dtype=np.float64) for totals in (before, after))
    n = int(np.maximum(old[:, 0], new[:, 0]).sum())
    return sum_of_ratios_from_totals([(-1.0, old), (1.0, new)], n, confidence=confidence)


def sum_of_ratios_from_totals(
    parts: Sequence[tuple[float, ArrayLike]],
    n: int,
    shift: float = 0.0,
    confidence: float = 0.95,
) -> Interval:
    """Compute shift + Σ w_k·R_k, weighted ratios R_k = Σy_k/Σx_k over the same clusters, by
    linearization.

    u_g = Σ_k w_k·(y_kg − R_k·x_kg)/Σx_k; se² = G/(G−1) · Σ u_g²; t with G − 1 degrees of freedom,
    over the G clusters that carry anything of any ratio. Source: Woodruff 1971.

    Args:
        parts: The weight and the totals of each ratio: row g is cluster g, columns as in
            `ratio_from_totals`.
        n: The number of rows to report.
        shift: A constant to add.
        confidence: The two-sided confidence of the interval.

    Raises:
        Undefined: If one of the ratios is, or fewer than two clusters carry it.
    """
    tables = [np.asarray(totals, dtype=np.float64) for _, totals in parts]
    nonempty = np.logical_or.reduce([table[:, 0] > 0 for table in tables])
    apart, value, size = np.zeros(int(nonempty.sum())), shift, 0.0
    for (weight, _), table in zip(parts, tables, strict=True):
        ratio = _ratio(_carrying(table))
        _, y, x, size_y, size_x = table[nonempty].T
        residuals = _without_rounding(y - ratio * x, size_y + abs(ratio) * size_x)
        apart += weight * residuals / float(x.sum())
        value += weight * ratio
        size += abs(weight * ratio)
    apart = _without_rounding(apart, np.abs(apart) + size)
    clusters = len(apart)
    se = math.sqrt(clusters / (clusters - 1) * float(apart @ apart))
    return _interval(value, se, n=n, clusters=clusters, confidence=confidence)


def linearized(parts: Sequence[tuple[float, ArrayLike]], shift: float = 0.0) -> FloatArray:
    """One number per cluster whose mean is shift + Σ w_k·R_k, with R_k = Σy_k/Σx_k.

    v_g = θ + G·Σ_k w_k·(y_kg − R_k·x_kg)/Σx_k over all G clusters: their spread is that of the
    linearized sum. Parts as in `sum_of_ratios_from_totals`. Source: Woodruff 1971.
    Undefined: one of the ratios is.
    """
    tables = [np.asarray(totals, dtype=np.float64).reshape(-1, 5) for _, totals in parts]
    clusters = len(tables[0])
    values, total = np.zeros(clusters), shift
    for (weight, _), table in zip(parts, tables, strict=True):
        ratio = _ratio(table)
        _, y, x, size_y, size_x = table.T
        apart = _without_rounding(y - ratio * x, size_y + abs(ratio) * size_x)
        values += weight * clusters * apart / float(x.sum())
        total += weight * ratio
    return values + total


def _carrying(totals: ArrayLike) -> FloatArray:
    """The clusters that have any row; refused where they are too few to show a spread."""
    sums = np.asarray(totals, dtype=np.float64).reshape(-1, 5)
    sums = sums[sums[:, 0] > 0]
    if not len(sums):
        raise Undefined(NO_ROWS)
    if len(sums) == 1:
        raise Undefined("one cluster: nothing shows how much another would differ")
    return sums


def _ratio(sums: FloatArray) -> float:
    _, y, x, _, size_x = sums.T
    total = float(x.sum())
    if abs(total) <= ROUNDING * float(size_x.sum()):
        raise Undefined("the denominators sum to 0")
    return float(y.sum()) / total


def naive_mean(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """The mean as if every row were drawn on its own: se = s/√n, t with n − 1 degrees of freedom.

    For independent rows, and to show next to `clustered_mean` what ignoring the clusters would
    claim. Source: Student 1908. Range: as there. Undefined: fewer than two rows.
    """
    rows = finite(values, "values")
    return clustered_mean(rows, np.arange(rows.size), confidence)


def cluster_sums(clusters: Iterable[Hashable], *columns: ArrayLike) -> FloatArray:
    """One row per cluster, in order of first appearance, one column per column: its sum."""
    codes = cluster_codes(clusters)
    sums = []
    for number, column in enumerate(columns):
        rows = finite(column, f"values of column {number}")
        if rows.size != codes.size:
            raise UserError(f"{rows.size} values but {codes.size} clusters")
        sums.append(np.bincount(codes, weights=rows))
    return np.column_stack(sums)


def cluster_codes(clusters: Iterable[Hashable]) -> IntArray:
    """0, 1, 2 … by first appearance. Any key will do but a missing one (None, NaN)."""
    code_of: dict[Hashable, int] = {}
    keys = clusters.tolist() if isinstance(clusters, np.ndarray) else clusters
    codes = np.fromiter((code_of.setdefault(key, len(code_of)) for key in keys), dtype=np.int64)
    if any(key is None or (isinstance(key, float) and math.isnan(key)) for key in code_of):
        raise UserError("a row has no cluster; name one, or leave the row out and report it")
    return codes


def _without_rounding(deviations: FloatArray, terms: FloatArray) -> FloatArray:
    """Deviations that are only rounding become 0, so that equal clusters are seen to be equal."""
    largest = float(terms.max(initial=0.0))
    if np.abs(deviations).max(initial=0.0) <= ROUNDING * largest:
        return np.zeros_like(deviations)
    return deviations


def _interval(
    estimate: float,
    se: float,
    *,
    n: int,
    clusters: int,
    confidence: float,
    df: float | None = None,
) -> Interval:
    df = clusters - 1 if df is None else df
    reach = t_quantile(df, (1 + open_share(confidence, "confidence")) / 2) * se
    return Interval(
        estimate=estimate,
        low=estimate - reach,
        high=estimate + reach,
        confidence=confidence,
        se=se,
        df=df,
        p_two_sided=2 * t_above(df, abs(estimate) / se) if se else None,
        n=n,
        clusters=clusters,
    )


_POINTS = 200_000  # our choice: 447 steps along each of two means, 21 along each of four


def of_means(
    rows: ArrayLike, value: Callable[[FloatArray], FloatArray], confidence: float = 0.95
) -> Interval:
    """Compute f of the means of the columns, with the smallest and the largest f where every mean
    is within its own t interval.

    It needs no derivative, so it holds at a kink such as that of min(SS, 100 − SS) at 50, where
    resampling misses the truth in two of five cases. The t intervals are x̄_k ± t_{G−1}·s_k/√G over
    the G rows; f is evaluated on a grid over all of them. `se` is half the width over t. Our
    choice: each interval at `confidence` and not all of them together; of ICAT the result then
    covers 95 to 99% (`bench/truth.py`). Range: that of f.

    Args:
        rows: One row per cluster, one column per mean.
        value: Computes f: maps one vector of means per row to one number each.
        confidence: The two-sided confidence of each t interval.

    Raises:
        Undefined: With fewer than two rows, or if f has no value somewhere on the grid.
    """
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2:
        raise UserError("one row per cluster and one column per mean are needed")
    clusters, width = table.shape
    if not clusters:
        raise Undefined(NO_ROWS)
    if clusters == 1:
        raise Undefined("one cluster: nothing shows how much another would differ")
    t = t_quantile(clusters - 1, (1 + open_share(confidence, "confidence")) / 2)
    means, reach = table.mean(axis=0), t * table.std(axis=0, ddof=1) / clusters**0.5
    steps = np.linspace(-1, 1, int(_POINTS ** (1 / width)) | 1)
    grid = np.stack(np.meshgrid(*[steps] * width), axis=-1).reshape(-1, width)
    values = value(np.vstack([means, means + grid * reach]))
    if not np.isfinite(values).all():
        raise Undefined("the function has no value somewhere in the region of its means")
    estimate, low, high = float(values[0]), float(values.min()), float(values.max())
    se = (high - low) / (2 * t)
    if se <= ROUNDING * abs(estimate):
        low, high, se = estimate, estimate, 0.0
    return Interval(estimate=estimate, low=low, high=high, confidence=confidence, se=se,
                    df=clusters - 1, p_two_sided=None, n=clusters, clusters=clusters)  # fmt: skip
