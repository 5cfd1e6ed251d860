"""Pairs of texts that were judged in both orders: how often the verdict stays the same, and how
often the first slot wins."""

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from evenhand.core.errors import Undefined
from evenhand.findings.estimates import NO_SPREAD
from evenhand.statistics.clusters import Interval, clustered_ratio
from evenhand.statistics.metrics import malibu, scorer_quality
from evenhand.statistics.metrics.malibu import BothOrders
from evenhand.statistics.metrics.scorer_quality import TextShare

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOrders:
    """Verdicts on two labels, or on all pairs of them, in both orders."""

    label: str
    other: str
    asked: int
    both: BothOrders | None = None
    undefined: str | None = None

    @property
    def n(self) -> int:
        """How many pairs have a verdict in both orders."""
        return self.both.n if self.both else 0

    def to_dict(self) -> dict[str, Any]:
        counted = {"n_asked": self.asked, "n": self.n}
        if self.both is None:
            return {**counted, "undefined": self.undefined}
        flips = {"inconsistent": self.both.inconsistent, "flip_rate": self.both.flip_rate}
        return {**counted, **asdict(self.both), **flips}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPairOrders:
    """All pairs together and each; the shares have intervals over base scenarios."""

    all: PairOrders
    by_pair: tuple[PairOrders, ...]
    consistency: TextShare | None
    first_slot: Interval | None  # its share of the verdicts that are no ties

    def to_dict(self) -> dict[str, Any]:
        shares = {
            "consistency": asdict(self.consistency) if self.consistency else None,
            "first_slot": _interval(self.first_slot) if self.first_slot else None,
        }
        each = [{"label": o.label, "other": o.other, **o.to_dict()} for o in self.by_pair]
        return {"all": {**self.all.to_dict(), **shares}, "by_pair": each}


def _interval(interval: Interval) -> dict[str, Any]:
    if not interval.no_spread:
        return asdict(interval)
    return {**asdict(interval), "low": None, "high": None, "undefined": NO_SPREAD}


def pairs(met: pl.DataFrame) -> AllPairOrders:
    """What `malibu.duels` shows of the order in which two texts stand."""
    parts = [
        _orders(part, str(label), str(other))
        for (label, other), part in met.group_by("label", "other", maintain_order=True)
    ]
    complete = met.drop_nulls(["win_first", "win_second"])
    return AllPairOrders(
        all=_orders(met, ALL, ALL),
        by_pair=tuple(sorted(parts, key=lambda orders: (orders.label, orders.other))),
        consistency=_consistency(complete),
        first_slot=_first_slot(complete),
    )


def _orders(met: pl.DataFrame, label: str, other: str) -> PairOrders:
    complete = met.drop_nulls(["win_first", "win_second"])
    try:
        both = malibu.both_orders(complete["win_first"].to_list(), complete["win_second"].to_list())
    except Undefined as reason:
        return PairOrders(label=label, other=other, asked=len(met), undefined=str(reason))
    return PairOrders(label=label, other=other, asked=len(met), both=both)


def _consistency(complete: pl.DataFrame) -> TextShare | None:
    same = (complete["win_first"] == complete["win_second"]).to_list()
    try:
        return scorer_quality.share(same, complete["base"].to_list())
    except Undefined:
        return None


def _first_slot(complete: pl.DataFrame) -> Interval | None:
    """The first slot's share of decided verdicts."""
    win_first, win_second = complete["win_first"].to_numpy(), complete["win_second"].to_numpy()
    decided = (win_first != malibu.TIE).astype(float) + (win_second != malibu.TIE)
    taken = (win_first > malibu.TIE).astype(float) + (win_second < malibu.TIE)
    try:
        return clustered_ratio(taken, decided, complete["base"].to_list())
    except Undefined:
        return None
