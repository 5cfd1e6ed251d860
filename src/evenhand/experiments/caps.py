"""Caps that several runs share: each may spend what the others left."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from evenhand.core.prices import Prices
from evenhand.experiments.request import Request
from evenhand.runs.store.spending import Spent, spent_on


class Capped(Protocol):
    """What the settings of a run and caps by themselves have in common."""

    @property
    def max_calls(self) -> int | None: ...
    @property
    def max_cost(self) -> float | None: ...
    @property
    def prices(self) -> Prices | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Caps are for all runs together."""

    max_calls: int | None = None
    max_cost: float | None = None
    prices: Prices | None = None


def spent_within(caps: Capped, folders: Iterable[str]) -> Spent:
    """Count what these runs have spent so far; nothing is counted where there is no cap."""
    if (caps.max_calls, caps.max_cost) == (None, None):
        return Spent()
    return sum((spent_on(folder, caps.prices) for folder in folders), Spent())


def left_for(request: Request, caps: Capped, spent: Spent) -> Request:
    """Give the request what is left of the caps; no cap stays none.

    Args:
        request: The request.
        caps: The caps of all runs together.
        spent: What the other runs have spent.

    Returns:
        The same request with smaller caps.
    """
    calls, cost = caps.max_calls, caps.max_cost
    left = replace(
        request.settings,
        max_calls=None if calls is None else max(0, calls - spent.calls),
        max_cost=None if cost is None else max(0.0, cost - spent.cost),
    )
    return replace(request, settings=left)
