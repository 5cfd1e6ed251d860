"""A check of judges: how often does one give the mark that it gives most?"""

from evenhand.findings.audit import Decided, State
from evenhand.findings.measures import AuditBound
from evenhand.instruments.judge.checks import JudgeCheck
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins

MOST = 0.9  # our choice: a judge that nearly always says the same ranks nothing


class SameMark(JudgeCheck):
    """The check that the commonest mark is not given to nearly everything."""

    name, label, unit = "same_mark", "the commonest mark", "share"

    def allowed(self, margins: Margins) -> AuditBound:
        del margins
        return AuditBound(at_most=MOST, required=False)

    def check(self, evidence: JudgeEvidence) -> Decided:
        marks = evidence.rows["creativity"].drop_nulls()
        if marks.is_empty():
            return self.not_measured("no mark could be read")
        share = float(marks.value_counts()["count"].max() or 0) / len(marks)  # type: ignore[arg-type]
        state: State = "fail" if share > MOST else "pass"
        says = f"{share:.0%} of {len(marks)} marks are the same"
        return self.found(state, says, value=share, n=len(marks))
