"""Whether the marks tell texts apart.

A judge that gives nearly every text the same mark treats all authors alike and judges nothing; so
does one whose marks are chance. Both would pass every other check. So the marks of two texts have
to differ by more than those of one text under two labels, and by as much as the margin of a label
at least: where texts differ by less, hardly anything that a label does could be seen.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.errors import Undefined
from evenhand.findings.audit import Decided, State, ends
from evenhand.findings.measures import AuditBound
from evenhand.instruments.judge.checks._check import FEWEST_BASES, JudgeCheck, if_too_few
from evenhand.instruments.judge.effects import SCORE_MARGIN
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins
from evenhand.instruments.judge.probes import DESIGN
from evenhand.statistics.clusters import Interval, naive_mean
from evenhand.statistics.metrics import malibu

# Our choice: the default margin of a label, whatever margin an audit sets.
LEAST = SCORE_MARGIN
_Floats = NDArray[np.float64]


class ScaleCheck(JudgeCheck):
    """The check that marks carry information on the texts.

    Its number is the mean difference of the marks of two texts of different bases, minus that of
    two marks of one text under different labels. It passes where this is shown to be above the bar,
    a mark that is missing counting as equal to every other. It fails where the first part alone, of
    the marks that are there, is shown to be below the bar.
    """

    name, label = "scale", "marks tell texts apart"
    unit = "points that two texts differ by, beyond one text under two labels"

    def allowed(self, margins: Margins) -> AuditBound:
        del margins
        return AuditBound(above=LEAST)

    def check(self, evidence: JudgeEvidence) -> Decided:
        judged = malibu.single(evidence.probes(DESIGN))
        n = judged["combined"].count()
        if not n:
            return self.not_measured("no mark could be read")
        try:
            apart = told_apart(judged)
        except Undefined as reason:
            return self.not_measured(str(reason))
        scale, bases = evidence.scale, apart.between.clusters
        return self.found(
            _state(apart, bases),
            f"two texts differ by {apart.between.estimate:.2f} points, one text under two labels "
            f"by {apart.within:.2f}; {scale.distinct} different marks for {n} texts"
            + if_too_few(bases),
            **ends(apart.beyond),
            n=n,
            details={
                "mean": scale.mean,
                "sd": scale.sd,
                "distinct": scale.distinct,
                "between": apart.between.estimate,
                "within": apart.within,
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSpread:
    """How far apart marks are, in points."""

    between: Interval  # of two texts of different bases, where both have a mark
    within: float  # of one text under two labels
    beyond: Interval  # the first minus the second, a missing mark equal to every other


def told_apart(judged: pl.DataFrame) -> MarkSpread:
    """How far the marks of two texts lie apart, and those of one text under two labels.

    Both are means of |x − y| over pairs of marks (Gini 1912). Intervals are by t over the
    jackknife's pseudo-values of the bases (Tukey 1958), with G − 1 degrees of freedom. Range: 0 to
    10, the difference from −10. Undefined: fewer than two bases.
    """
    texts = [name for name in malibu.CELL if name in judged.columns]
    wide = judged.pivot(
        on="label", index=texts, values="combined", aggregate_function="first", sort_columns=True
    )
    marks = wide.drop(texts).to_numpy().astype(np.float64)
    names, base_index = np.unique(wide["base"].to_numpy(), return_inverse=True)
    if len(names) < 2:
        raise Undefined("fewer than two bases")
    far, readable, total = (np.zeros((len(names), len(names))) for _ in range(3))
    cells = (base_index[:, None], base_index[None, :])
    for column in marks.T:  # two texts under the same label
        apart = np.abs(column[:, None] - column[None, :])
        np.add.at(far, cells, np.nan_to_num(apart))
        np.add.at(readable, cells, np.isfinite(apart))
        np.add.at(total, cells, 1.0)
    within = _within(marks, base_index, len(names))
    return MarkSpread(
        between=_over_bases(_without_each(far, readable)),
        within=float(within[-1]),
        beyond=_over_bases(_without_each(far, total) - within),
    )


def _without_each(sums: _Floats, counts: _Floats) -> _Floats:
    """The mean over pairs of two bases without each base in turn, and last that of all."""
    parts = []
    for table in (sums, counts):
        apart = table - np.diag(np.diag(table))
        parts.append(np.append(apart.sum() - 2 * apart.sum(axis=1), apart.sum()))
    return _ratio(*parts)


def _within(marks: _Floats, base_index: NDArray[np.intp], bases: int) -> _Floats:
    """The same over pairs of labels on one text."""
    apart = np.abs(marks[:, :, None] - marks[:, None, :])
    readable = np.isfinite(apart) & ~np.eye(marks.shape[1], dtype=bool)
    parts = []
    for table in (np.where(readable, apart, 0.0), readable.astype(np.float64)):
        per_base = np.bincount(base_index, table.sum(axis=(1, 2)), bases)
        parts.append(np.append(per_base.sum() - per_base, per_base.sum()))
    return _ratio(*parts)


def _ratio(sums: _Floats, counts: _Floats) -> _Floats:
    ratios: _Floats = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    return ratios


def _over_bases(values: _Floats) -> Interval:
    *without, total = values
    bases = len(without)
    return naive_mean(bases * total - (bases - 1) * np.asarray(without))


def _state(apart: MarkSpread, bases: int) -> State:
    if bases < FEWEST_BASES:
        return "inconclusive"
    if apart.between.high < LEAST:
        return "fail"
    return "pass" if apart.beyond.low > LEAST else "inconclusive"
