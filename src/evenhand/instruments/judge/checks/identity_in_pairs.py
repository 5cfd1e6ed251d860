"""Whether an identity of the author decides which of two texts is preferred."""

from dataclasses import replace

from evenhand.findings.audit import Check
from evenhand.instruments.judge.checks._labels import OfLabels
from evenhand.instruments.judge.evidence import Evidence
from evenhand.statistics.margins import verdict
from evenhand.statistics.multiplicity import holm


class IdentityInPairs(OfLabels):
    """The check of who is preferred, after Holm over the labels. It is not required: the design has
    few bases for each pair of labels."""

    name, label, unit = "identity_in_pairs", "identity, pairs", "win rate − ½"

    def check(self, evidence: Evidence) -> Check:
        effects = [
            e for e in evidence.exploratory if e.value == "win" and e.against == "all others"
        ]
        adjusted = holm([e.p for e in effects]) if effects else ()
        judged = [
            replace(e, verdict=verdict(e.p_equivalence, evidence.tests * p, evidence.alpha))
            for e, p in zip(effects, adjusted, strict=True)
        ]
        return self.of(judged, evidence.margins.win_rate)
