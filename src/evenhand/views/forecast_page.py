"""The pages of what runs will take: forecasts from a pilot, and dry runs that ask nothing."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from evenhand.findings.forecast import (
    CHARACTERS_A_TOKEN,
    COST,
    KINDS,
    DryRun,
    Ends,
    ExpectedTotal,
    Forecast,
    FrontierForecast,
    Pilot,
)
from evenhand.views import numbers
from evenhand.views.blocks import Block, Grid, Line, Tone

_LABELS = {
    "calls": "calls",
    "prompt_tokens": "tokens in",
    "completion_tokens": "tokens out",
    COST: "cost",
}


def page(forecast: Forecast) -> list[Block]:
    """The blocks of a forecast."""
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
    return Grid(("the whole run", "expected", "95% CI", "so far"), tuple(rows))


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
        f"95% CI {rate.low:.0%} to {rate.high:.0%}): {reasons}"
    )
    return [Line(text, "bad")]


def frontier_page(forecast: FrontierForecast) -> list[Block]:
    """The blocks of a forecast."""
    pilot = next(iter(forecast.methods.values()))
    sample = f"{pilot['pilot']['items']} of {pilot['items']:,} items with each method"
    if forecast.of != "frontier":
        sample = "a few items of each run"
    head = f"Pilot: {sample} were asked; they stay, and nothing is paid twice."
    rows = [
        (name, *_frontier_cells(method["totals"], method["seconds_left"], forecast.currency))
        for name, method in forecast.methods.items()
    ]
    rows.append(
        ("all", *_frontier_cells(forecast.totals, forecast.seconds_left, forecast.currency))
    )
    tones: list[Tone] = ["plain" for _ in forecast.methods]
    tones.append("strong")
    free = ", ".join(forecast.played_back)
    columns = (f"the whole {forecast.of}", "calls", "tokens in", "tokens out", "cost", "time left")
    return [
        *_frontier_failures(forecast),
        Line(head, "strong"),
        Grid(columns, tuple(rows), tuple(tones)),
        *([Line(f"{_REUSED}: {free}.", "dim")] if free else []),
    ]


def _frontier_failures(forecast: FrontierForecast) -> list[Block]:
    failed = {name: method["pilot"]["failed"] for name, method in forecast.methods.items()}
    text = ", ".join(f"{name} {count}" for name, count in failed.items() if count)
    return [Line(f"items that failed in the pilot: {text}", "bad")] if text else []


def _frontier_cells(
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


_REUSED = "Not counted, equal calls come from another run"


def dry_run_page(dry_run: DryRun) -> list[Block]:
    """The blocks of a dry run."""
    items = sum(run.items for run in dry_run.runs)
    calls = "an unknown number of" if dry_run.calls is None else _range(dry_run.calls)
    blocks: list[Block] = [Line(_head(len(dry_run.runs), items, calls), "strong")]
    if dry_run.runs:
        blocks.append(_grid(dry_run))
        blocks += [Line(note, "dim") for note in _dry_run_notes(dry_run)]
    blocks += [Line(f"Cannot be run: {name}: {why}", "bad")
               for name, why in dry_run.cannot_run.items()]  # fmt: skip
    if dry_run.waiting:
        names = ", ".join(dry_run.waiting)
        blocks.append(Line(f"Not counted, its items come from another run: {names}"))
    if dry_run.played_back:
        blocks.append(Line(f"{_REUSED}: {', '.join(dry_run.played_back)}"))
    return blocks


def _head(runs: int, items: int, calls: str) -> str:
    if not runs:
        return "Dry run: no model was called, and there is nothing to run."
    return (
        f"Dry run: nothing was asked. {runs} run{'s' * (runs > 1)}, {items:,} items, {calls} calls."
    )


def _grid(dry_run: DryRun) -> Grid:
    rows = [
        (
            run.name,
            run.method,
            f"{run.items:,}",
            _range(run.calls) + ("*" if run.declared_for_other_settings else ""),
            _range(run.prompt_tokens),
            _range(run.completion_tokens),
            *(() if dry_run.currency is None else (_money(run.cost, dry_run.currency),)),
            ", ".join(run.roles) or "nobody",
        )
        for run in dry_run.runs
    ]
    cost = () if dry_run.currency is None else ("cost",)
    columns = ("run", "method", "items", "calls", "tokens in", "tokens out", *cost, "who is asked")
    return Grid(columns, tuple(rows))


def _dry_run_notes(dry_run: DryRun) -> list[str]:
    notes = [
        f"Assumed: {CHARACTERS_A_TOKEN} characters a token; every prompt of an item as long as its "
        f"first; every reply at its limit ({dry_run.max_tokens:,} tokens, --max-tokens). Later "
        "prompts are often longer, replies mostly shorter.",
        "Calls are those that each method declares, for any model in its roles.",
    ]
    if any(run.declared_for_other_settings for run in dry_run.runs):
        notes.append("* Declared for the default settings of the method; here it may be other.")
    if dry_run.batch:
        priced = "" if dry_run.currency is None else ", at the price of batches (batch_factor)"
        notes.append(f"Asked in batches{priced}: one batch a round of the method.")
    if dry_run.currency is None:
        notes.append("No cost: give a price file (--prices FILE).")
    elif any(run.cost is None for run in dry_run.runs):
        notes.append("No cost where no model is named (--model).")
    notes.append("--pilot N asks N real items, and forecasts with intervals from them.")
    return notes


def _range(ends: tuple[int, int] | None) -> str:
    if ends is None:
        return "unknown"
    low, high = ends
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _money(ends: tuple[float, float] | None, currency: str | None) -> str:
    if ends is None or currency is None:
        return "unknown"
    low, high = (numbers.money(end, currency) for end in ends)
    return low if low == high else f"{low} to {high}"
