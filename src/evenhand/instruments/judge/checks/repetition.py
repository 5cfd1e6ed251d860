"""How far the marks move when the same question is asked again."""

from evenhand.findings.audit import Decided
from evenhand.instruments.judge.checks._check import JudgeCheck
from evenhand.instruments.judge.evidence import JudgeEvidence


class Repetition(JudgeCheck):
    """The spread within a question: a number, for no margin was set."""

    name, label = "repetition", "asked again"
    unit = "points, standard deviation within a question"

    def check(self, evidence: JudgeEvidence) -> Decided:
        score, preferred = evidence.repeats["score"], evidence.repeats["preferred"]
        if score is None:
            return self.not_measured("every question was asked once (--repeats)")
        return self.found(
            "measured",
            f"{score.identical:.0%} of questions are answered alike each time",
            value=score.deviation,
            n=score.questions,
            details={
                "identical": score.identical,
                "preferred_identical": preferred.identical if preferred else None,
            },
        )
