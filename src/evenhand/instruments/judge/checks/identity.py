"""Whether an identity of the author moves the marks."""

from evenhand.findings.audit import Check
from evenhand.instruments.judge.checks._labels import OfLabels
from evenhand.instruments.judge.evidence import Evidence


class Identity(OfLabels):
    """The check of each identity against no label, after Holm; each is within the margin by two
    one-sided tests."""

    name, label, unit = "identity", "identity, marks", "points"
    required = True

    def check(self, evidence: Evidence) -> Check:
        return self.of(evidence.primary, evidence.margins.score)
