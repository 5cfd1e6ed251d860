"""The page of a pilot: what the whole run will take, how sure that is, and the next command."""

from collections.abc import Callable
from functools import partial

from evenhand.findings.forecast import COST, ExpectedTotal, Forecast, Pilot
from evenhand.views import numbers
from evenhand.views.blocks import Block, Grid, Line

_LABELS = {
    "calls": "calls",
    "prompt_tokens": "tokens in",
    "completion_tokens": "tokens out",
    COST: "cost",
}


def page(forecast: Forecast, *, full: bool = False) -> list[Block]:
    """The blocks of a forecast; there is no longer form of it."""
    del full
    head = (
        f"Pilot: {forecast.pilot.items} of {forecast.items:,} items, spread evenly, are answered "
        f"and stay in {forecast.run}; nothing is paid twice."
    )
    return [
        *_failures(forecast.pilot),
        Line(head, "strong"),
        _totals(forecast),
        *(Line(note, "dim") for note in _notes(forecast)),
        *([Line(f"next: {forecast.next}")] if forecast.next else []),
    ]


def _totals(forecast: Forecast) -> Grid:
    rows = []
    for name, total in forecast.totals.items():
        as_text = (
            partial(numbers.money, currency=forecast.currency or "") if name == COST else _whole
        )
        so_far = "" if total.so_far is None else as_text(total.so_far)
        rows.append((_LABELS[name], *_cells(total, as_text), so_far))
    if forecast.currency is None:
        rows.append(("cost", "no price file", "(--prices FILE)", ""))
    if forecast.seconds_left is not None:
        rows.append(("time left", *_cells(forecast.seconds_left, numbers.duration), ""))
    return Grid(("the whole run", "expected", "95 % interval", "so far"), tuple(rows))


def _cells(total: ExpectedTotal, as_text: Callable[[float], str]) -> tuple[str, str]:
    if total.expected is None:
        return "not counted", "by the endpoint"
    if total.low is None or total.high is None:
        return as_text(total.expected), "unknown: one item"
    if total.low == total.high:
        return as_text(total.expected), "no spread"
    return as_text(total.expected), f"{as_text(total.low)} to {as_text(total.high)}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _notes(forecast: Forecast) -> list[str]:
    pilot, pace = forecast.pilot, forecast.calls_per_second
    notes = [f"From {pilot.items} items: what is rarer than 1 in {pilot.items} is not in it."]
    if pace is not None and forecast.concurrency is not None:
        places = [f", {limit} calls at once to {name}" for name, limit in forecast.limits.items()]
        notes.append(
            f"Time at {pace:,.1f} calls a second, as in the pilot with "
            f"{min(forecast.concurrency, pilot.items)} items in flight{''.join(places)}."
        )
    if pilot.items_without_token_count:
        notes.append(
            f"The endpoint did not count tokens for {pilot.items_without_token_count} items: "
            "their cost is the most that it can have been."
        )
    return notes


def _failures(pilot: Pilot) -> list[Block]:
    if not pilot.failed:
        return []
    rate = pilot.failure_rate
    reasons = ", ".join(f"{n} {reason}" for reason, n in pilot.failed_by_reason.items())
    text = (
        f"{pilot.failed} of {pilot.items} items failed ({rate.share:.0%}; "
        f"95 %: {rate.low:.0%} to {rate.high:.0%}): {reasons}"
    )
    return [Line(text, "bad")]
