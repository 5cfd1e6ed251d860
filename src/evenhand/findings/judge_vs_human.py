"""How far a judge agrees with people, compared with how far people agree with each other."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from evenhand.core.errors import Undefined
from evenhand.findings.audit import AuditCheck, State, not_measured
from evenhand.findings.estimates import COVERAGE_FLOOR, Estimate
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.agreement import (
    JackknifeInterval,
    jackknife_agreement,
    jackknife_difference,
    weighted_of_totals,
    weighted_sums,
)
from evenhand.statistics.bootstrap import LEAST, Statistic, of_all
from evenhand.statistics.clusters import cluster_sums, clustered_mean

# Our choice: so much less than people agree with each other a judge may agree with them. Kappas of
# people differ by that much from study to study (paper 002, Tables 8 and 9: 0.67 to 0.79).
MARGIN = 0.1
NAME, LABEL = "human_agreement", "agreement with people"  # as the check of a certificate is called
_APART = (-10.0, 10.0)  # what two marks can differ by
_WIDTH = 5  # columns of `weighted_sums`


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
    judge_marks: FloatArray,
    marks: FloatArray,
    clusters: Sequence[Hashable],
    *,
    enough: bool,
) -> JudgeAgreement:
    """Compare a judge's ratings with those of people.

    Args:
        judge: The name of the judge.
        question: The question that both answered.
        judge_marks: The judge's rating of each text, NaN where there is none.
        marks: The ratings of people: a row per rater and a column per text, NaN where there is
            none.
        clusters: The cluster of each text.
        enough: Whether people gave enough ratings to compare a judge with them.
    """
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


def _pairs(pairs: Iterable[tuple[FloatArray, ...]], texts: int) -> FloatArray:
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


# With fewer clusters there is a value and no interval: as few as resampling asks for elsewhere.
TOO_FEW = f"open: an interval needs {LEAST} items"
_NO_SPREAD = "open: with all items, or with one left out, nobody disagrees"
Sums = Callable[[], tuple[FloatArray, Statistic]]


def agreement_over(name: str, compute: Sums, clusters: Sequence[Hashable]) -> Estimate:
    """Estimate an agreement from sums.

    Args:
        name: The name of the estimate.
        compute: Returns the sums and the statistic of their totals; may raise `Undefined`.
        clusters: The cluster of each row of the sums. Rows of zeros alone are not counted.
    """
    try:
        sums, statistic = compute()
        n, (table,) = _by_cluster(clusters, sums)
        value = of_all(table, statistic)
    except Undefined as reason:
        return Estimate(name=name, value=None, undefined=str(reason))
    estimate = Estimate(name=name, value=value, n=n, clusters=len(table))
    return _with_ends(estimate, lambda: jackknife_agreement(table, statistic))


def difference_over(
    name: str,
    first: FloatArray,
    second: FloatArray,
    statistic: Statistic,
    clusters: Sequence[Hashable],
) -> Estimate:
    """Estimate one agreement minus another, from the sums of both over the same rows.

    Args:
        name: The name of the estimate.
        first: The sums of the first agreement, one row per text.
        second: The sums of the agreement to subtract.
        statistic: Computes an agreement from totals.
        clusters: The cluster of each row.
    """
    try:
        n, both = _by_cluster(clusters, first, second)
        value = of_all(both[0], statistic) - of_all(both[1], statistic)
    except Undefined as reason:
        return Estimate(name=name, value=None, undefined=str(reason))
    estimate = Estimate(name=name, value=value, n=n, clusters=len(both[0]))
    return _with_ends(estimate, lambda: jackknife_difference(both[0], both[1], statistic))


def _by_cluster(
    clusters: Sequence[Hashable], *sums: FloatArray
) -> tuple[int, tuple[FloatArray, ...]]:
    """Count the rows that say anything, and add up their sums by cluster."""
    marked = np.any([(table != 0).any(axis=1) for table in sums], axis=0)
    kept = [cluster for cluster, is_marked in zip(clusters, marked, strict=True) if is_marked]
    if not kept:
        raise Undefined("no marks")
    return len(kept), tuple(cluster_sums(kept, *table[marked].T) for table in sums)


def _with_ends(estimate: Estimate, compute: Callable[[], JackknifeInterval]) -> Estimate:
    """Add the interval, or why there is none."""
    if estimate.clusters < LEAST:
        return replace(estimate, undefined=TOO_FEW)
    try:
        ends = compute()
    except Undefined:
        return replace(estimate, undefined=_NO_SPREAD)
    return replace(estimate, low=ends.low, high=ends.high)


def mean_over(
    name: str, values: FloatArray, clusters: Sequence[Hashable], within: tuple[float, float]
) -> Estimate:
    """Estimate a mean with a t interval over clusters. A single cluster has a mean but no interval.

    Args:
        name: The name of the estimate.
        values: One number per row.
        clusters: The cluster of each row.
        within: The smallest and the largest possible value.
    """
    estimate = Estimate.of(name, lambda: clustered_mean(values, clusters), within)
    if estimate.value is not None or not values.size:
        return estimate
    return replace(estimate, value=float(values.mean()), n=values.size, clusters=len(set(clusters)))
