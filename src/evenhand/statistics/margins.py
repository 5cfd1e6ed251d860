"""What may be said of one difference: it is there, it is small, or the data cannot tell.

A difference is *equivalent* if it is shown to lie within a margin that was fixed beforehand,
*shifted* if it is shown to differ from 0 and not to lie within, and *inconclusive* if neither is
shown. "Not significant" alone is the last of these and never the second.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.statistics._shared import FloatArray
from evenhand.statistics.bounded import p_below
from evenhand.statistics.sign_flips import p_two_sided

ALPHA = 0.05

Verdict = Literal["shifted", "equivalent within the margin", "inconclusive"]
SHIFTED: Verdict = "shifted"
EQUIVALENT: Verdict = "equivalent within the margin"
UNDERPOWERED: Verdict = "inconclusive"


@dataclass(frozen=True, slots=True)
class WorstCaseDifference:
    """A difference has one value per cluster, twice: with what is missing put where it makes the
    value smallest, and where it makes it largest. Where nothing is missing the two are one.

    `largest` is the largest value, on either side of 0, that a cluster not yet seen may have.
    """

    low: FloatArray
    high: FloatArray
    largest: float

    @property
    def clusters(self) -> int:
        return len(self.low)


def whole(values: ArrayLike, largest: float) -> WorstCaseDifference:
    """A difference of which nothing is missing."""
    per_cluster = np.asarray(values, dtype=np.float64)
    return WorstCaseDifference(per_cluster, per_cluster, largest)


def p_shifted(found: WorstCaseDifference) -> float:
    """The p-value against 0, two-sided: sign flips, with what is missing at its worst.

    Twice the smaller of two one-sided p-values. Source: `sign_flips`. Range: 0 to 1.
    """
    if not found.clusters:
        return 1.0
    return p_two_sided(found.high, -found.low)


def p_within(found: WorstCaseDifference, margin: float) -> float:
    """The p-value of lying within ± margin: the larger of two one-sided ones, with what is missing
    at its worst. Source: Schuirmann 1987 for the two sides, `bounded.p_below` for each."""
    if not found.clusters:
        return 1.0
    sides = (p_below(-found.low, margin, found.largest), p_below(found.high, margin, found.largest))
    return max(sides)


def verdict(within: float, shifted: float, alpha: float = ALPHA) -> Verdict:
    """The verdict that two p-values give: `p_within`, and `p_shifted` adjusted for the family that
    the difference belongs to.

    A difference that is there and shown to be smaller than the margin is equivalent: that is what
    the margin is for. Saying of a whole family that it is equivalent needs every member to be, so
    each is tested at `alpha` without adjustment (intersection-union: Berger 1982).
    """
    if within < alpha:
        return EQUIVALENT
    return SHIFTED if shifted <= alpha else UNDERPOWERED


def of_family(verdicts: list[Verdict]) -> Verdict:
    """One shifted member shifts the family; all must be equivalent for it to be so."""
    if SHIFTED in verdicts:
        return SHIFTED
    return EQUIVALENT if verdicts and set(verdicts) == {EQUIVALENT} else UNDERPOWERED
