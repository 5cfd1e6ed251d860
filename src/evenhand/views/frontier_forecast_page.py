"""The page of a frontier's dry run: what all methods together will cost."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.frontier_forecast import KINDS, Ends, FrontierForecast
from evenhand.views import numbers
from evenhand.views.blocks import Block, Grid, Line, Tone

_FREE = {"frontier": "Votes of fewer calls", "table": "Runs with fewer iterations"}


def page(found: FrontierForecast, *, full: bool = False) -> list[Block]:
    """The blocks of a forecast; there is no longer form of it."""
    del full
    pilot = next(iter(found.methods.values()))
    asked = f"{pilot['pilot']['items']} of {pilot['items']:,} items with each method"
    if found.of != "frontier":
        asked = "a few items of each run"
    head = f"Dry run: {asked}; they stay, and nothing is paid twice."
    rows = [
        (name, *_cells(one["totals"], one["seconds_left"], found.currency))
        for name, one in found.methods.items()
    ]
    rows.append(("all", *_cells(found.totals, found.seconds_left, found.currency)))
    tones: list[Tone] = ["plain" for _ in found.methods]
    tones.append("strong")
    columns = (f"the whole {found.of}", "calls", "tokens in", "tokens out", "cost", "time left")
    free = _FREE.get(found.of)
    return [
        *_failures(found),
        Line(head, "strong"),
        Grid(columns, tuple(rows), tuple(tones)),
        *([Line(f"{free} are played back and cost nothing.", "dim")] if free else []),
    ]


def _failures(found: FrontierForecast) -> list[Block]:
    failed = {name: one["pilot"]["failed"] for name, one in found.methods.items()}
    said = ", ".join(f"{name} {count}" for name, count in failed.items() if count)
    return [Line(f"items that failed in the dry run: {said}", "bad")] if said else []


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
