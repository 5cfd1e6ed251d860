"""How far a judge agrees with people, held against how far people agree with each other."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenhand.findings.audit import AuditCheck, State, not_measured
from evenhand.findings.clustered_agreement import agreement_over, difference_over, mean_over
from evenhand.findings.estimates import COVERAGE_FLOOR, Estimate
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.agreement import weighted_of_totals, weighted_sums

# Our choice: so much less than people agree with each other a judge may agree with them. Kappas of
# people differ by that much from study to study (paper 002, Tables 8 and 9: 0.67 to 0.79).
MARGIN = 0.1
NAME, LABEL = "human_agreement", "agrees with people"  # as the check of a certificate is called
_APART = (-10.0, 10.0)  # what two marks can differ by
_WIDTH = 5  # columns of `weighted_sums`
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """The agreement of one judge with people on one question, as quadratic weighted kappas."""

    judge: str
    question: str
    scored: int  # texts that both the judge and people marked
    texts: int  # that people marked
    with_mean: Estimate  # with the mean mark of the raters
    with_each: Estimate  # with a rater, on average
    among_people: Estimate  # of a rater with another, on average
    behind: Estimate  # with_each minus among_people
    above: Estimate  # by how many points the judge's mark is higher than people's, on average
    check: AuditCheck

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.with_mean, self.with_each, self.among_people, self.behind, self.above)


def judge_agreement(
    judge: str,
    question: str,
    judge_marks: _Floats,
    marks: _Floats,
    clusters: Sequence[Hashable],
    *,
    enough: bool,
) -> JudgeAgreement:
    """Compare a judge's marks with those of people: `marks` has a row per rater and a column per
    text, NaN where there is none. `enough`: people gave so many of theirs that these can be held
    against anybody."""
    counts = (~np.isnan(marks)).sum(axis=0)
    people = np.where(counts > 0, np.nansum(marks, axis=0) / np.maximum(counts, 1), np.nan)
    each = _pairs(((judge_marks, rater) for rater in marks), len(judge_marks))
    among = _pairs(combinations(marks, 2), len(judge_marks))
    apart = judge_marks - people
    present = ~np.isnan(apart)
    with_people = weighted_sums(judge_marks, people)
    agreement = JudgeAgreement(
        judge=judge,
        question=question,
        scored=int(present.sum()),
        texts=int((counts > 0).sum()),
        with_mean=agreement_over("with_mean", lambda: (with_people, weighted_of_totals), clusters),
        with_each=agreement_over("with_each", lambda: (each, _kappas_mean), clusters),
        among_people=agreement_over("among_people", lambda: (among, _kappas_mean), clusters),
        behind=difference_over("behind", each, among, _kappas_mean, clusters),
        above=mean_over("above", apart[present], np.array(clusters)[present].tolist(), _APART),
        check=not_measured(NAME, "two raters or more are needed", label=LABEL),
    )
    return replace(agreement, check=_check(agreement, enough)) if among.any() else agreement


def _pairs(pairs: Iterable[tuple[_Floats, ...]], texts: int) -> FloatArray:
    """The sums of the weighted kappa of each two, side by side; those who share no text are left
    out."""
    sums = [weighted_sums(*two) for two in pairs]
    some = [table for table in sums if table.any()]
    return np.hstack(some or sums) if sums else np.zeros((texts, _WIDTH))


def _kappas_mean(totals: FloatArray) -> FloatArray:
    parts = np.split(totals, totals.shape[1] // _WIDTH, axis=1)
    return np.asarray(np.mean([weighted_of_totals(part) for part in parts], axis=0))


def _check(agreement: JudgeAgreement, enough: bool) -> AuditCheck:
    """It passes if the judge is shown to agree with people beyond chance, and less than the margin
    behind people themselves; a judge that leaves many texts unmarked is never shown to, nor is one
    where people left many marks out."""
    behind, each = agreement.behind, agreement.with_each
    state: State = "inconclusive"
    covered = agreement.scored >= COVERAGE_FLOOR * agreement.texts
    if behind.low is not None and behind.high is not None:
        beyond_chance = each.low is not None and each.low > 0
        if behind.high < -MARGIN:
            state = "fail"
        elif behind.low > -MARGIN and beyond_chance and covered and enough:
            state = "pass"
    few = "" if covered else f"; it marked {agreement.scored} of {agreement.texts} texts only"
    few += "" if enough else "; too many marks of people are missing"
    why = f" ({behind.undefined})" if behind.undefined else ""
    return AuditCheck(
        name=NAME,
        label=LABEL,
        state=state,
        says=_says(agreement) + few + why,
        unit="quadratic weighted kappa, judge minus people",
        value=behind.value,
        low=behind.low,
        high=behind.high,
        margin=MARGIN,
        n=agreement.scored,
        clusters=behind.clusters,
        undefined=behind.undefined,
        details={
            "with_each": each.value,
            "among_people": agreement.among_people.value,
            "with_mean": agreement.with_mean.value,
            "above": agreement.above.value,
        },
    )


def _says(agreement: JudgeAgreement) -> str:
    kappas = ["-" if e.value is None else f"{e.value:.2f}" for e in agreement.estimates[1:3]]
    return f"kappa {kappas[0]} with a rater, {kappas[1]} of a rater with another"
