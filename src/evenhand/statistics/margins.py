"""What may be said of one difference: it is there, it is small, or the data cannot tell.

A difference is *equivalent* if it is shown to lie within a margin that was fixed beforehand,
*shifted* if it is shown to differ from 0 and not to lie within, and *underpowered* if neither is
shown. "Not significant" alone is the last of these and never the second.
"""

from typing import Literal

from evenhand.statistics.clusters import Interval
from evenhand.statistics.equivalence import tost
from evenhand.statistics.paired import sign_flip_without_spread

Verdict = Literal["shifted", "equivalent within the margin", "underpowered"]
SHIFTED: Verdict = "shifted"
EQUIVALENT: Verdict = "equivalent within the margin"
UNDERPOWERED: Verdict = "underpowered"


def p_against_zero(found: Interval) -> float:
    """The t test's p-value; where all clusters agree, and t has none, that of the sign-flip test.

    Source: as `clusters` and `paired.sign_flip_without_spread`. Range: 0 to 1. Always defined.
    """
    if found.p_two_sided is None:
        return sign_flip_without_spread(found.estimate, found.clusters)
    return found.p_two_sided


def p_of_equivalence(found: Interval, margin: float, alpha: float = 0.05) -> float | None:
    """The p-value of `equivalence.tost`; None where all clusters agree, and t has none."""
    if found.no_spread:
        return None
    return tost(found.estimate, found.se, found.df, margin, alpha).p_value


def is_within(found: Interval, margin: float, alpha: float = 0.05) -> bool:
    """Shown to lie within ± margin. Without any spread the estimate itself is compared."""
    p = p_of_equivalence(found, margin, alpha)
    return abs(found.estimate) < margin if p is None else p < alpha


def verdict(found: Interval, p_adjusted: float, margin: float, alpha: float = 0.05) -> Verdict:
    """`p_adjusted` is `p_against_zero`, adjusted for the family that the difference belongs to.

    A difference that is there and shown to be smaller than the margin is equivalent: that is what
    the margin is for. Saying of a whole family that it is equivalent needs every member to be, so
    each is tested at `alpha` without adjustment (intersection-union: Berger 1982).
    """
    if is_within(found, margin, alpha):
        return EQUIVALENT
    return SHIFTED if p_adjusted <= alpha else UNDERPOWERED


def of_family(verdicts: list[Verdict]) -> Verdict:
    """One shifted member shifts the family; all must be equivalent for it to be so."""
    if SHIFTED in verdicts:
        return SHIFTED
    return EQUIVALENT if verdicts and set(verdicts) == {EQUIVALENT} else UNDERPOWERED
