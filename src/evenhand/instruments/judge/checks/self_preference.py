"""Whether the judge prefers the texts of its own model."""

import polars as pl

from evenhand.errors import Undefined
from evenhand.findings.check import Check, ends
from evenhand.instruments.judge.checks._check import JudgeCheck, if_too_few, state_within
from evenhand.instruments.judge.evidence import Evidence
from evenhand.instruments.judge.probes import OWN
from evenhand.statistics.clusters import naive_mean


class SelfPreference(JudgeCheck):
    """The check of how much more often than another family's judge it takes the text of its own
    model."""

    name, label = "self_preference", "own model's texts"
    unit = "win rate − that by the other judge"

    def check(self, evidence: Evidence) -> Check:
        asked, margin = evidence.probes(OWN), evidence.margins.win_rate
        if asked.is_empty():
            return self.not_measured("needs a model of another family (--other)")
        both = asked.drop_nulls(["preferred", "preferred_by_other"])
        try:
            more = naive_mean((both["preferred"] - both["preferred_by_other"]).to_numpy())
        except Undefined as reason:
            return self.not_measured(str(reason))
        own, by_other = (_mean(both[name]) for name in ("preferred", "preferred_by_other"))
        return self.found(
            state_within(more, margin),
            f"takes its own model's text {own:.0%} of the time, the other judge {by_other:.0%}"
            + if_too_few(more.clusters),
            **ends(more),
            n=more.clusters,
            margin=margin,
            details={"own": own, "own_by_other": by_other},
        )


def _mean(values: pl.Series) -> float:
    return float(values.to_numpy().mean())
