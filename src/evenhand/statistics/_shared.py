"""What every file of this room checks and looks up in the same way."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np
import scipy  # its parts are loaded when first used
from numpy.typing import ArrayLike, NDArray

from evenhand.core.errors import Undefined, UserError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ROUNDING = 1e-12  # our choice: two sums nearer than this, relative to their terms, are equal

_HALVINGS = 40


def finite(values: ArrayLike, name: str) -> FloatArray:
    """`values` as a row of floats; a missing or infinite one has no place in a mean."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise UserError(f"{name} must be a flat list of numbers, not of shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise Undefined(
            f"{bad.size} of {array.size} {name} are missing or not finite (the first at {bad[0]}); "
            "leave unscored rows out and report the coverage"
        )
    return array


def same_length(first: FloatArray, second: FloatArray, names: str) -> None:
    if first.size != second.size:
        raise UserError(f"{names} must pair up, but have {first.size} and {second.size} values")


def open_share(value: float, name: str) -> float:
    """A confidence, alpha or power: strictly between 0 and 1."""
    if not 0 < value < 1:
        raise UserError(f"{name} must lie between 0 and 1, not at {value}")
    return value


def counts(table: Sequence[Sequence[int]] | ArrayLike) -> IntArray:
    """A table of counts: whole, not negative, every row equally long."""
    try:
        array = np.asarray(table, dtype=np.float64)
    except ValueError:
        raise UserError("the rows of a table of counts must be equally long") from None
    if array.ndim != 2:
        raise UserError(f"a table of counts has rows and columns, not shape {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all() and (array % 1 == 0).all()):
        raise UserError("a table of counts holds whole numbers from 0 up")
    return array.astype(np.int64)


def t_quantile(df: float, share: float) -> float:
    """The value below which a Student t with `df` degrees of freedom falls with that share."""
    return float(scipy.special.stdtrit(df, share))


def t_above(df: float, t: float) -> float:
    """P(T > t): taken as the lower tail of −t, so that a tiny p-value keeps its digits."""
    return float(scipy.special.stdtr(df, -t))


def added(first: float, second: float, rho: float) -> float:
    """Combine two distances to an end into one, for estimates with correlated errors.

    Args:
        first: The distance of the first estimate to its end.
        second: The distance of the second estimate to its opposite end.
        rho: The correlation of the errors.
    """
    return math.sqrt(max(first**2 - 2 * rho * first * second + second**2, 0.0))


def fewest(enough: Callable[[int], bool], most: int | None = None) -> int | None:
    """The least number from 2 up that is enough, where every larger one is too; None where even
    twice `most` is not."""
    low, high = 1, 2
    while not enough(high):
        if most is not None and high > most:
            return None
        low, high = high, 2 * high
    return low + 1 + bisect_left(range(low + 1, high), True, key=enough)


def last_shown(shown: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest value that is shown, where every smaller one is too, to 10⁻¹² of the
    range.

    Args:
        shown: Tests a value; once false, it stays false for larger values.
        low: The lower end of the range, which is returned if no value is shown.
        high: The upper end of the range.
    """
    if not shown(low):
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if shown(middle) else (low, middle)
    return low
