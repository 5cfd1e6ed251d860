"""How many of the judge's replies could be read."""

import polars as pl

from evenhand.findings.audit import Decided
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.findings.measures import AuditBound
from evenhand.instruments.judge.checks._check import JudgeCheck
from evenhand.instruments.judge.evidence import READ, JudgeEvidence, Margins
from evenhand.instruments.judge.probes import DESIGN, INJECTION


class CoverageCheck(JudgeCheck):
    """The check that enough judgements could be read. Too few show nothing, so it never fails.

    Its number is of the design and the requests, which the required checks rest on. It passes only
    if enough could be read of each set by itself: what is well read in one says nothing of what is
    missing in another.
    """

    name, label, unit = "coverage", "readable replies", "share"
    of_replies = False

    def allowed(self, margins: Margins) -> AuditBound:
        del margins
        return AuditBound(at_least=COVERAGE_FLOOR)

    def check(self, evidence: JudgeEvidence) -> Decided:
        sets = _counted(evidence.rows)
        needed = sets.filter(pl.col("check").is_in((DESIGN, INJECTION)))
        n, scored = int(needed["n"].sum()), int(needed["scored"].sum())
        worst = sets.row(0, named=True)
        message = f"{scored} of {n} judgements could be read"
        if worst["share"] < COVERAGE_FLOOR and len(sets) > 1:
            message += f"; fewest of {worst['check']}: {worst['scored']} of {worst['n']}"
        return self.found(
            "pass" if worst["share"] >= COVERAGE_FLOOR else "inconclusive",
            message,
            value=scored / n,
            n=n,
        )


def _counted(rows: pl.DataFrame) -> pl.DataFrame:
    """One row for each set that was asked: how many judgements it has, how many could be read, and
    their share; the smallest first."""
    counted = rows.group_by("check", maintain_order=True).agg(n=pl.len(), scored=READ.sum())
    return counted.with_columns(share=pl.col("scored") / pl.col("n")).sort("share")
