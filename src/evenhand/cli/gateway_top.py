"""`evenhand gateway top`: the figures of a running gateway, updated every two seconds."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.live import Live

from evenhand.cli.options import key_in
from evenhand.cli.screen import out, print_json
from evenhand.core.prices import Prices
from evenhand.gateway.top import (
    GatewayFigures,
    RepairFolders,
    each_repair,
    figures_of,
    gateway_address,
)
from evenhand.gateway.top_page import page
from evenhand.views import terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOptions:
    """What the user wants to see, and how often."""

    url: str
    key_env: str | None
    evidence: Path | None
    every: float | None  # None: once
    prices: Prices | None
    as_json: bool


def watch(wish: TopOptions) -> None:
    """Show the figures of a gateway until Ctrl-C, or once."""
    address = gateway_address(wish.url)
    key = key_in(wish.key_env)
    repairs = RepairFolders(wish.evidence) if wish.evidence else None
    display = _GatewayDisplay(address, wish.prices, repairs, as_json=wish.as_json)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_watch(address, key, display, wish.every))


class _GatewayDisplay:
    """Shows updates on a live screen, as consecutive pages, or as JSON."""

    def __init__(
        self, address: str, prices: Prices | None, repairs: RepairFolders | None, *, as_json: bool
    ) -> None:
        self._address, self._prices, self._repairs = address, prices, repairs
        self._json = as_json
        self._live: Live | None = None
        self._last: GatewayFigures | None = None

    @contextlib.contextmanager
    def open(self, *, lasting: bool) -> Iterator[None]:
        """Open a live screen, on a terminal and with more than one update."""
        if not lasting or self._json or not out.is_terminal:
            yield
            return
        with Live(console=out, auto_refresh=False) as self._live:
            yield

    def show(self, figures: GatewayFigures | None, problem: str = "") -> None:
        """Show an update, or the problem and the last update."""
        if self._json:
            print_json(self._told(figures, problem))
            sys.stdout.flush()
            return
        self._last = figures or self._last
        if self._last is None:
            return
        repairs = self._repairs.last() if self._repairs else None
        each = each_repair(self._last, self._prices)
        rendered = terminal.render(page(self._address, self._last, each, repairs, problem))
        if self._live is None:
            out.print(rendered)
        else:
            self._live.update(rendered, refresh=True)

    def _told(self, figures: GatewayFigures | None, problem: str) -> dict[str, object]:
        if figures is None:
            return {"gateway": self._address, "error": problem}
        record = {"gateway": self._address, **asdict(figures)}
        record["each_repair"] = asdict(each_repair(figures, self._prices))
        record["latency_is"] = "estimated from buckets"
        if self._repairs:
            record["last_repairs"] = asdict(self._repairs.last())
        return record


async def _watch(
    address: str, key: str | None, display: _GatewayDisplay, every: float | None
) -> None:
    with display.open(lasting=every is not None):
        async for figures in figures_of(address, key, every):
            if isinstance(figures, GatewayFigures):
                display.show(figures)
            else:
                display.show(None, str(figures))
