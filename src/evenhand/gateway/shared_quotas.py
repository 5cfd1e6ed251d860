"""Quotas that several replicas share, in a store that speaks the Redis protocol (Valkey, Redis).

What is taken is taken in one script, which the store runs alone and by its own clock: the replicas
together never admit more than the allowance. A store that loses its memory begins anew: let it keep
an append-only file, and evict nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from evenhand.core.errors import UserError
from evenhand.core.package_data import read_text
from evenhand.gateway.quotas import (
    AT_ONCE_PAUSE,
    DAY,
    MINUTE,
    MOST,
    Allowance,
    Lease,
    OverQuota,
    StoreUnavailable,
    counted,
    new_lease,
)

_INSTALL = "shared quotas need the valkey package: pip install 'evenhand[gateway]'"
_CONNECTIONS = 16  # our choice: a script takes the store a tenth of a millisecond
_OWED = 100_000  # our choice: settlements that are kept for a store that does not answer
_QUEUED = 2.0  # our choice, in seconds: a burst that waits for a connection is no dead store
_TRY_AGAIN, _LAST = 0.5, 1.0  # our choice, in seconds
_BOUNDS = ("requests_a_minute", "at_once", "tokens_a_day")
_NO_BOUND = -1


def _script(name: str) -> str:
    """A script that the store runs, with our numbers before it."""
    numbers = DAY, int(MINUTE * 1e6), int(AT_ONCE_PAUSE * 1e6), MOST
    head = f"local DAY, MINUTE, PAUSE, MOST = {', '.join(map(str, numbers))}\n"
    files = ("quotas_common.lua", f"quotas_{name}.lua")
    return head + "".join(read_text(__package__, file) for file in files)


class _StoreInDoubt(StoreUnavailable):
    """The store did not answer, and may have heard."""


class SharedQuotas:
    """
    >>> quotas = SharedQuotas("redis://127.0.0.1:6379/0")

    `patience` bounds each question to the store, in seconds, from when it is sent. A replica that
    dies leaves its leases behind: they end `longest` seconds after they were taken, so no request
    may last longer.
    """

    def __init__(self, url: str, *, patience: float = 0.25, longest: float = 600.0) -> None:
        self._client = _client(url, patience)
        self._take = self._client.register_script(_script("take"))
        self._settle = self._client.register_script(_script("settle"))
        self._patience = patience
        self._longest = int(longest * 1e6)
        self._free = asyncio.Semaphore(_CONNECTIONS)
        self._owed: dict[Lease, int] = {}  # what the store may not have heard
        self._telling: asyncio.Task[None] | None = None
        self.healthy = True
        self.problem = ""  # why it is not healthy, or was not last; it holds no password

    async def ping(self) -> None:
        """Ask the store whether it is there.

        Raises:
            StoreUnavailable: It is not, or does not let us in.
        """
        await self._heard(self._client.ping)

    async def take(self, tenant: str, allowance: Allowance, tokens: int) -> Lease:
        lease = new_lease(tenant, tokens)
        bounds = [getattr(allowance, name) for name in _BOUNDS]
        limits = [_NO_BOUND if bound is None else bound for bound in bounds]
        try:
            reply = await self._ask(self._take, lease, self._longest, *limits, lease.tokens)
            which, wait = _pair(reply)
        except (_StoreInDoubt, asyncio.CancelledError):
            self._owe(lease, 0)  # it may have been taken: nobody will use it
            raise
        if which:
            raise OverQuota(_BOUNDS[which - 1], wait / 1e6 if wait >= 0 else None)
        return lease

    async def settle(self, lease: Lease, tokens: int) -> None:
        try:
            await self._ask(self._settle, lease, counted(tokens), "first")
        except (StoreUnavailable, asyncio.CancelledError) as error:
            self._owe(lease, counted(tokens))
            if isinstance(error, asyncio.CancelledError):
                raise

    async def close(self) -> None:
        """Close the connections, after a last second for what the store has not heard."""
        if self._telling is not None:
            await asyncio.wait([self._telling], timeout=_LAST)
            self._telling.cancel()
            await asyncio.wait([self._telling])
        await self._client.aclose()

    @property
    def owed(self) -> int:
        """How many settlements wait for the store to answer again."""
        return len(self._owed)

    async def _ask(self, script: Any, lease: Lease, *arguments: object) -> Any:
        """Run a script, within the time and whatever the store does."""
        member = f"{lease.id}:{lease.tokens}"
        return await self._heard(
            lambda: script(keys=_keys(lease.tenant), args=[member, *arguments])
        )

    async def _heard(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        problem = ""
        error_kind: type[StoreUnavailable] = StoreUnavailable
        try:
            async with asyncio.timeout(_QUEUED + self._patience) as bound, self._free:
                bound.reschedule(asyncio.get_running_loop().time() + self._patience)
                error_kind = _StoreInDoubt
                reply = await ask()
                self.healthy = True
                return reply
        except TimeoutError:
            problem = f"no answer within {self._patience:g} s"
        # Whatever a hostile or broken store makes of the client that reads it.
        except Exception as error:
            problem = type(error).__name__
        self.healthy, self.problem = False, problem
        raise error_kind(f"the store of the quotas cannot be asked: {problem}")

    def _owe(self, lease: Lease, tokens: int) -> None:
        # A place that may have been taken ends by itself: what was used comes first.
        if len(self._owed) < (_OWED if tokens else _OWED // 2):
            self._owed[lease] = tokens
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        """Tell the store what it has missed, one after the other, until it has heard all."""
        while self._owed:
            lease, tokens = next(iter(self._owed.items()))
            try:
                await self._ask(self._settle, lease, tokens, "again")
                del self._owed[lease]
            except StoreUnavailable:
                self._owed[lease] = self._owed.pop(lease)  # to the end: another may be heard
                await asyncio.sleep(_TRY_AGAIN)


def _client(url: str, patience: float) -> Any:
    try:
        from valkey.asyncio import ConnectionPool, Valkey  # noqa: PLC0415
    except ModuleNotFoundError:
        raise UserError(_INSTALL) from None
    try:
        pool = ConnectionPool.from_url(url, lib_name=None, lib_version=None)
    except ValueError:
        raise UserError(
            "the address of the quotas' store cannot be read; it should look like "
            "redis://127.0.0.1:6379/0"
        ) from None
    # Whatever the address asks for: a script that is sent twice would count twice. The time of a
    # question is bounded as a whole; a bound of each step as well costs a quarter more.
    pool.connection_kwargs |= {
        "retry_on_timeout": False,
        "socket_timeout": None,
        "socket_connect_timeout": patience,
    }
    return Valkey.from_pool(pool)


def _keys(tenant: str) -> list[str]:
    """The names of a tenant's counts. In hexadecimal digits no tenant's name can be read as that of
    another; the braces keep a tenant's counts on one node of a cluster."""
    name = tenant.encode("utf-8", "surrogatepass").hex()
    return [f"evenhand:{{{name}}}:{part}" for part in ("times", "leases", "budget")]


def _pair(reply: object) -> tuple[int, int]:
    match reply:
        case [int(which), int(wait)] if 0 <= which <= len(_BOUNDS):
            return which, wait
    raise _StoreInDoubt("the store of the quotas answered something else than was asked")
