"""Confidence limits by inverting the test that decides, so that an interval and an outcome agree.

A claim about clusters is linear: "the mean of c·x_g is above 0", where x_g holds the sums of one
cluster and c the coefficients. A confidence limit is the value at which the claim is just no longer
significant. Both tests here are monotone in every sum, so a limit exists and is unique.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from evenhand.statistics._shared import ROUNDING, FloatArray
from evenhand.statistics.bounded import p_mean_above
from evenhand.statistics.sign_flips import subset_sums

_STEPS = 40  # bisections: a limit is exact to 10⁻¹² of its range
_DIGITS = 12


class LinearTest(Protocol):
    """A one-sided test of linear claims about a table of sums, one row per cluster. The last column
    of the table is the size of the cluster."""

    def p_positive(self, claim: ArrayLike, room: float, unseen: float) -> float:
        """Return the p-value of "the mean of c·x_g + room·size_g is above 0".

        Args:
            claim: The coefficients c, one for each column of the table.
            room: What is added to each unit of size; the p-value never rises with it.
            unseen: The smallest value that a cluster that was not drawn can have.
        """


class SignFlips:
    """The sign-flip test: exact where the sign of each value is as likely + as −.

    Source: Fisher 1935; its inversion: Hartigan 1969.
    """

    def __init__(self, table: ArrayLike) -> None:
        values: FloatArray = np.asarray(table, dtype=np.float64)
        self._sums, self._added = subset_sums(values)
        self._slack = ROUNDING * float(np.abs(values).sum())
        self._turns: dict[bytes, tuple[int, FloatArray]] = {}

    def p_positive(self, claim: ArrayLike, room: float, unseen: float) -> float:  # noqa: ARG002
        always, turns = self._turning(np.asarray(claim, dtype=np.float64))
        hits = always + len(turns) - int(np.searchsorted(turns, room))
        return (hits + self._added) / (len(self._sums) + self._added)

    def _turning(self, claim: FloatArray) -> tuple[int, FloatArray]:
        """Give the room up to which each subset contradicts the claim, sorted, and how many do
        whatever the room is."""
        key = claim.tobytes()
        if key not in self._turns:
            value, size = self._slack - self._sums @ claim, self._sums[:, -1]
            turns = np.sort(value[size > 0] / size[size > 0])
            self._turns[key] = int((value[size <= 0] >= 0).sum()), turns
        return self._turns[key]


class BoundedMean:
    """Gaffke's test: needs no symmetry, and allows for one cluster that was not drawn
    (`bounded.p_mean_above`)."""

    def __init__(self, table: ArrayLike) -> None:
        self._table: FloatArray = np.asarray(table, dtype=np.float64)

    def p_positive(self, claim: ArrayLike, room: float, unseen: float) -> float:
        values = self._table @ np.asarray(claim, dtype=np.float64) + room * self._table[:, -1]
        if unseen >= 0:  # no cluster can contradict it
            return 0.0 if values.max(initial=0.0) > 0 else 1.0
        # Sums that are equal but for rounding are one value, so that they are summed up as one.
        return p_mean_above(np.round(values, _DIGITS), unseen)


def lower_limit(
    p_above: Callable[[float], float], level: float, ends: tuple[float, float]
) -> float:
    """Return the largest value that the truth is shown to lie above, within `ends`.

    Args:
        p_above: The p-value of "the truth is above this value"; it never falls with the value.
        level: The significance level of the one-sided test.
        ends: The smallest and the largest possible value.
    """
    below, above = ends
    if p_above(below) > level:
        return below
    for _ in range(_STEPS):
        middle = (below + above) / 2
        below, above = (middle, above) if p_above(middle) <= level else (below, middle)
    return below
