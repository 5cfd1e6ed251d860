"""Whether an identity of the author decides which of two texts is preferred."""

from evenhand.findings.check import Check
from evenhand.instruments.judge.checks._labels import OfLabels
from evenhand.instruments.judge.evidence import Evidence


class IdentityInPairs(OfLabels):
    """The check of who is preferred. It is not required: the design has few bases for each pair of
    labels."""

    name, label, unit = "identity_in_pairs", "identity, pairs", "win rate − ½"

    def check(self, evidence: Evidence) -> Check:
        effects = [
            e for e in evidence.exploratory if e.value == "win" and e.against == "all others"
        ]
        return self.of(effects, evidence.margins.win_rate)
