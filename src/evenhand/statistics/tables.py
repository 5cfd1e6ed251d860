"""Counts by group, and ranks within a block.

Chi-square takes rows for independent: copying each m times multiplies chi-square by m and leaves
Cramér's V. So never a p-value without V, and `friedman` where the same items meet every label.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import FloatArray, IntArray, counts

Table = Sequence[Sequence[int]] | ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquare:
    """`cramers_v` always from the uncorrected chi-square, so that it depends on no option."""

    chi2: float
    df: int
    p_value: float
    n: int
    cramers_v: float
    cramers_v_corrected: float | None  # None: 0/0, a table of two observations
    min_expected: float  # below 5 the p-value is a rough one
    dropped: int  # empty rows and columns left out
    yates: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Friedman:
    """`kendalls_w`: 0 = blocks rank the treatments at random, 1 = all in the same order."""

    chi2: float
    df: int
    p_value: float
    kendalls_w: float
    rank_sums: tuple[float, ...]
    blocks: int


def chi_square(table: Table, *, yates: bool = False) -> ChiSquare:
    """Independence of rows and columns. Empty rows and columns are left out and counted.

    χ² = Σ(O − E)²/E, df = (r − 1)(c − 1); with `yates` Σ(|O − E| − ½)²/E, 2 × 2 only.
    V = √(χ²/(n·min(r − 1, c − 1))). Source: Pearson 1900; Cramér 1946.
    Range: χ² from 0, V 0 to 1. Undefined: fewer than two rows or columns that are not empty.
    """
    cells, dropped = _without_empty(counts(table))
    if yates and cells.shape != (2, 2):
        raise UserError("Yates' correction is for 2 × 2 tables only")
    plain = scipy.stats.chi2_contingency(cells, correction=False)
    reported = scipy.stats.chi2_contingency(cells, correction=True) if yates else plain
    n, least = int(cells.sum()), min(cells.shape) - 1
    return ChiSquare(
        chi2=float(reported.statistic),
        df=int(reported.dof),
        p_value=float(reported.pvalue),
        n=n,
        cramers_v=math.sqrt(float(plain.statistic) / (n * least)),
        cramers_v_corrected=_corrected_v(float(plain.statistic) / n, n, cells.shape),
        min_expected=float(plain.expected_freq.min()),
        dropped=dropped,
        yates=yates,
    )


def fisher_p(table: Table) -> float:
    """Fisher's exact test of a 2 × 2 table, two-sided: all tables no likelier than this one.

    Source: Fisher 1935. Range: 0 to 1. Undefined: an empty row or column.
    """
    cells = _two_by_two(table)
    if not (cells.any(axis=0).all() and cells.any(axis=1).all()):
        raise Undefined("an empty row or column: only one table has these margins")
    return float(scipy.stats.fisher_exact(cells).pvalue)


def friedman(scores: Sequence[Sequence[float]] | ArrayLike) -> Friedman:
    """Do treatments differ within blocks? One row per block (scenario), one column per treatment.

    χ² = (k − 1)·(ΣR_j² − b²k(k + 1)²/4) / (Σ r_ij² − bk(k + 1)²/4), r = ranks within a block with
    ties averaged, R their sums, b blocks; df = k − 1; W = χ²/(b(k − 1)).
    Source: Friedman 1937; Conover 1999; Kendall & Babington Smith 1939.
    Range: χ² 0 to b(k − 1), W 0 to 1. Undefined: no blocks; one treatment; a missing score; ties
    throughout in every block (0/0).
    """
    cells = np.asarray(scores, dtype=np.float64)
    if cells.ndim != 2 or not len(cells) or cells.shape[1] < 2:
        raise Undefined(f"a Friedman test needs blocks of two or more scores, not {cells.shape}")
    if not np.isfinite(cells).all():
        raise Undefined("a score is missing; leave its whole block out and report the coverage")
    ranks = _ranks(cells)
    blocks, k = ranks.shape
    sums = ranks.sum(axis=0)
    spread = float((ranks**2).sum()) - blocks * k * (k + 1) ** 2 / 4
    if spread == 0:  # ranks are halves: exact in floating point
        raise Undefined("every block ties throughout: 0/0")
    chi2 = (k - 1) * (float(sums @ sums) - blocks**2 * k * (k + 1) ** 2 / 4) / spread
    return Friedman(
        chi2=chi2,
        df=k - 1,
        p_value=float(scipy.special.chdtrc(k - 1, chi2)),
        kendalls_w=chi2 / (blocks * (k - 1)),
        rank_sums=tuple(float(total) for total in sums),
        blocks=blocks,
    )


def _without_empty(cells: IntArray) -> tuple[IntArray, int]:
    filled = cells[cells.any(axis=1)][:, cells.any(axis=0)]
    if min(filled.shape) < 2:
        raise Undefined("fewer than two rows or columns have any observation")
    return filled, sum(cells.shape) - sum(filled.shape)


def _corrected_v(phi2: float, n: int, shape: tuple[int, ...]) -> float | None:
    """V without its upward bias: φ² and both dimensions shrunk. Source: Bergsma 2013."""
    rows, columns = (size - (size - 1) ** 2 / (n - 1) for size in shape)
    least = min(rows, columns) - 1
    if least <= 0:
        return None
    return math.sqrt(max(0.0, phi2 - (shape[0] - 1) * (shape[1] - 1) / (n - 1)) / least)


def _two_by_two(table: Table) -> IntArray:
    cells = counts(table)
    if cells.shape != (2, 2):
        raise UserError(f"a 2 × 2 table is needed, not {cells.shape[0]} × {cells.shape[1]}")
    return cells


def _ranks(blocks: FloatArray) -> FloatArray:
    """Rank within each row, ties averaged. scipy.stats has it, at two seconds of loading for a
    command that needs nothing else of it."""
    others, values = blocks[:, None, :], blocks[:, :, None]
    below, equal = (others < values).sum(axis=2), (others == values).sum(axis=2)
    return np.asarray(below + (equal + 1) / 2, dtype=np.float64)
