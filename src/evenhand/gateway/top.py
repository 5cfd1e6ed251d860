"""Look at a running gateway: its figures, read from every process that answers."""

import asyncio
import shlex
import time
from collections.abc import AsyncIterator, Sequence

import aiohttp

from evenhand.core.errors import EvenhandError, UserError
from evenhand.gateway.looks import GatewayFigures, ProcessSnapshot, SnapshotHistory, read
from evenhand.models.http_client import plain_url, read_capped

_SECONDS = 5.0  # our choice: figures that take longer are as good as none
_MOST_BODY = 16 * 1024 * 1024
_TRIES = 4  # our choice, for each replica: whichever is free answers, so each is met by luck


def gateway_address(url: str) -> str:
    """The address of a gateway, without a path; one that holds a password is refused."""
    return plain_url(
        url,
        no_address="this is no address. An example: evenhand gateway top http://127.0.0.1:8088",
        tells_too_much="the address of the gateway must hold no password: name a --key-env",
    ).rstrip("/").removesuffix("/v1")  # fmt: skip


async def figures_of(
    address: str, key: str | None, every: float | None
) -> AsyncIterator[GatewayFigures | UserError]:
    """Give the figures of a gateway, once or every so many seconds.

    Args:
        address: The address of the gateway.
        key: The key of an operator.
        every: Seconds between two looks; None looks once.

    Yields:
        The figures, or the error of a later look: the gateway may come back.

    Raises:
        UserError: If the first look fails.
    """
    headers = {"authorization": f"Bearer {key}"} if key else {}
    memory = SnapshotHistory()
    limit = aiohttp.ClientTimeout(total=_SECONDS)
    # A connection that is kept would lead to the same process again.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(
        headers=headers, timeout=limit, connector=connector
    ) as session:
        yield memory.figures(await looked(session, address))
        while every is not None:
            await asyncio.sleep(every)
            try:
                looks = await looked(session, address)
            except UserError as error:
                yield error
            else:
                yield memory.figures(looks)


async def looked(session: aiohttp.ClientSession, address: str) -> Sequence[ProcessSnapshot]:
    """Look at every process that answers at an address, as far as they can be met."""
    first = await _one(session, address)
    met = {first.process: first}
    if first.replicas > 1:
        tries = (_one(session, address) for _ in range(_TRIES * first.replicas))
        results = await asyncio.gather(*tries, return_exceptions=True)  # who is missing is said
        met |= {look.process: look for look in results if isinstance(look, ProcessSnapshot)}
    return [met[name] for name in sorted(met)]


async def _one(session: aiohttp.ClientSession, address: str) -> ProcessSnapshot:
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
