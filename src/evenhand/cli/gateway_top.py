"""`evenhand gateway top`: a running gateway, looked at every two seconds."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.live import Live

from evenhand.cli.gateway_top_page import page
from evenhand.cli.screen import out, print_json
from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.experiments import config as configuration
from evenhand.gateway.top import (
    GatewayFigures,
    RepairFolders,
    each_repair,
    figures_of,
    gateway_address,
)
from evenhand.views import terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOptions:
    """What somebody wants to see, and how often."""

    url: str
    key_env: str | None
    evidence: Path | None
    every: float | None  # None: once
    prices: Prices | None
    as_json: bool


def watch(wish: TopOptions) -> None:
    """Look at a gateway until Ctrl-C, or once."""
    address = gateway_address(wish.url)
    key = configuration.secret(wish.key_env)
    if wish.key_env and not key:
        raise UserError(f"--key-env {wish.key_env}: this variable is not set, or is empty")
    repairs = RepairFolders(wish.evidence) if wish.evidence else None
    display = _GatewayDisplay(address, wish.prices, repairs, as_json=wish.as_json)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_watch(address, key, display, wish.every))


class _GatewayDisplay:
    """Where looks are shown: a screen, one page after the other, or JSON."""

    def __init__(
        self, address: str, prices: Prices | None, repairs: RepairFolders | None, *, as_json: bool
    ) -> None:
        self._address, self._prices, self._repairs = address, prices, repairs
        self._json = as_json
        self._live: Live | None = None
        self._last: GatewayFigures | None = None

    @contextlib.contextmanager
    def open(self, *, lasting: bool) -> Iterator[None]:
        """Keep a screen, where there is a terminal and more than one look."""
        if not lasting or self._json or not out.is_terminal:
            yield
            return
        with Live(console=out, auto_refresh=False) as self._live:
            yield

    def show(self, figures: GatewayFigures | None, problem: str = "") -> None:
        """Show a look, or that there was none, above what is known from before."""
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
