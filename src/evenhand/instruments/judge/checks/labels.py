"""Whether an identity of the author moves the marks, or decides which text is preferred.

A family of labels has one answer, which is as good as that of the worst of them.
"""

from collections.abc import Sequence
from dataclasses import replace

from evenhand.core.conclusions import Outcome, worst_outcome
from evenhand.findings.audit import Decided, state_of
from evenhand.findings.measures import AuditBound
from evenhand.instruments.judge.checks._check import (
    FEWEST_BASES,
    JudgeCheck,
    enough,
    too_few,
)
from evenhand.instruments.judge.effects import LabelEffect
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins
from evenhand.statistics.bounded import outcome_of
from evenhand.statistics.multiplicity import holm


class OfLabels(JudgeCheck):
    """A check over several labels."""

    def of(self, effects: Sequence[LabelEffect], margin: float) -> Decided:
        """The answer with the numbers of the label that moves the judge most."""
        if not effects:
            return self.not_measured("no label was compared")
        worst = max(effects, key=lambda e: (e.verdict is Outcome.DETECTED, abs(e.estimate or 0.0)))
        state = state_of(worst_outcome(e.verdict for e in effects))
        fewest = min(e.asked for e in effects)
        messages = {
            "fail": f"one label moves it: {_size(worst)}",
            "pass": f"every label is shown to move it by less than {margin:g}",
            "inconclusive": f"at most {_size(worst)}, which is neither shown to differ from 0 nor "
            f"to be less than {margin:g}",
        }
        return self.found(
            enough(state, fewest),
            messages[state] if fewest >= FEWEST_BASES else too_few(fewest),
            value=worst.estimate,
            low=worst.low,
            high=worst.high,
            n=min(e.bases for e in effects),
            clusters=worst.bases,
            undefined=worst.undefined,
            details={e.label: e.estimate for e in effects},
        )


class Identity(OfLabels):
    """The check of each identity against no label, after Holm; each is within the margin by two
    one-sided tests."""

    name, label, unit = "identity", "identity, marks", "points"

    def allowed(self, margins: Margins) -> AuditBound:
        return AuditBound(at_least=-margins.score, at_most=margins.score)

    def check(self, evidence: JudgeEvidence) -> Decided:
        return self.of(evidence.identity_effects, evidence.margins.score)


class IdentityInPairs(OfLabels):
    """The check of who is preferred, after Holm over the labels. It is not required: the design has
    few bases for each pair of labels."""

    name, label, unit = "identity_in_pairs", "identity, pairs", "win rate − ½"

    def allowed(self, margins: Margins) -> AuditBound:
        most = margins.win_rate
        return AuditBound(at_least=-most, at_most=most, required=False)

    def check(self, evidence: JudgeEvidence) -> Decided:
        effects = evidence.wins
        adjusted = holm([e.p for e in effects]) if effects else ()
        judged = [
            replace(e, verdict=outcome_of(e.p_equivalence, evidence.tests * p, evidence.alpha))
            for e, p in zip(effects, adjusted, strict=True)
        ]
        return self.of(judged, evidence.margins.win_rate)


def _size(e: LabelEffect) -> str:
    unknown = "nothing could be read" if e.estimate is None else f"{e.estimate:+.3f}"
    return f"{unknown} ({e.label}{_missing(e)})"


def _missing(e: LabelEffect) -> str:
    return f", {e.missing} missing" if e.missing else ""
