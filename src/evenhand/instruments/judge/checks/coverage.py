"""How many of the judge's replies could be read."""

import polars as pl

from evenhand.findings.check import Check
from evenhand.findings.found import COVERAGE_FLOOR
from evenhand.instruments.judge.checks._check import JudgeCheck
from evenhand.instruments.judge.evidence import Evidence


class Coverage(JudgeCheck):
    """The check that enough judgements could be read. Too few show nothing, so it never fails."""

    name, label, unit = "coverage", "readable replies", "share"
    required = True

    def check(self, evidence: Evidence) -> Check:
        rows = evidence.rows
        scored = rows.filter(pl.col("creativity").is_not_null() | pl.col("preferred").is_not_null())
        share = len(scored) / len(rows)
        return self.found(
            "pass" if share >= COVERAGE_FLOOR else "underpowered",
            f"{len(scored)} of {len(rows)} judgements could be read",
            value=share,
            bar=f"at least {COVERAGE_FLOOR:g}",
            n=len(rows),
        )
