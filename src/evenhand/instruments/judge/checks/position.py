"""Whether the slot that a text stands in decides which of two is preferred."""

import polars as pl

from evenhand.errors import Undefined
from evenhand.findings.check import Check, ends
from evenhand.instruments.judge.checks._check import JudgeCheck, if_too_few, state_within
from evenhand.instruments.judge.evidence import Evidence
from evenhand.metrics import malibu
from evenhand.statistics.clusters import clustered_mean


class Position(JudgeCheck):
    """The check of the first slot's share of wins, a tie counting half, against one half."""

    name, label, unit = "position", "position in a pair", "first slot's win rate − ½"
    required = True

    def check(self, evidence: Evidence) -> Check:
        is_pair = (pl.col("phase") == "pair") & pl.col("preferred").is_not_null()
        pairs = evidence.rows.filter(is_pair)
        if pairs.is_empty():
            return self.not_measured("no pair was judged")
        try:
            share = clustered_mean(pairs["preferred"].to_numpy(), pairs["base"].to_list())
        except Undefined as reason:
            return self.not_measured(str(reason))
        off, margin = share.rescaled(1, -malibu.TIE), evidence.margins.win_rate
        orders = evidence.pairs.all
        both = orders.both
        slot = both.first_slot_rate if both else None
        wins = "all verdicts are ties" if slot is None else f"first slot wins {slot:.0%}"
        same = f"; same verdict in both orders {both.position_consistency:.0%}" if both else ""
        return self.found(
            state_within(off, margin),
            wins + same + if_too_few(off.clusters),
            **ends(off),
            n=off.clusters,
            margin=margin,
            details={
                "first_slot_rate": slot,
                "position_consistency": both.position_consistency if both else None,
                "flip_rate": both.flip_rate if both else None,
                "pairs_in_both_orders": orders.n,
            },
        )
