"""The page of a pilot of several runs: what all of them together will cost."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.forecast import KINDS, Ends, FrontierForecast
from evenhand.views import numbers
from evenhand.views.blocks import Block, Grid, Line, Tone


def page(forecast: FrontierForecast, *, full: bool = False) -> list[Block]:
    """The blocks of a forecast; there is no longer form of it."""
    del full
    pilot = next(iter(forecast.methods.values()))
    sample = f"{pilot['pilot']['items']} of {pilot['items']:,} items with each method"
    if forecast.of != "frontier":
        sample = "a few items of each run"
    head = f"Pilot: {sample} were asked; they stay, and nothing is paid twice."
    rows = [
        (name, *_cells(method["totals"], method["seconds_left"], forecast.currency))
        for name, method in forecast.methods.items()
    ]
    rows.append(("all", *_cells(forecast.totals, forecast.seconds_left, forecast.currency)))
    tones: list[Tone] = ["plain" for _ in forecast.methods]
    tones.append("strong")
    free = ", ".join(forecast.played_back)
    columns = (f"the whole {forecast.of}", "calls", "tokens in", "tokens out", "cost", "time left")
    return [
        *_failures(forecast),
        Line(head, "strong"),
        Grid(columns, tuple(rows), tuple(tones)),
        *([Line(f"Played back from another run, no calls: {free}.", "dim")] if free else []),
    ]


def _failures(forecast: FrontierForecast) -> list[Block]:
    failed = {name: method["pilot"]["failed"] for name, method in forecast.methods.items()}
    text = ", ".join(f"{name} {count}" for name, count in failed.items() if count)
    return [Line(f"items that failed in the pilot: {text}", "bad")] if text else []


def _cells(
    totals: Mapping[str, Any], seconds_left: Ends | None, currency: str | None
) -> tuple[str, ...]:
    cells = []
    for kind in KINDS[:3]:
        expected = totals[kind]["expected"]
        cells.append("not counted" if expected is None else f"{expected:,.0f}")
    cost: float | None = (totals.get("cost") or {}).get("expected")
    if cost is None or currency is None:
        cells.append("no prices")
    else:
        cells.append(numbers.money(cost, currency))
    left = (seconds_left or {}).get("expected")
    return (*cells, "?" if left is None else numbers.duration(left))
