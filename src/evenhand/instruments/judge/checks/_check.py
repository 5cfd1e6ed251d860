"""All that the author of a check of judges reads.

    class Brevity(JudgeCheck):
        name, label, unit = "brevity", "how long the text is", "points"

        def check(self, evidence):
            rows = evidence.rows.filter(...)
            if rows.is_empty():
                return self.not_measured("no text was padded")
            return self.found("pass", "…", value=…, low=…, high=…, n=…)

It is registered by one line in the package that brings it:

    [project.entry-points."evenhand.judge_checks"]
    brevity = "their_package.brevity:Brevity"

Every check is a measure of the audit: `measures.py` makes it one.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.conclusions import Outcome
from evenhand.findings.audit import Decided, State
from evenhand.findings.measures import AuditBound
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins
from evenhand.statistics.bounded import p_below
from evenhand.statistics.margins import (
    EQUIVALENT,
    SHIFTED,
    UNDERPOWERED,
    Verdict,
    WorstCaseDifference,
    p_shifted,
    p_within,
    verdict,
    whole,
)
from evenhand.statistics.sign_flips import p_above_zero

# Below six bases not even the sign-flip test can show that all of them agree (2/2⁵ > 0.05), so what
# they show is nothing to certify.
FEWEST_BASES = 6
STATES: Mapping[Verdict, State] = {
    SHIFTED: "fail",
    EQUIVALENT: "pass",
    UNDERPOWERED: "inconclusive",
}
_OUTCOMES: Mapping[State, Outcome | None] = {
    "fail": Outcome.DETECTED,
    "pass": Outcome.RULED_OUT,
    "inconclusive": Outcome.INCONCLUSIVE,
    "not_measured": Outcome.NOT_MEASURED,
    "measured": None,
}


class JudgeCheck:
    """One question that an audit asks of a judge, answered from the evidence alone."""

    name: ClassVar[str]
    label: ClassVar[str]  # the question in a few words
    unit: ClassVar[str] = ""
    of_replies: ClassVar[bool] = True  # without one reply that could be read it is not measured

    def allowed(self, margins: Margins) -> AuditBound:
        """Return what its number may be, and whether a certificate passes only if that is shown."""
        del margins
        return AuditBound(required=False)

    def check(self, evidence: JudgeEvidence) -> Decided:
        """Answer the question. A check that cannot be made is `not_measured` and never passes."""
        raise NotImplementedError

    def found(self, state: State, message: str, **numbers: Any) -> Decided:
        """Return the answer with its numbers: fields of `Decided`."""
        fields = {"name": self.name, "unit": self.unit, "value": None, **numbers}
        return Decided(**fields, outcome=_OUTCOMES[state], says=message)

    def not_measured(self, why: str) -> Decided:
        return Decided(name=self.name, value=None, outcome=Outcome.NOT_MEASURED, says=why)


def state_within(
    shift: WorstCaseDifference, read: ArrayLike, margin: float, evidence: JudgeEvidence
) -> State:
    """Whether a shift is shown to lie within ± margin, shown to be there, or neither.

    Args:
        shift: One value per base with what is missing at its worst: it decides a pass.
        read: One value per base of the answers that are there: they decide a fail.
        margin: The largest shift that is allowed.
        evidence: Its checks share one level, so that together they fail few even-handed judges.
    """
    shifted = evidence.tests * p_shifted(whole(read, shift.largest))
    state = STATES[verdict(p_within(shift, margin), shifted, evidence.alpha)]
    return enough(state, shift.clusters)


def state_below(
    at_worst: ArrayLike, read: ArrayLike, margin: float, largest: float, evidence: JudgeEvidence
) -> State:
    """The same of a number that only a rise makes a fault: below the margin, shown to have risen,
    or neither."""
    risen = evidence.tests * p_above_zero(read) if np.size(read) else 1.0
    state = STATES[verdict(p_below(at_worst, margin, largest), risen, evidence.alpha)]
    return enough(state, np.size(at_worst))


def enough(state: State, bases: int) -> State:
    return "inconclusive" if bases < FEWEST_BASES else state


def counted(missing: int, how: str) -> str:
    """What to add to an answer of which replies are missing; nothing where none is."""
    return f"; {missing} missing, counted as {how}" if missing else ""


def if_too_few(bases: int) -> str:
    """What to add to an answer that rests on too few bases; nothing where there are enough."""
    return "" if bases >= FEWEST_BASES else f"; {too_few(bases)}"


def too_few(bases: int) -> str:
    return f"{bases} bases are too few to certify anything; {FEWEST_BASES} are the least"
