"""What a run will cost, forecast from a pilot of it, and what one did cost."""

import math
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

import polars as pl
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.domain.prices import Prices
from evenhand.errors import Undefined, UserError
from evenhand.statistics.clusters import naive_mean
from evenhand.statistics.proportions import wilson
from evenhand.store import RunReader
from evenhand.store.spending import billed_tokens, spent_on

_LABELS = {
    "calls": "calls",
    "prompt_tokens": "tokens in",
    "completion_tokens": "tokens out",
    "cost": "cost",
}


def forecast(run: RunReader, pilot: Collection[int], prices: Prices | None) -> dict[str, Any]:
    """The whole run from the pilot's items: the mean of an item times the items."""
    rows = run.results().filter(pl.col("position").is_in(list(pilot))).collect()
    turns = run.turns().filter(pl.col("position").is_in(list(pilot)))
    if rows.is_empty():
        raise UserError("no item of the dry run has ended, so nothing can be said of the rest")
    items, failed = run.record.source["items"], rows.filter(pl.col("status") == "failed")
    share = wilson(len(failed), len(rows))
    names = ("calls", "prompt_tokens", "completion_tokens")
    totals = {name: extrapolated(rows[name].drop_nulls().to_list(), items) for name in names}
    if prices is not None:
        totals["cost"] = extrapolated(_cost_by_item(rows["position"], turns, prices), items)
    pace = _calls_per_second(turns.select("started_us", "seconds").collect())
    return {
        "run": str(run.path),
        "items": items,
        "pilot": {
            "items": len(rows),
            "failed": len(failed),
            "failed_by_reason": dict(sorted(failed["reason"].value_counts().iter_rows())),
            "failure_rate": {"share": share.estimate, "low": share.low, "high": share.high},
            "items_without_token_count": rows["prompt_tokens"].null_count(),
        },
        "totals": totals,
        "currency": prices.currency if prices else None,
        "calls_per_second": pace,
        "seconds_left": _seconds_left(totals["calls"], pace),
    }


def extrapolated(values: list[float], items: int) -> dict[str, float | None]:
    """N · mean ± t · N · s/√n · √(1 − n/N): drawn without putting back (Cochran 1977, chapter 2).
    No less than what the pilot's items took already."""
    if not values:
        return {"expected": None, "low": None, "high": None, "so_far": None}
    so_far = float(sum(values))
    expected = items * so_far / len(values)
    try:
        mean = naive_mean(values)
    except Undefined:  # one item says nothing about another
        return {"expected": expected, "low": None, "high": None, "so_far": so_far}
    reach = items * (mean.high - mean.estimate) * math.sqrt(max(0.0, 1 - len(values) / items))
    low = max(so_far, expected - reach)
    return {"expected": expected, "low": low, "high": expected + reach, "so_far": so_far}


def _cost_by_item(positions: Iterable[int], turns: pl.LazyFrame, prices: Prices) -> list[float]:
    costs = dict.fromkeys(positions, 0.0)
    sums = billed_tokens(turns).group_by("position", "model").agg(pl.exclude("position").sum())
    for position, *billed in sums.collect().iter_rows():
        costs[position] += prices.cost(*billed)
    return list(costs.values())


def _calls_per_second(turns: pl.DataFrame) -> float | None:
    """Over the time in which there was a call: a dry run may have been stopped and gone on."""
    busy, until = 0.0, -math.inf
    for started_us, seconds in turns.sort("started_us").iter_rows():
        began = started_us / 1e6
        busy += max(0.0, began + seconds - max(until, began))
        until = max(until, began + seconds)
    return len(turns) / busy if busy else None


def _seconds_left(
    calls: dict[str, float | None], pace: float | None
) -> dict[str, float | None] | None:
    if pace is None or calls["so_far"] is None:
        return None
    so_far = calls["so_far"]
    return {
        name: None if (count := calls[name]) is None else (count - so_far) / pace
        for name in ("expected", "low", "high")
    }


def render_forecast(found: dict[str, Any]) -> RenderableType:
    pilot = found["pilot"]
    head = (
        f"Dry run: {pilot['items']} of {found['items']:,} items, spread evenly, are answered and "
        f"stay in {found['run']}; nothing is paid twice."
    )
    return Group(
        *(Text(line, style="bold red") for line in _failures(pilot)),
        Text(head, style="bold"),
        _totals_table(found),
        *(Text(note, style="dim") for note in _notes(found)),
        Text(f"next: {found['next']}"),
    )


def _totals_table(found: dict[str, Any]) -> Table:
    table = Table("the whole run", "expected", "95 % interval", "so far", box=None)
    for name, total in found["totals"].items():
        shown = _whole if name != "cost" else partial(money, currency=found["currency"])
        table.add_row(_LABELS[name], *_cells(total, shown))
    if found["currency"] is None:
        table.add_row("cost", "no price file", "(--prices FILE)", "")
    if found["seconds_left"] is not None:
        table.add_row("time left", *_cells({**found["seconds_left"], "so_far": None}, duration))
    return table


def _notes(found: dict[str, Any]) -> list[str]:
    """`found` also holds the items in flight and, if calls were made just now, the endpoints."""
    pilot, pace = found["pilot"], found["calls_per_second"]
    notes = [f"From {pilot['items']} items: what is rarer than 1 in {pilot['items']} is not in it."]
    if pace is not None:
        places = [f", {limit} calls at once to {name}" for name, limit in found["limits"].items()]
        notes.append(
            f"Time at {pace:,.1f} calls a second, as in the dry run with "
            f"{min(found['in_flight'], pilot['items'])} items in flight{''.join(places)}."
        )
    if pilot["items_without_token_count"]:
        notes.append(
            f"The endpoint did not count tokens for {pilot['items_without_token_count']} items: "
            "their cost is the most that it can have been."
        )
    return notes


def _failures(pilot: dict[str, Any]) -> list[str]:
    if not pilot["failed"]:
        return []
    rate = pilot["failure_rate"]
    reasons = ", ".join(f"{n} {reason}" for reason, n in pilot["failed_by_reason"].items())
    return [
        f"{pilot['failed']} of {pilot['items']} items failed ({rate['share']:.0%}; "
        f"95 %: {rate['low']:.0%} to {rate['high']:.0%}): {reasons}"
    ]


def _cells(total: dict[str, float | None], shown: Callable[[float], str]) -> tuple[str, str, str]:
    expected, low, high, so_far = (total[k] for k in ("expected", "low", "high", "so_far"))
    if expected is None:
        return "not counted", "by the endpoint", ""
    interval = "unknown: one item" if low is None or high is None else "no spread"
    if low is not None and high is not None and low < high:
        interval = f"{shown(low)} to {shown(high)}"
    return shown(expected), interval, "" if so_far is None else shown(so_far)


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def spent(run: RunReader, prices: Prices | None) -> dict[str, Any]:
    """What the run cost so far; `cost` is None without prices."""
    if prices is None:
        return {"cost": None, "currency": None}
    return {"cost": spent_on(run.path, prices).cost, "currency": prices.currency}


def render_spent(found: dict[str, Any]) -> Text:
    if found["cost"] is None:
        return Text("cost: no price file (--prices FILE)", style="dim")
    return Text(f"cost: {money(found['cost'], found['currency'])}")


def money(amount: float, currency: str) -> str:
    """Cents where there are any, more digits where there are none."""
    digits = 2 if amount >= 1 or not amount else 4 if amount >= 0.01 else 6
    return f"{amount:,.{digits}f} {currency}"


def duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.{1 if unit in ('days', 'h') else 0}f} {unit}"
    return f"{seconds:.0f} s"
