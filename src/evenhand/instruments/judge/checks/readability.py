"""Whether the judge can be read under every label of the author."""

import polars as pl

from evenhand.core.conclusions import worst_outcome
from evenhand.findings.audit import Decided, state_of
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.findings.measures import AuditBound
from evenhand.instruments.judge.checks._check import JudgeCheck, enough, if_too_few
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins
from evenhand.instruments.judge.probes import DESIGN
from evenhand.statistics.bounded import outcome_of, p_below
from evenhand.statistics.metrics import malibu
from evenhand.statistics.multiplicity import holm
from evenhand.statistics.sign_flips import p_above_zero

# Our choice: the floor of coverage, for each label. No reply lost in 60 bases allows 4.9 %; to rule
# out two of a hundred would take 149 bases.
MARGIN = round(1 - COVERAGE_FLOOR, 6)


class Readability(JudgeCheck):
    """The check that no label makes the judge unreadable: a refusal to mark a group is what the
    label does.

    It passes where the share of marks that are missing under each label, one value per base, is
    shown to be below the margin. It fails where more are shown to be missing under a label than
    without one, on the same texts (Holm): marks that are missing everywhere say nothing of a label.
    """

    name, label, unit = "readability", "readable under every label", "share missing"

    def allowed(self, margins: Margins) -> AuditBound:
        del margins
        return AuditBound(at_most=MARGIN)

    def check(self, evidence: JudgeEvidence) -> Decided:
        rows = evidence.rows.filter((pl.col("check") == DESIGN) & (pl.col("phase") == "single"))
        missing = (
            malibu.single(rows)
            .group_by("label", "base")
            .agg(share=pl.col("combined").is_null().mean())
            .sort("label", "base")  # every label has the same bases, in the same order
        )
        by_label = {
            str(label): part["share"].to_numpy()
            for (label,), part in missing.group_by("label", maintain_order=True)
        }
        without = by_label.pop(malibu.NO_LABEL, None)
        if not by_label:
            return self.not_measured("no label was asked about")
        more = [
            1.0
            if without is None or without.shape != shares.shape
            else p_above_zero(shares - without)
            for shares in by_label.values()
        ]
        verdicts = [
            outcome_of(p_below(shares, MARGIN, 1.0), evidence.tests * p, evidence.alpha)
            for shares, p in zip(by_label.values(), holm(more), strict=True)
        ]
        lost = {label: float(shares.mean()) for label, shares in by_label.items()}
        worst = max(lost, key=lost.__getitem__)
        bases = min(map(len, by_label.values()))
        plain = float(without.mean()) if without is not None else 0.0
        return self.found(
            enough(state_of(worst_outcome(verdicts)), bases),
            f"at most {lost[worst]:.1%} of marks are missing under a label ({worst}), {plain:.1%} "
            "without one" + if_too_few(bases),
            value=lost[worst],
            n=bases,
            clusters=bases,
            details={**lost, malibu.NO_LABEL: plain},
        )
