"""What a whole frontier will cost, from a dry run of each of its methods."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report.cost import duration, money

_KINDS = ("calls", "prompt_tokens", "completion_tokens", "cost")
_ENDS = ("expected", "low", "high", "so_far")


def whole(forecasts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The methods' forecasts and their sum. All saw the same items, so that they err together: the
    ends of the intervals are added up as they are."""
    totals = {kind: _sum([f["totals"].get(kind) for f in forecasts.values()]) for kind in _KINDS}
    left = _sum([f["seconds_left"] for f in forecasts.values()])
    currency = next(iter(forecasts.values()))["currency"]
    return {"methods": forecasts, "totals": totals, "seconds_left": left, "currency": currency}


def _sum(parts: list[dict[str, float | None] | None]) -> dict[str, float | None]:
    """None where one of the parts is not known."""
    ends: dict[str, float | None] = {}
    for end in _ENDS:
        values = [None if part is None else part.get(end) for part in parts]
        known = [value for value in values if value is not None]
        ends[end] = sum(known) if len(known) == len(values) else None
    return ends


def render(found: dict[str, Any]) -> RenderableType:
    pilot = next(iter(found["methods"].values()))
    head = (
        f"Dry run: {pilot['pilot']['items']} of {pilot['items']:,} items with each method; they "
        "stay, and nothing is paid twice."
    )
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("the whole frontier", "calls", "tokens in", "tokens out", "cost", "time left"):
        table.add_column(name, justify="left" if name.startswith("the") else "right")
    for name, forecast in found["methods"].items():
        table.add_row(name, *_cells(forecast, found["currency"]))
    table.add_row("all", *_cells(found, found["currency"]), style="bold")
    played_back = "Votes of fewer calls are played back and cost nothing."
    return Group(*_failures(found), Text(head, style="bold"), table, Text(played_back, style="dim"))


def _failures(found: dict[str, Any]) -> list[Text]:
    failed = {name: forecast["pilot"]["failed"] for name, forecast in found["methods"].items()}
    said = ", ".join(f"{name} {count}" for name, count in failed.items() if count)
    return [Text(f"items that failed in the dry run: {said}", style="bold red")] if said else []


def _cells(forecast: dict[str, Any], currency: str | None) -> list[str]:
    shown = []
    for kind in _KINDS[:3]:
        expected = forecast["totals"][kind]["expected"]
        shown.append("not counted" if expected is None else f"{expected:,.0f}")
    cost = (forecast["totals"].get("cost") or {}).get("expected")
    shown.append("no prices" if currency is None or cost is None else money(cost, currency))
    left = (forecast["seconds_left"] or {}).get("expected")
    return [*shown, "?" if left is None else duration(left)]
