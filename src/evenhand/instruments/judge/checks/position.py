"""Whether the slot that a text stands in decides which of two is preferred.

A tie counts half, so that a judge which decides few pairs cannot be far from one half, whatever it
does: with fewer than 2 × margin of its verdicts decided the check could not but pass. So a pass has
to show that more are decided, a missing verdict being none.
"""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.errors import Undefined
from evenhand.findings.audit import Decided, ends
from evenhand.findings.measures import AuditBound
from evenhand.instruments.judge.checks._check import JudgeCheck, counted, if_too_few, state_within
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins
from evenhand.instruments.judge.probes import DESIGN
from evenhand.instruments.judge.worst import LARGEST_WIN, worst
from evenhand.statistics.bounded import WorstCaseDifference, p_below
from evenhand.statistics.clusters import clustered_mean
from evenhand.statistics.metrics import malibu

FloatArray = NDArray[np.float64]


class Position(JudgeCheck):
    """The check of the first slot's share of wins, a tie counting half, against one half."""

    name, label, unit = "position", "position in a pair", "first slot's win rate − ½"

    def allowed(self, margins: Margins) -> AuditBound:
        return AuditBound(at_least=-margins.win_rate, at_most=margins.win_rate)

    def check(self, evidence: JudgeEvidence) -> Decided:
        pairs = evidence.probes(DESIGN).filter(pl.col("phase") == "pair")
        if pairs.is_empty():
            return self.not_measured("no pair was judged")
        margin = evidence.margins.win_rate
        read = pairs.drop_nulls("preferred")
        if read.is_empty():
            return self.not_measured("no verdict could be read")
        shift = _off_at_worst(pairs)
        state = state_within(shift, _off_per_base(read), margin, evidence)
        undecided = _undecided(pairs)
        decides = p_below(undecided, 1 - 2 * margin, 1.0) < evidence.alpha
        orders = evidence.pairs.all
        both = orders.both
        slot = both.first_slot_rate if both else None
        ties = "all verdicts are ties" if both else "no pair was read in both orders"
        wins = ties if slot is None else f"first slot wins {slot:.0%}"
        same = f"; same verdict in both orders {both.position_consistency:.0%}" if both else ""
        remark = "" if decides else f"; not shown to decide more than {2 * margin:.0%} of pairs"
        return self.found(
            state if decides or state == "fail" else "inconclusive",
            wins
            + same
            + remark
            + counted(pairs["preferred"].null_count(), "the worst in a pass")
            + if_too_few(shift.clusters),
            **_off(read),
            n=shift.clusters,
            details={
                "first_slot_rate": slot,
                "position_consistency": both.position_consistency if both else None,
                "flip_rate": both.flip_rate if both else None,
                "pairs_in_both_orders": orders.n,
                "decided": 1 - float(undecided.mean()),
            },
        )


def _off(pairs: pl.DataFrame) -> dict[str, Any]:
    """How far the first slot's share is from one half, in all verdicts that could be read."""
    try:
        share = clustered_mean(pairs["preferred"].to_numpy(), pairs["base"].to_list())
    except Undefined as reason:
        return {"undefined": str(reason)}
    return ends(share.rescaled(1, -malibu.TIE))


def _off_per_base(read: pl.DataFrame) -> FloatArray:
    per_base = read.group_by("base", maintain_order=True).agg(pl.col("preferred").mean())
    return per_base["preferred"].to_numpy() - malibu.TIE


def _undecided(pairs: pl.DataFrame) -> FloatArray:
    """The share of verdicts of each base that are ties or missing."""
    tie = (pl.col("preferred") == malibu.TIE).fill_null(True)
    return pairs.group_by("base", maintain_order=True).agg(tie.mean())["preferred"].to_numpy()


def _off_at_worst(pairs: pl.DataFrame) -> WorstCaseDifference:
    """The same for each base, with every missing verdict against the first slot, and for it."""
    verdict = pl.col("preferred")
    per_base = pairs.group_by("base", maintain_order=True).agg(
        low=verdict.fill_null(0).mean() - malibu.TIE, high=verdict.fill_null(1).mean() - malibu.TIE
    )
    return worst(per_base, LARGEST_WIN)
