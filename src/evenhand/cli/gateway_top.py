"""`evenhand gateway top`: a running gateway, looked at every two seconds."""

import asyncio
import contextlib
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp
from rich.live import Live

from evenhand import config as configuration
from evenhand.cli.gateway_top_page import page
from evenhand.cli.screen import out, print_json
from evenhand.domain.prices import Prices
from evenhand.errors import EvenhandError, UserError
from evenhand.gateway.looks import Figures, Look, Memory, each_repair, read
from evenhand.gateway.repairs import Repairs
from evenhand.models.http_client import plain_url, read_capped
from evenhand.views import terminal

_SECONDS = 5.0  # our choice: figures that take longer are as good as none
_MOST_BODY = 16 * 1024 * 1024
_TRIES = 4  # our choice, for each replica: whichever is free answers, so each is met by luck


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants to see, and how often."""

    url: str
    key_env: str | None
    evidence: Path | None
    every: float | None  # None: once
    prices: Prices | None
    as_json: bool


def watch(wish: Wish) -> None:
    """Look at a gateway until Ctrl-C, or once."""
    address = plain_url(
        wish.url,
        no_address="this is no address. An example: evenhand gateway top http://127.0.0.1:8088",
        tells_too_much="the address of the gateway must hold no password: name a --key-env",
    ).rstrip("/").removesuffix("/v1")  # fmt: skip
    key = configuration.secret(wish.key_env)
    if wish.key_env and not key:
        raise UserError(f"--key-env {wish.key_env}: this variable is not set, or is empty")
    repairs = Repairs(wish.evidence) if wish.evidence else None
    display = _Shown(address, wish.prices, repairs, as_json=wish.as_json)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_watch(address, key, display, wish.every))


class _Shown:
    """Where looks are shown: a screen, one page after the other, or JSON."""

    def __init__(
        self, address: str, prices: Prices | None, repairs: Repairs | None, *, as_json: bool
    ) -> None:
        self._address, self._prices, self._repairs = address, prices, repairs
        self._json = as_json
        self._live: Live | None = None
        self._last: Figures | None = None

    @contextlib.contextmanager
    def open(self, *, lasting: bool) -> Iterator[None]:
        """Keep a screen, where there is a terminal and more than one look."""
        if not lasting or self._json or not out.is_terminal:
            yield
            return
        with Live(console=out, auto_refresh=False) as self._live:
            yield

    def show(self, figures: Figures | None, problem: str = "") -> None:
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

    def _told(self, figures: Figures | None, problem: str) -> dict[str, object]:
        if figures is None:
            return {"gateway": self._address, "error": problem}
        record = {"gateway": self._address, **asdict(figures)}
        record["each_repair"] = asdict(each_repair(figures, self._prices))
        record["latency_is"] = "estimated from buckets"
        if self._repairs:
            record["last_repairs"] = asdict(self._repairs.last())
        return record


async def _watch(address: str, key: str | None, display: _Shown, every: float | None) -> None:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    memory = Memory()
    limit = aiohttp.ClientTimeout(total=_SECONDS)
    # A connection that is kept would lead to the same process again.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(
        headers=headers, timeout=limit, connector=connector
    ) as session:
        looks = await looked(session, address)
        with display.open(lasting=every is not None):
            display.show(memory.figures(looks))
            while every is not None:
                await asyncio.sleep(every)
                try:
                    looks = await looked(session, address)
                except UserError as error:  # it may come back
                    display.show(None, str(error))
                else:
                    display.show(memory.figures(looks))


async def looked(session: aiohttp.ClientSession, address: str) -> Sequence[Look]:
    """Look at every process that answers at an address, as far as they can be met."""
    first = await _one(session, address)
    met = {first.process: first}
    if first.replicas > 1:
        tries = (_one(session, address) for _ in range(_TRIES * first.replicas))
        results = await asyncio.gather(*tries, return_exceptions=True)  # who is missing is said
        met |= {look.process: look for look in results if isinstance(look, Look)}
    return [met[name] for name in sorted(met)]


async def _one(session: aiohttp.ClientSession, address: str) -> Look:
    try:
        async with session.get(f"{address}/metrics") as response:
            body = await read_capped(response, _MOST_BODY)
    except (aiohttp.ClientError, TimeoutError) as error:
        port = address.rpartition(":")[2]
        where = f" --port {port}" if port.isdigit() else ""
        raise UserError(
            f"{address} does not answer ({type(error).__name__}). If no gateway runs there, start "
            f"one:\nevenhand gateway serve --upstream URL{where}"
        ) from None
    again = shlex.join(["evenhand", "gateway", "top", address, "--key-env", "NAME"])
    if response.status == 401:
        raise UserError(
            f"{address} wants the key of an operator: put the hash of one under operators in the "
            "policy (`evenhand gateway key` makes both), the key itself into an environment "
            f"variable, and run:\n{again}"
        )
    try:
        if response.status != 200 or body is None:
            raise UserError(f"/metrics gave HTTP {response.status}")
        return read(body.decode("utf-8", "replace"), time.monotonic())
    except EvenhandError as error:
        raise UserError(
            f"{address}: {error}. See what is there:\n"
            f"evenhand doctor endpoint --base-url {address}/v1"
        ) from None
