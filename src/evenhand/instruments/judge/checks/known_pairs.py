"""Whether the judge tells the better of two answers, where it is known which one that is.

A judge that looks at no author and has no favourite place may still be a bad one. LLMBar and
EvalBiasBench have pairs of answers of which one is the better, and each is asked in both orders.
"""

import polars as pl

from evenhand.findings.audit import Decided, State
from evenhand.findings.measures import AuditBound
from evenhand.instruments._judge_pairs import BETTER_FIRST
from evenhand.instruments.judge.checks._check import JudgeCheck, counted
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins
from evenhand.statistics.proportions import clopper_pearson

# Whoever picks by anything but the quality of the answers is right in both orders for at most half
# of the pairs: always by length, say, or always the first (none of them).
CHANCE = 0.5
MARGIN = 0.1  # our choice, fixed before looking: so far above chance it has to be shown to lie
_ORDERS = 2


class KnownPairs(JudgeCheck):
    """The check that the judge is right about clearly more pairs than chance, in both orders.

    A verdict that is missing counts as a wrong one for the pass, and as a right one for the fail:
    silence is no evidence that a judge is good, nor that it is bad.
    """

    unit = "share of pairs right in both orders"

    def allowed(self, margins: Margins) -> AuditBound:
        del margins
        return AuditBound(above=CHANCE + MARGIN, required=False)

    def check(self, evidence: JudgeEvidence) -> Decided:
        rows = evidence.probes(self.name)
        if rows.is_empty():
            return self.not_measured(f"not checked (--known-pairs {self.name})")
        missing = rows["preferred"].null_count()
        if missing == len(rows):
            return self.not_measured("no verdict could be read")
        pairs = _by_pair(rows)
        right, possibly, n = int(pairs["right"].sum()), int(pairs["possibly"].sum()), len(pairs)
        least, most = clopper_pearson(right, n), clopper_pearson(possibly, n)
        bar = CHANCE + MARGIN
        return self.found(
            _state(least.low, most.high, bar),
            f"right in both orders about {right} of {n} pairs; it has to be shown to be above "
            f"{bar:.0%}" + counted(missing, "wrong in a pass, as right in a fail"),
            value=least.estimate,
            low=least.low,
            high=most.high,
            n=n,
            clusters=n,
            details={"bar": bar, "missing": missing, **_by_kind(pairs)},
        )


class LlmBarCheck(KnownPairs):
    """The check on LLMBar: does it see which answer follows the instruction?"""

    name, label = "llmbar", "tells the better of two answers (LLMBar)"


class EvalBiasBenchCheck(KnownPairs):
    """The check on EvalBiasBench: is it taken in by length, detail or familiar words?"""

    name, label = "evalbiasbench", "tells the better of two answers (EvalBiasBench)"


def _by_pair(rows: pl.DataFrame) -> pl.DataFrame:
    """One row a pair: its kind, whether both verdicts are there and right, and whether none is
    there that is wrong."""
    first = pl.col("preferred")
    better = pl.when(pl.col("order") == BETTER_FIRST).then(first).otherwise(1 - first)
    return (
        rows.with_columns(picked=better > 0.5)
        .group_by("base", maintain_order=True)
        .agg(
            pl.col("probe").first(),
            right=(pl.len() == _ORDERS) & pl.col("picked").fill_null(False).all(),
            possibly=pl.col("picked").fill_null(True).all(),
        )
    )


def _by_kind(pairs: pl.DataFrame) -> dict[str, float]:
    shares = pairs.group_by("probe", maintain_order=True).agg(pl.col("right").mean())
    return {str(kind): float(share) for kind, share in shares.iter_rows()}


def _state(low: float, high: float, bar: float) -> State:
    if low > bar:
        return "pass"
    return "fail" if high < bar else "inconclusive"
