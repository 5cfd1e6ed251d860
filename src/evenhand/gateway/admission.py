"""Who is let in now: a tenant's quota, a bound of all requests under way, a short queue before it.

Our choices: the quota comes before the queue, so that a tenant who asks for too much is told so and
stands in nobody's way. The queue is short and its wait is a second: it evens out a burst, and what
lasts longer is better tried again by the client, who is told when.
"""

import asyncio
import math
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Any

from evenhand.gateway.quotas import Allowance, Lease, OverQuota, Quotas, StoreUnavailable
from evenhand.gateway.wire import Refused

MOST_BYTES = 128 * 1024 * 1024  # our choice: eight of the longest requests
_SHED_PAUSE = 1.0  # our choice, in seconds: as long as the queue's wait
_DRAIN_PAUSE = 5.0  # our choice: by then a load balancer has looked at `ready` and asks another
_SAID = {
    "requests_a_minute": ("rate_limited", "You have used up your requests of this minute."),
    "at_once": ("too_many_at_once", "You have as many requests under way as you may have at once."),
    "tokens_a_day": ("budget_spent", "Your tokens of this day do not suffice for this request."),
}


class Permit:
    """What a request that was let in holds. It is given back when the context ends."""

    def __init__(self, tenant: str, reserved: int, memory: "RequestMemory") -> None:
        self.tenant = tenant
        self.reserved = reserved
        self._spent: int | None = None
        self._memory = memory
        self._held = 0

    def hold(self, size: int) -> None:
        """Count bytes of the request that are in memory. Raises `Refused` if there are too many
        under way."""
        self._memory.take(self.tenant, size)
        self._held += size

    def let_go(self) -> None:
        """Give back what is held."""
        self._memory.give_back(self.tenant, self._held)
        self._held = 0

    def spend(self, tokens: int) -> None:
        """Count tokens that were used; 0 if the request ended before anything was asked. One that
        never says anything has spent all that was reserved: missing is not 0."""
        self._spent = (self._spent or 0) + tokens

    @property
    def spent(self) -> int:
        return self.reserved if self._spent is None else self._spent


class RequestMemory:
    """The bytes of requests under way: bounded in all, and a tenant among several has half."""

    def __init__(self, most: int, tenants: int) -> None:
        self._most = most
        self._held: dict[str, int] = {}
        self.share(tenants)

    def share(self, tenants: int) -> None:
        """Say how many tenants share it."""
        self._most_of_a_tenant = self._most if tenants < 2 else self._most // 2

    @property
    def held(self) -> int:
        return sum(self._held.values())

    def take(self, tenant: str, size: int) -> None:
        """Count bytes. Raises `Refused`, and then nothing is counted."""
        tenant_bytes = self._held.get(tenant, 0) + size
        if tenant_bytes > self._most_of_a_tenant or self.held + size > self._most:
            raise busy("overloaded", "Requests of too many bytes are under way.")
        self._held[tenant] = tenant_bytes

    def give_back(self, tenant: str, size: int) -> None:
        """Count bytes no more."""
        self._held[tenant] = self._held.get(tenant, 0) - size
        if not self._held[tenant]:
            del self._held[tenant]


class Admission:
    """The door of one replica.

    >>> async with admission.enter("team-hr", tokens=4_000) as permit:
    ...     permit.spend(usage.total)

    `most` requests are under way at once, `queue` more wait for up to `patience` seconds. The
    bodies of those under way have `most_bytes` in all; of several tenants each has half of that.
    """

    def __init__(
        self,
        quotas: Quotas,
        allowances: Mapping[str, Allowance],
        *,
        most: int = 256,
        queue: int = 64,
        patience: float = 1.0,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._quotas = quotas
        self.memory = RequestMemory(most_bytes, len(allowances))
        self._allowances = allowances
        self.most = most
        self._places = asyncio.Semaphore(most)
        self._queue = queue
        self._patience = patience
        self._waiting = 0
        self._entered = 0  # asked for, and not yet settled
        self._draining = False
        self._nobody = asyncio.Event()
        self._nobody.set()
        self._settling: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> bool:
        """Whether a load balancer should send requests here."""
        return not self._draining

    @property
    def under_way(self) -> int:
        return self._entered

    @property
    def waiting(self) -> int:
        return self._waiting

    def allow(self, allowances: Mapping[str, Allowance]) -> None:
        """Replace how much each tenant may use. What was used stays counted."""
        self._allowances = allowances
        self.memory.share(len(allowances))

    def enter(self, tenant: str, *, tokens: int = 0) -> "AdmissionContext":
        """Let a request in that uses so many tokens at most; the context raises `Refused` where
        that may not be."""
        return AdmissionContext(self, tenant, tokens)

    async def drain(self, grace: float) -> int:
        """Let nobody in any more, and wait for those under way. It gives how many are left when the
        grace has passed."""
        self._draining = True
        try:
            async with asyncio.timeout(grace):
                await self._nobody.wait()
        except TimeoutError:
            pass
        return self._entered

    async def _let_in(self, tenant: str, tokens: int) -> Lease:
        """Take quota and place, or neither."""
        if self._draining:
            raise busy("draining", "This server is about to stop.", _DRAIN_PAUSE)
        if self._places.locked() and self._waiting >= self._queue:
            raise _overloaded()  # without a question to the store
        allowance = self._allowances.get(tenant)
        if allowance is None:
            raise Refused(403, "no_allowance", "The policy does not say how much you may use.")
        self._entered += 1
        self._nobody.clear()
        lease = await self._take(tenant, allowance, tokens)
        try:
            await self._place()
        except BaseException:
            self._later(self._quotas.settle(lease, 0))
            raise
        return lease

    async def _take(self, tenant: str, allowance: Allowance, tokens: int) -> Lease:
        """Ask the quotas to the end, also for a client that has gone: what a question has taken
        must be known to be given back."""
        taking = asyncio.ensure_future(self._quotas.take(tenant, allowance, tokens))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            self._later(self._give_back(taking))
            raise
        except OverQuota as error:
            self._leave()
            raise _over_quota(error) from None
        except StoreUnavailable:
            self._leave()
            raise busy("quota_unknown", "Your quota cannot be looked up now.") from None
        except BaseException:
            self._leave()
            raise

    async def _place(self) -> None:
        if self._places.locked() and self._waiting >= self._queue:
            raise _overloaded()  # the queue has filled meanwhile
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._places.acquire()
        except TimeoutError:
            raise _overloaded() from None
        finally:
            self._waiting -= 1

    async def _let_out(self, lease: Lease, tokens: int) -> None:
        self._places.release()
        await asyncio.shield(self._later(self._quotas.settle(lease, tokens)))

    async def _give_back(self, taking: "asyncio.Future[Lease]") -> None:
        try:
            lease = await taking
        except (OverQuota, StoreUnavailable):
            return
        await self._quotas.settle(lease, 0)

    def _later(self, settled: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Settle in a task of its own, which nobody's going cuts short; then one fewer is under
        way."""
        task = asyncio.create_task(settled)
        self._settling.add(task)  # the loop itself holds a task only weakly
        task.add_done_callback(self._settled)
        return task

    def _settled(self, task: asyncio.Task[None]) -> None:
        self._settling.discard(task)
        self._leave()

    def _leave(self) -> None:
        self._entered -= 1
        if not self._entered:
            self._nobody.set()


class AdmissionContext:
    """The context of one request. No generator: `Refused` is frozen, and contextlib writes to the
    errors that pass through it."""

    def __init__(self, admission: Admission, tenant: str, tokens: int) -> None:
        self._admission = admission
        self._permit = Permit(tenant, tokens, admission.memory)
        self._lease: Lease | None = None

    async def __aenter__(self) -> Permit:
        permit = self._permit
        self._lease = await self._admission._let_in(permit.tenant, permit.reserved)
        return permit

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        lease, self._lease = self._lease, None
        self._permit.let_go()
        if lease is not None:
            await self._admission._let_out(lease, self._permit.spent)


def busy(code: str, message: str, pause: float = _SHED_PAUSE) -> Refused:
    """Make the refusal of a request that the client may send again later.

    Args:
        code: The error code, for programs.
        message: The error text, for people.
        pause: How long to wait before the next attempt, in seconds.

    Returns:
        A refusal with status 503 and a `Retry-After` header.
    """
    return Refused(503, code, message, headers=_retry_after(pause))


def _overloaded() -> Refused:
    return busy("overloaded", "Too many requests are under way.")


def _over_quota(error: OverQuota) -> Refused:
    code, message = _SAID[error.bound]
    if error.retry_after is None:
        return Refused(429, code, message)
    return Refused(429, code, message, headers=_retry_after(error.retry_after))


def _retry_after(seconds: float) -> dict[str, str]:
    """Say it in whole seconds, rounded up: who waits as long as he is told finds it true."""
    return {"retry-after": str(max(1, math.ceil(seconds)))}
