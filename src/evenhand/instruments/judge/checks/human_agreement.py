"""Whether the judge agrees with what people said of the same texts."""

from dataclasses import asdict, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.conclusions import Outcome
from evenhand.core.errors import Undefined
from evenhand.findings.audit import Decided, State
from evenhand.findings.judge_vs_human import agreement_over
from evenhand.instruments.judge.checks._check import JudgeCheck
from evenhand.instruments.judge.evidence import JudgeEvidence
from evenhand.instruments.judge.probes import HUMAN
from evenhand.statistics.agreement import weighted_of_totals, weighted_sums
from evenhand.statistics.bounded import ALPHA
from evenhand.statistics.metrics import malibu
from evenhand.statistics.metrics.scorer_quality import auroc_interval, calibration

_Floats = NDArray[np.float64]


class HumanAgreement(JudgeCheck):
    """The check against labels of people: yes or no by AUROC, Brier and ECE; marks by weighted
    kappa."""

    name, label = "human_agreement", "agrees with people"

    def check(self, evidence: JudgeEvidence) -> Decided:
        labelled = malibu.single(evidence.probes(HUMAN))
        if labelled.is_empty():
            return self.not_measured("no labels were given (--labels)")
        if {"true", "false"} & set(labelled["human"]):
            return self._yes_or_no(labelled)
        marked = labelled.drop_nulls("combined")
        if marked.is_empty():
            return self.not_measured("no text was marked")
        people = np.array([float(label) for label in marked["human"]])
        return self._marks(marked["combined"].to_numpy(), people)

    def _yes_or_no(self, labelled: pl.DataFrame) -> Decided:
        """A mark that is missing is the wrong one for a pass, and the right one for a fail: a text
        left unmarked shows neither."""
        if labelled["combined"].null_count() == len(labelled):
            return self.not_measured("no text was marked")
        against, in_favor = (_filled(labelled, right=right) for right in (False, True))
        labels = (labelled["human"] == "true").to_list()
        check = self._auroc(against, labels)
        if check.outcome is Outcome.DETECTED:
            at_best = self._auroc(in_favor, labels)
            if at_best.outcome is not Outcome.DETECTED:
                return replace(check, outcome=Outcome.INCONCLUSIVE)
        return check

    def _auroc(self, probabilities: _Floats, labels: list[bool]) -> Decided:
        result = calibration(probabilities.tolist(), labels)
        try:
            low, high, p = auroc_interval(probabilities.tolist(), labels)
        except Undefined as reason:
            return self.not_measured(str(reason))
        assert result.auroc is not None  # there are both labels
        significant = p <= ALPHA
        state: State = (
            "inconclusive" if not significant else "pass" if result.auroc > 0.5 else "fail"
        )
        tells = (
            "tells good from bad" if significant else "at chance: not shown to tell good from bad"
        )
        details = {name: value for name, value in asdict(result).items() if name != "n"}
        return self.found(
            state,
            f"AUROC {result.auroc:.2f}: {'turned around' if state == 'fail' else tells}",
            unit="AUROC",
            value=result.auroc,
            low=low,
            high=high,
            n=result.n,
            details={**details, "p": p},
        )

    def _marks(self, marks: _Floats, labels: _Floats) -> Decided:
        sums = weighted_sums(marks, labels)
        kappa = agreement_over("kappa", lambda: (sums, weighted_of_totals), range(len(marks)))
        gap = float((marks - labels).mean())
        return self.found(
            "measured",
            f"{gap:+.2f} points above people's marks on average",
            unit="quadratic weighted kappa",
            value=kappa.value,
            low=kappa.low,
            high=kappa.high,
            n=len(marks),
            undefined=kappa.undefined,
            details={"mean_difference": gap},
        )


def _filled(labelled: pl.DataFrame, *, right: bool) -> _Floats:
    """The marks of texts as shares of the scale, with those that are missing as right as can be,
    or as wrong."""
    is_good = pl.col("human") == "true"
    top = pl.when(is_good if right else ~is_good).then(malibu.TOP).otherwise(0)
    return labelled.select(pl.col("combined").fill_null(top)).to_series().to_numpy() / malibu.TOP
