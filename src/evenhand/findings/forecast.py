"""A forecast says what a run will cost, from a pilot of it."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
    """A total that is not known yet, with its 95% interval; None where nothing can be said."""

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
    """Forecast the whole run from a pilot: the mean per item times the number of items.

    Args:
        run: The run, of which the pilot's items are complete.
        pilot: The positions of the pilot's items.
        prices: The price table; None for a forecast without costs.

    Raises:
        UserError: If no item of the pilot is complete.
    """
    rows = run.results().filter(pl.col("position").is_in(list(pilot))).collect()
    turns = run.turns().filter(pl.col("position").is_in(list(pilot)))
    if rows.is_empty():
        raise UserError(
            "No item of the pilot finished, so there is no forecast. Check the endpoint with "
            "`evenhand doctor`."
        )
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


KINDS = ("calls", "prompt_tokens", "completion_tokens", "cost")
_ENDS = ("expected", "low", "high", "so_far")
Ends = Mapping[str, float | None]  # expected, low, high, so_far


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierForecast(Displayable):
    """The forecasts of the methods, and their sum."""

    methods: Mapping[str, Mapping[str, Any]]
    totals: Mapping[str, Ends]
    seconds_left: Ends
    currency: str | None
    played_back: tuple[str, ...] = ()  # runs whose equal calls come from another one
    of: str = "frontier"  # or "table", "gate": runs whose items differ

    def to_dict(self) -> dict[str, Any]:
        return {
            "methods": self.methods,
            "totals": self.totals,
            "seconds_left": self.seconds_left,
            "currency": self.currency,
            "played_back": list(self.played_back),
        }


def whole(
    forecasts: Mapping[str, Mapping[str, Any]],
    of: str = "frontier",
    played_back: Sequence[str] = (),
) -> FrontierForecast:
    """Add up the forecasts of several methods. All saw the same items, so that their errors go the
    same way: the ends of the intervals are added up as they are.

    Args:
        forecasts: The forecast of each method, in its JSON form.
        of: The command that will run the methods.
        played_back: Runs whose equal calls come from another run, at no cost.
    """
    each = list(forecasts.values())
    return FrontierForecast(
        methods=forecasts,
        totals={kind: _sum([forecast["totals"].get(kind) for forecast in each]) for kind in KINDS},
        seconds_left=_sum([forecast["seconds_left"] for forecast in each]),
        currency=each[0]["currency"],
        of=of,
        played_back=tuple(played_back),
    )


def _sum(parts: Sequence[Ends | None]) -> dict[str, float | None]:
    """None where one of the parts is not known."""
    ends: dict[str, float | None] = {}
    for end in _ENDS:
        values = [None if part is None else part.get(end) for part in parts]
        present = [value for value in values if value is not None]
        ends[end] = sum(present) if len(present) == len(values) else None
    return ends


CHARACTERS_A_TOKEN = 4  # our choice, usual for English


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run that was not begun. A number is None where it is not known without asking."""

    name: str
    method: str
    items: int
    roles: tuple[str, ...]  # whom the method may ask
    calls: tuple[int, int] | None  # fewest and most, of all items
    declared_for_other_settings: bool  # its calls are declared for its default settings alone
    prompt_tokens: tuple[int, int] | None  # if every prompt is as long as the item's first
    completion_tokens: tuple[int, int] | None  # if every reply is as long as it may be
    cost: tuple[float, float] | None  # of these tokens, by the dearest model of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun(Displayable):
    """What all runs of a command will ask, and which of them cannot be run."""

    runs: tuple[PlannedRun, ...]
    max_tokens: int
    currency: str | None
    batch: bool = False  # asked in batches, and priced so
    played_back: tuple[str, ...] = ()  # from another run, at no cost
    waiting: tuple[str, ...] = ()  # their items come from another run
    cannot_run: Mapping[str, str]  # run -> why

    @property
    def calls(self) -> tuple[int, int] | None:
        """All calls, fewest and most."""
        counts = [run.calls for run in self.runs if run.calls is not None]
        if len(counts) < len(self.runs):
            return None
        return sum(low for low, _ in counts), sum(high for _, high in counts)

    def to_dict(self) -> dict[str, Any]:
        return {"calls_made": 0, "calls": self.calls, **asdict(self)}
