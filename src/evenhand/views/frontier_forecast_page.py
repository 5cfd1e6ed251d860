"""The page of a pilot of several runs: what all of them together will cost."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.frontier_forecast import KINDS, Ends, FrontierForecast
from evenhand.views import numbers
from evenhand.views.blocks import Block, Grid, Line, Tone


def page(found: FrontierForecast, *, full: bool = False) -> list[Block]:
    """The blocks of a forecast; there is no longer form of it."""
    del full
    pilot = next(iter(found.methods.values()))
    asked = f"{pilot['pilot']['items']} of {pilot['items']:,} items with each method"
    if found.of != "frontier":
        asked = "a few items of each run"
    head = f"Pilot: {asked} were asked; they stay, and nothing is paid twice."
    rows = [
        (name, *_cells(one["totals"], one["seconds_left"], found.currency))
        for name, one in found.methods.items()
    ]
    rows.append(("all", *_cells(found.totals, found.seconds_left, found.currency)))
    tones: list[Tone] = ["plain" for _ in found.methods]
    tones.append("strong")
    free = ", ".join(found.played_back)
    columns = (f"the whole {found.of}", "calls", "tokens in", "tokens out", "cost", "time left")
    return [
        *_failures(found),
        Line(head, "strong"),
        Grid(columns, tuple(rows), tuple(tones)),
        *([Line(f"Played back from another run, no calls: {free}.", "dim")] if free else []),
    ]


def _failures(found: FrontierForecast) -> list[Block]:
    failed = {name: one["pilot"]["failed"] for name, one in found.methods.items()}
    said = ", ".join(f"{name} {count}" for name, count in failed.items() if count)
    return [Line(f"items that failed in the pilot: {said}", "bad")] if said else []


def _cells(
    totals: Mapping[str, Any], seconds_left: Ends | None, currency: str | None
) -> tuple[str, ...]:
    shown = []
    for kind in KINDS[:3]:
        expected = totals[kind]["expected"]
        shown.append("not counted" if expected is None else f"{expected:,.0f}")
    cost: float | None = (totals.get("cost") or {}).get("expected")
    if cost is None or currency is None:
        shown.append("no prices")
    else:
        shown.append(numbers.money(cost, currency))
    left = (seconds_left or {}).get("expected")
    return (*shown, "?" if left is None else numbers.duration(left))
