"""The outcome of a statistical conclusion, the same type for every finding.

An effect is detected, ruled out beyond a margin, or neither. What a check or a change is called
follows from the outcome by a function; neither has a type of its own.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal


class Outcome(StrEnum):
    """What the data say about one effect, against a margin that was fixed beforehand."""

    DETECTED = "detected"  # the effect differs from none significantly, after correction
    RULED_OUT = "ruled_out"  # an effect as large as the margin is excluded
    INCONCLUSIVE = "inconclusive"  # neither: the data cannot tell
    NOT_MEASURED = "not_measured"  # no data that could tell


CheckResult = Literal["pass", "fail", "inconclusive", "error"]
ChangeResult = Literal["improved", "regressed", "inconclusive"]
GuardrailResult = Literal["violated", "non_inferior", "inconclusive"]

_CHECK_RESULTS: dict[Outcome, CheckResult] = {
    Outcome.DETECTED: "fail",
    Outcome.RULED_OUT: "pass",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.NOT_MEASURED: "error",
}


def check_result(harm: Outcome) -> CheckResult:
    """Return the result of a check that guards against an effect.

    Args:
        harm: The outcome for the effect that must not occur.

    Returns:
        "fail" where the effect is detected, "pass" where it is ruled out.
    """
    return _CHECK_RESULTS[harm]


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome of a family of effects: one that is detected decides, and all must be
    ruled out for the family to be so."""
    ordered = (Outcome.DETECTED, Outcome.INCONCLUSIVE, Outcome.NOT_MEASURED, Outcome.RULED_OUT)
    present = set(outcomes)
    return next((outcome for outcome in ordered if outcome in present), Outcome.NOT_MEASURED)
