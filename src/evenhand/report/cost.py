"""Forecasts and money, for the reports that are dictionaries still."""

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from rich.text import Text

from evenhand.domain.prices import Prices
from evenhand.findings import forecast as forecasts
from evenhand.findings import spent as spending
from evenhand.store import RunReader
from evenhand.views.files import plain
from evenhand.views.numbers import duration, money
from evenhand.views.summary_page import cost

__all__ = ["duration", "forecast", "money", "render_spent", "spent"]


def forecast(run: RunReader, pilot: Collection[int], prices: Prices | None) -> dict[str, Any]:
    found: dict[str, Any] = plain(forecasts.forecast(run, pilot, prices).to_dict())
    return found


def spent(run: RunReader, prices: Prices | None) -> dict[str, Any]:
    return asdict(spending.money(run, prices))


def render_spent(found: dict[str, Any]) -> Text:
    return Text(f"cost: {cost(spending.Money(**found))}")
