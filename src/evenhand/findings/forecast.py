"""A forecast says what a run will cost, from a pilot of it."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from evenhand.core.errors import Undefined, UserError
from evenhand.core.prices import Prices
from evenhand.findings.display import Displayable
from evenhand.runs.store import RunReader
from evenhand.runs.store.spending import billed_tokens, money_for
from evenhand.statistics.clusters import naive_mean
from evenhand.statistics.proportions import wilson

COST = "cost"
_COUNTED = ("calls", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTotal:
    """A total that is not known yet, with its 95 % interval; None where nothing can be said."""

    expected: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(ExpectedTotal):
    """A total says what the whole run will take of something, and what the pilot's items took
    already."""

    so_far: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate:
    """The share of the pilot's items that failed, with Wilson's interval."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """The items that the forecast rests on."""

    items: int
    failed: int
    failed_by_reason: dict[str, int]
    failure_rate: FailureRate
    items_without_token_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast(Displayable):
    """A forecast says what a run will take: calls, tokens, time, and money where there are
    prices."""

    run: str
    items: int
    pilot: Pilot
    totals: Mapping[str, Total]  # calls, prompt_tokens, completion_tokens, and cost with prices
    currency: str | None
    calls_per_second: float | None
    seconds_left: ExpectedTotal | None
    concurrency: int | None = None  # items at a time, as the pilot was run
    limits: dict[str, int] = field(default_factory=dict)  # endpoint -> calls at once that it took
    next: str = ""  # the command that goes on from the pilot

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self).__dataclass_fields__}


def forecast(run: RunReader, pilot: Collection[int], prices: Prices | None) -> Forecast:
    """Forecast the whole run from the pilot's items: the mean of an item times the items."""
    rows = run.results().filter(pl.col("position").is_in(list(pilot))).collect()
    turns = run.turns().filter(pl.col("position").is_in(list(pilot)))
    if rows.is_empty():
        raise UserError("no item of the pilot has ended, so nothing can be said of the rest")
    items = run.record.source["items"]
    totals = {name: extrapolated(rows[name].drop_nulls().to_list(), items) for name in _COUNTED}
    if prices is not None:
        totals[COST] = extrapolated(_cost_by_item(rows["position"], run, turns, prices), items)
    pace = _calls_per_second(turns.select("started_us", "seconds").collect())
    return Forecast(
        run=str(run.path),
        items=items,
        pilot=_pilot(rows),
        totals=totals,
        currency=prices.currency if prices else None,
        calls_per_second=pace,
        seconds_left=_seconds_left(totals["calls"], pace),
    )


def _pilot(rows: pl.DataFrame) -> Pilot:
    failed = rows.filter(pl.col("status") == "failed")
    share = wilson(len(failed), len(rows))
    return Pilot(
        items=len(rows),
        failed=len(failed),
        failed_by_reason=dict(sorted(failed["reason"].value_counts().iter_rows())),
        failure_rate=FailureRate(share=share.estimate, low=share.low, high=share.high),
        items_without_token_count=rows["prompt_tokens"].null_count(),
    )


def extrapolated(values: list[float], items: int) -> Total:
    """Extrapolate by N · mean ± t · N · s/√n · √(1 − n/N): drawn without putting back (Cochran
    1977, chapter 2). The total is no less than what the pilot's items took already."""
    if not values:
        return Total(expected=None, low=None, high=None, so_far=None)
    so_far = float(sum(values))
    expected = items * so_far / len(values)
    try:
        mean = naive_mean(values)
    except Undefined:  # one item says nothing about another
        return Total(expected=expected, low=None, high=None, so_far=so_far)
    reach = items * (mean.high - mean.estimate) * math.sqrt(max(0.0, 1 - len(values) / items))
    low = max(so_far, expected - reach)
    return Total(expected=expected, low=low, high=expected + reach, so_far=so_far)


def _cost_by_item(
    positions: Iterable[int], run: RunReader, turns: pl.LazyFrame, prices: Prices
) -> list[float]:
    costs = dict.fromkeys(positions, 0.0)
    billed_turns = billed_tokens(turns, run.record.cast).group_by("position", "model", "batched")
    sums = billed_turns.agg(pl.col("prompt", "completion").sum())
    for position, *billed in sums.collect().iter_rows():
        costs[position] += money_for(prices, *billed)
    return list(costs.values())


def _calls_per_second(turns: pl.DataFrame) -> float | None:
    """Over the time in which there was a call: a pilot may have been stopped and gone on."""
    busy, until = 0.0, -math.inf
    for started_us, seconds in turns.sort("started_us").iter_rows():
        began = started_us / 1e6
        busy += max(0.0, began + seconds - max(until, began))
        until = max(until, began + seconds)
    return len(turns) / busy if busy else None


def _seconds_left(calls: Total, pace: float | None) -> ExpectedTotal | None:
    if pace is None or calls.so_far is None:
        return None
    so_far = calls.so_far

    def left(count: float | None) -> float | None:
        return None if count is None else (count - so_far) / pace

    return ExpectedTotal(expected=left(calls.expected), low=left(calls.low), high=left(calls.high))
