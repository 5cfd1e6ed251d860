"""How much a tenant may ask for: requests a minute, requests at once, and tokens a day.

`LocalQuotas` counts in the memory of one replica; `SharedQuotas` counts in a store that several
replicas ask (Valkey, Redis). Both take everything a request needs at once, or nothing of it.

Our choices: the minute slides, because a fixed one lets twice as many through around its edge, and
the times of the last requests are few bytes each. The day is a day in UTC, as bills are. Tokens are
reserved at the worst case of a request and settled to what was used.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from evenhand.core.errors import UserError
from evenhand.core.package_data import read_text

MINUTE, DAY = 60.0, 86_400
MOST = 10**15  # our choice: what both stores count exactly (a float of 64 bits holds 9 · 10¹⁵)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a tenant may use; None is unlimited, 0 is nothing at all."""

    requests_a_minute: int | None = None
    at_once: int | None = None
    tokens_a_day: int | None = None

    def __post_init__(self) -> None:
        for bound in fields(self):
            value = getattr(self, bound.name)
            if value is not None and (type(value) is not int or not 0 <= value <= MOST):
                raise UserError(
                    f"{bound.name} is {value!r}; write a whole number from 0 to {MOST}, or leave "
                    "it out for no bound"
                )


@dataclass(frozen=True, slots=True)
class Lease:
    """What a request has taken, until it is settled."""

    tenant: str
    id: str
    tokens: int  # reserved


def new_lease(tenant: str, tokens: int) -> Lease:
    """Make a lease that nothing was taken for yet. Its id is random: no replica knows another's."""
    return Lease(tenant, secrets.token_hex(16), counted(tokens))


def counted(tokens: int) -> int:
    """Bring a number of tokens, which clients and upstreams may invent, to what can be counted:
    nobody gets anything back by having used less than nothing."""
    return min(max(tokens, 0), MOST)


class OverQuota(Exception):
    """The request is more than the tenant's allowance. `bound` names the field of `Allowance`, and
    `retry_after` is in seconds: None if waiting does not help."""

    def __init__(self, bound: str, retry_after: float | None) -> None:
        super().__init__(f"{bound} is used up")
        self.bound = bound
        self.retry_after = retry_after


class StoreUnavailable(Exception):
    """The quotas could not be asked: nobody knows whether the request may pass, so it may not."""


class Quotas(Protocol):
    """The counts of all tenants."""

    async def take(self, tenant: str, allowance: Allowance, tokens: int) -> Lease:
        """Count one request and reserve its tokens.

        Args:
            tenant: Whose request it is.
            allowance: What the tenant may use.
            tokens: How many tokens to reserve.

        Returns:
            The lease, which `settle` ends.

        Raises:
            OverQuota: If not enough is left. Nothing stays counted.
            StoreUnavailable: If the store does not answer. Nothing stays counted.
        """
        ...

    async def settle(self, lease: Lease, tokens: int) -> None:
        """End a request that used so many tokens. It raises nothing, and counts a lease once: what
        a store cannot be told now it is told later."""
        ...

    async def close(self) -> None: ...


AT_ONCE_PAUSE = 1.0  # our choice, in seconds: nobody knows when one of the others will end


@dataclass(slots=True)
class _TenantUsage:
    """What one tenant has used."""

    times: deque[float] = field(default_factory=deque)  # of the latest requests, the latest first
    leases: dict[str, int] = field(default_factory=dict)  # id -> tokens reserved
    reserved: int = 0
    day: int = 0
    spent: int = 0  # tokens of that day


class LocalQuotas:
    """Quotas in memory, for one replica. A new start begins with nothing used."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock  # seconds since 1970
        self._tenants: dict[str, _TenantUsage] = {}

    async def take(self, tenant: str, allowance: Allowance, tokens: int) -> Lease:
        lease = new_lease(tenant, tokens)
        counts, now = self._of(tenant), self._clock()
        most = allowance.requests_a_minute
        _check_minute(counts, most, now)
        at_once, a_day = allowance.at_once, allowance.tokens_a_day
        if at_once is not None and len(counts.leases) >= at_once:
            raise OverQuota("at_once", AT_ONCE_PAUSE if at_once else None)
        if a_day is not None and counts.spent + counts.reserved + lease.tokens > a_day:
            raise OverQuota("tokens_a_day", DAY - now % DAY if lease.tokens <= a_day else None)
        if most is not None:
            counts.times.appendleft(now)
            while len(counts.times) > most:
                counts.times.pop()
        counts.leases[lease.id] = lease.tokens
        counts.reserved += lease.tokens
        return lease

    async def settle(self, lease: Lease, tokens: int) -> None:
        counts = self._of(lease.tenant)
        reserved = counts.leases.pop(lease.id, None)
        if reserved is not None:
            counts.reserved -= reserved
            counts.spent = counted(counts.spent + counted(tokens))

    async def close(self) -> None:
        """Nothing is open."""

    def _of(self, tenant: str) -> _TenantUsage:
        counts = self._tenants.setdefault(tenant, _TenantUsage())
        today = int(self._clock() // DAY)
        if today > counts.day:  # a clock that is set back gives nobody a second day
            counts.day, counts.spent = today, 0
        return counts


def _check_minute(counts: _TenantUsage, most: int | None, now: float) -> None:
    if most == 0:
        raise OverQuota("requests_a_minute", None)
    if most is None or len(counts.times) < most:
        return
    left = counts.times[most - 1] + MINUTE - now  # until the oldest that counts is a minute old
    if left > 0:
        raise OverQuota("requests_a_minute", left)


_INSTALL = "shared quotas need the valkey package: pip install 'evenhand[gateway]'"
_CONNECTIONS = 16  # our choice: a script takes the store a tenth of a millisecond
_OWED = 100_000  # our choice: settlements that are kept for a store that does not answer
_QUEUED = 2.0  # our choice, in seconds: a burst that waits for a connection is not a dead store
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
    """Quotas that several replicas share, in a store that speaks the Redis protocol.

    >>> quotas = SharedQuotas("redis://127.0.0.1:6379/0")

    What is taken is taken in one script, which the store runs alone and by its own clock: the
    replicas together never admit more than the allowance. A store that loses its memory starts
    at 0: let it keep an append-only file, and evict nothing.

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
