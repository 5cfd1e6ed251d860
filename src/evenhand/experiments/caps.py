"""Caps that several runs share: each may spend what the others left."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from evenhand.domain.prices import Prices
from evenhand.store.spending import Spent, spent_on


class Capped(Protocol):
    """What a request, an order and caps by themselves have in common."""

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


Run = TypeVar("Run", bound=Any)


def spent_within(caps: Capped, folders: Iterable[str]) -> Spent:
    """Count what these runs have spent so far; nothing is counted where there is no cap."""
    if (caps.max_calls, caps.max_cost) == (None, None):
        return Spent()
    return sum((spent_on(folder, caps.prices) for folder in folders), Spent())


def left_for(run: Run, caps: Capped, spent: Spent) -> Run:
    """Give the run what is left of the caps; no cap stays none."""
    calls, cost = caps.max_calls, caps.max_cost
    return replace(
        run,
        max_calls=None if calls is None else max(0, calls - spent.calls),
        max_cost=None if cost is None else max(0.0, cost - spent.cost),
    )
