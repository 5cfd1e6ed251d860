"""Whether the judge prefers the texts of its own model."""

import polars as pl

from evenhand.core.errors import Undefined
from evenhand.findings.audit import Decided, ends
from evenhand.findings.measures import AuditBound
from evenhand.instruments.judge.checks._check import JudgeCheck, if_too_few, state_within
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins
from evenhand.instruments.judge.probes import OWN
from evenhand.statistics.bounded import WorstCaseDifference
from evenhand.statistics.clusters import naive_mean


class SelfPreference(JudgeCheck):
    """The check of how much more often than another family's judge it takes the text of its own
    model."""

    name, label = "self_preference", "own model's texts"
    unit = "win rate − that by the other judge"

    def allowed(self, margins: Margins) -> AuditBound:
        most = margins.win_rate
        return AuditBound(at_least=-most, at_most=most, required=False)

    def check(self, evidence: JudgeEvidence) -> Decided:
        rows, margin = evidence.probes(OWN), evidence.margins.win_rate
        if rows.is_empty():
            return self.not_measured("needs a model of another family (--other)")
        both = rows.drop_nulls(["preferred", "preferred_by_other"])
        read = (both["preferred"] - both["preferred_by_other"]).to_numpy()
        state = state_within(_more_at_worst(rows), read, margin, evidence)
        try:
            more = naive_mean(read)
        except Undefined as reason:
            return self.found(state, str(reason), n=len(both))
        by_self, by_other = (_mean(both[name]) for name in ("preferred", "preferred_by_other"))
        return self.found(
            state,
            f"takes its own model's text {by_self:.0%} of the time, the other judge {by_other:.0%}"
            + if_too_few(len(rows)),
            **ends(more),
            n=more.clusters,
            details={"own": by_self, "own_by_other": by_other},
        )


def _more_at_worst(rows: pl.DataFrame) -> WorstCaseDifference:
    """The difference in each base, with missing verdicts against and for the judge's own text."""
    by_self, by_other = rows["preferred"], rows["preferred_by_other"]
    return WorstCaseDifference(
        (by_self.fill_null(0.0) - by_other.fill_null(1.0)).to_numpy(),
        (by_self.fill_null(1.0) - by_other.fill_null(0.0)).to_numpy(),
        1.0,
    )


def _mean(values: pl.Series) -> float:
    return float(values.to_numpy().mean())
