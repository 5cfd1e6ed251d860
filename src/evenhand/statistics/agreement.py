"""How far raters agree beyond what chance would give.

For scores on a scale use `krippendorff_alpha` (ordinal or interval) or `quadratic_weighted_kappa`:
Fleiss' kappa takes 3 against 4 for as large a disagreement as 0 against 10.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import Undefined, UserError
from evenhand.statistics._shared import FloatArray, IntArray, counts, finite, same_length

Level = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Shares of agreeing pairs of raters: seen, and by chance under two views of chance."""

    observed: float
    by_use: float  # chance if raters use the categories as often as they did
    by_category: float  # chance if every category were as likely: 1/k
    subjects: int
    raters: int


def rater_agreement(table: Sequence[Sequence[int]] | ArrayLike) -> Agreement:
    """The parts of both kappas. `table`: one row per subject, one column per category, counts.

    observed = mean over subjects of Σ n_j(n_j − 1) / (r(r − 1)); by_use = Σ p_j².
    Source: Fleiss 1971. Range: 0 to 1. Undefined: no subjects; one rater; unequal numbers of
    raters (there `krippendorff_alpha` still has a value).
    """
    cells = counts(table)
    raters = cells.sum(axis=1)
    if not cells.size or not raters.any():
        raise Undefined("no ratings")
    if np.ptp(raters):
        raise Undefined("subjects have unequal numbers of raters; use krippendorff_alpha")
    r, shares = int(raters[0]), cells.sum(axis=0) / cells.sum()
    if r < 2:
        raise Undefined("one rater a subject: nobody to agree with")
    return Agreement(
        observed=float((cells * (cells - 1)).sum()) / (len(cells) * r * (r - 1)),
        by_use=float(shares @ shares),
        by_category=1 / cells.shape[1],
        subjects=len(cells),
        raters=r,
    )


def fleiss_kappa(table: Sequence[Sequence[int]] | ArrayLike) -> float:
    """(observed − by_use)/(1 − by_use) of `rater_agreement`. Source: Fleiss 1971.

    Range: −1/(r − 1) to 1. Undefined: as there, and when all ratings fall in one category (0/0),
    which is neither perfect nor no agreement.
    """
    parts = rater_agreement(table)
    if np.count_nonzero(counts(table).sum(axis=0)) == 1:
        raise Undefined("all ratings fall in one category: 0/0")
    return (parts.observed - parts.by_use) / (1 - parts.by_use)


def randolph_kappa(table: Sequence[Sequence[int]] | ArrayLike) -> float:
    """(observed − 1/k)/(1 − 1/k) for k categories: does not fall when one category is common.

    Source: Randolph 2005. Range: −1/(k − 1) to 1. Undefined: as `rater_agreement`; one category.
    """
    parts = rater_agreement(table)
    if parts.by_category == 1:
        raise Undefined("one category: raters had no choice")
    return (parts.observed - parts.by_category) / (1 - parts.by_category)


def krippendorff_alpha(
    raters_by_units: Sequence[Sequence[float | None]] | ArrayLike, level: Level
) -> float:
    """1 − D_o/D_e: disagreement within units over disagreement between any two ratings.

    From coincidences o_ck = Σ_units (n_uc·n_uk − [c = k]·n_uc)/(m_u − 1) and a squared distance:
    nominal [c ≠ k], interval (c − k)², ordinal (ratings from c to k, half of those at the ends)².
    Source: Krippendorff 2011 (Computing Krippendorff's Alpha-Reliability). None or NaN = not rated;
    units with fewer than two ratings pair with nothing and drop out. Range: at most 1.
    Undefined: no unit with two ratings; all paired ratings equal (0/0).
    """
    ratings = np.asarray(raters_by_units, dtype=np.float64)
    if ratings.ndim != 2:
        raise UserError("ratings must have one row per rater and one column per unit")
    if np.isinf(ratings).any():
        raise Undefined("an infinite rating has no distance to another")
    values, uses = _uses(ratings)
    per_unit = uses.sum(axis=1)
    together = uses.T @ (uses / (per_unit - 1)[:, None])
    together -= np.diag((uses / (per_unit - 1)[:, None]).sum(axis=0))
    totals = together.sum(axis=0)
    distance = _squared_distance(values, totals, level)
    by_chance = float(totals @ distance @ totals) / (float(totals.sum()) - 1)
    return 1 - float((together * distance).sum()) / by_chance


def quadratic_weighted_kappa(
    first: ArrayLike, second: ArrayLike, scale: tuple[float, float] | None = None
) -> float:
    """Two raters, one scale: 1 − mean (x_i − y_i)² / mean over all i, j of (x_i − y_j)².

    The usual matrix form with weights (i − j)², whose norm cancels; `scale` only refuses ratings
    outside it. Source: Cohen 1968. Range: −1 to 1. Undefined: no ratings; all ratings of both
    equal (0/0).
    """
    one, two = finite(first, "ratings"), finite(second, "ratings")
    same_length(one, two, "the two raters")
    both = np.concatenate([one, two])
    if not both.size:
        raise Undefined("no ratings")
    if scale is not None and (both.min() < scale[0] or both.max() > scale[1]):
        raise UserError(f"a rating lies outside the scale {scale[0]} to {scale[1]}")
    if np.ptp(both) == 0:
        raise Undefined("all ratings are equal: 0/0")
    by_chance = float(one.var() + two.var() + (one.mean() - two.mean()) ** 2)
    return 1 - float(((one - two) ** 2).mean()) / by_chance


def _uses(ratings: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct values, and how often each unit that has a pair of ratings got each."""
    paired = ratings[:, (~np.isnan(ratings)).sum(axis=0) >= 2]
    values = np.unique(paired[~np.isnan(paired)])
    if not values.size:
        raise Undefined("no unit has two ratings")
    if values.size == 1:
        raise Undefined("all ratings are equal: 0/0")
    return values, (paired[:, :, None] == values).sum(axis=0)


def _squared_distance(values: FloatArray, totals: FloatArray, level: Level) -> FloatArray:
    if level == "interval":
        places = values
    elif level == "ordinal":
        places = np.cumsum(totals) - totals / 2  # the middle of each value's ratings, in order
    else:
        return 1 - np.eye(values.size)
    return np.asarray((places[:, None] - places) ** 2, dtype=np.float64)
