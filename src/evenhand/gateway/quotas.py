"""How much a tenant may ask for: requests a minute, requests at once, and tokens a day.

`LocalQuotas` counts in the memory of one replica; `shared_quotas` counts in a store that several
replicas ask. Both take everything a request needs at once, or nothing of it.

Our choices: the minute slides, because a fixed one lets twice as many through around its edge, and
the times of the last requests are few bytes each. The day is a day in UTC, as bills are. Tokens are
reserved at the worst case of a request and settled to what was used.
"""

import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Protocol

from evenhand.core.errors import UserError

MINUTE, DAY = 60.0, 86_400
MOST = 10**15  # our choice: what both stores count exactly (a float of 64 bits holds 9 · 10¹⁵)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a tenant may use; None is no bound, 0 is nothing at all."""

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
        """Take one request and reserve its tokens. `OverQuota` if there is not enough left,
        `StoreUnavailable` if that cannot be found out. Where it raises, nothing stays taken."""
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
        _check_at_once(counts, allowance.at_once)
        _check_tokens(counts, allowance.tokens_a_day, lease.tokens, now)
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


def _check_at_once(counts: _TenantUsage, most: int | None) -> None:
    if most is not None and len(counts.leases) >= most:
        raise OverQuota("at_once", AT_ONCE_PAUSE if most else None)


def _check_tokens(counts: _TenantUsage, most: int | None, tokens: int, now: float) -> None:
    if most is not None and counts.spent + counts.reserved + tokens > most:
        raise OverQuota("tokens_a_day", DAY - now % DAY if tokens <= most else None)
