"""Whether the judge tells texts apart at all."""

from evenhand.findings.check import Check
from evenhand.instruments.judge.checks._check import JudgeCheck
from evenhand.instruments.judge.evidence import Evidence


class Scale(JudgeCheck):
    """The check that marks differ. A judge that gives everything the same mark is even-handed, and
    no judge; nor is one of whom no mark can be read."""

    name, label, unit = "scale", "marks differ", "points, standard deviation"
    required = True

    def check(self, evidence: Evidence) -> Check:
        scale, n = evidence.scale, evidence.coverage.single.scored
        distinct = scale.distinct
        said = {0: "no mark could be read", 1: "every text is the same to it"}
        return self.found(
            "pass" if distinct > 1 else "fail",
            said.get(distinct, f"{distinct} different marks for {n} texts"),
            value=scale.sd,
            bar="above 0",
            n=n,
            details={"mean": scale.mean, "distinct": distinct},
        )
