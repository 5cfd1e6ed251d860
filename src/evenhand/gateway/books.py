"""What is kept of every exchange, in one call: figures, a run folder, a row for those who audit, a
span for those who trace; and what operators are told of stores that cannot be written or asked.

A problem is logged when it begins, once a minute while it lasts, and when it ends. `/ready` is open
to anybody, so it says which store, and never why.
"""

import asyncio
import contextlib
import copy
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from evenhand.gateway.admission import Admission
from evenhand.gateway.audit import AuditRow, AuditWriter
from evenhand.gateway.breaker import Breakers
from evenhand.gateway.evidence import EvidenceLost, EvidenceWriter
from evenhand.gateway.metrics import Metrics
from evenhand.gateway.policy import LITELLM_ALONE, ROUTES, Policy
from evenhand.gateway.quotas import SharedQuotas
from evenhand.gateway.traffic import TrafficRecording
from evenhand.gateway.verdicts import BROKEN_OFF, NOT_RECORDED, Action, Exchange

if TYPE_CHECKING:  # it needs an extra of its own
    from evenhand.gateway.telemetry import RouteEvaluator, Telemetry

_LOG = logging.getLogger("evenhand.gateway")
_AGAIN_SECONDS = 60.0  # our choice: a problem that lasts is in every screenful of a log
_LOOK_SECONDS = 1.0  # our choice


class Store(Protocol):
    """A store that can fail while answers go on. Its problem holds no secret and no text."""

    @property
    def healthy(self) -> bool: ...

    @property
    def problem(self) -> str: ...


@dataclass(slots=True)
class _WatchedStore:
    kind: str
    store: Store
    required: bool
    ask: Callable[[], Awaitable[None]] | None  # finds out whether it is well again
    logged: float | None = None  # when its problem was logged last


class Alarms:
    """The stores of one gateway process, and what is said of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watched: list[_WatchedStore] = []

    def watch(
        self,
        kind: str,
        store: Store,
        *,
        required: bool,
        ask: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Watch a store.

        Args:
            kind: What it is called: "evidence", "audit", "otel", "quotas".
            store: Says whether it is healthy, and what its problem is.
            required: Whether no request can be answered without it.
            ask: Asks a store that is not healthy again, where nothing else would.
        """
        self._watched.append(_WatchedStore(kind, store, required, ask))

    @property
    def down(self) -> list[str]:
        """The stores that are not healthy just now."""
        return [watched.kind for watched in self._watched if not watched.store.healthy]

    @property
    def required_down(self) -> bool:
        """Whether one of them is a store that no request can be answered without."""
        return any(watched.required and not watched.store.healthy for watched in self._watched)

    def look(self) -> None:
        """Log what has begun, what lasts and what has ended."""
        now = self._clock()
        for watched in self._watched:
            if not watched.store.healthy:
                if watched.logged is None or now - watched.logged >= _AGAIN_SECONDS:
                    _LOG.error("%s is down: %s", watched.kind, watched.store.problem)
                    watched.logged = now
            elif watched.logged is not None:
                _LOG.warning("%s is well again", watched.kind)
                watched.logged = None

    @contextlib.asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Look every second meanwhile, and ask again who does not recover by being used."""
        task = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _look_on(self) -> None:
        while True:
            self.look()
            for watched in self._watched:
                if watched.ask is not None and not watched.store.healthy:
                    with contextlib.suppress(Exception):
                        await watched.ask()
            await asyncio.sleep(_LOOK_SECONDS)


class ExchangeRecorder:
    """The books of one gateway process. Without evidence and audit there are the figures alone."""

    def __init__(self, policy: Policy, tenants: tuple[str, ...], replicas: int = 1) -> None:
        self._policy = policy.sha256()
        self._rules: Mapping[str, TrafficRecording] = {}
        self._require = policy.require_evidence
        self._metrics = Metrics(tenants, (*ROUTES, LITELLM_ALONE), replicas)
        self._evidence: EvidenceWriter | None = None
        self._audit: AuditWriter | None = None
        self._secret = b""
        self._telemetry: Telemetry | None = None
        self._metrics.policy(self._policy)
        self.alarms = Alarms()

    def under(self, policy: Policy, rules: Mapping[str, TrafficRecording]) -> "ExchangeRecorder":
        """The same books for exchanges under another policy.

        Args:
            policy: The policy.
            rules: What is kept of the traffic of its tenants; empty without evidence.

        Returns:
            Books that share figures and stores with these.
        """
        books = copy.copy(self)
        books._policy, books._rules = policy.sha256(), rules
        return books

    def in_force(
        self,
        tenants: tuple[str, ...],
        evaluators: "Mapping[tuple[str, str], RouteEvaluator] | None" = None,
    ) -> None:
        """Show in figures and spans that the policy of these books is in force.

        Args:
            tenants: Its tenants.
            evaluators: Who judges the answers to each of them, where spans say so.
        """
        self._metrics.add_tenants(tenants)
        self._metrics.policy(self._policy)
        if self._telemetry is not None and evaluators is not None:
            self._telemetry.follow(evaluators, policy=self._policy)

    def adopted(self, folder: str) -> None:
        """Count a journal of a process that died, which was committed here."""
        _LOG.warning("committed what a process that died left in %s", folder)
        self._metrics.adopted.inc()

    def reloaded(self, outcome: str) -> None:
        """Count a read of a changed policy: "applied" or "refused"."""
        self._metrics.reloaded(outcome)

    def keep(self, evidence: EvidenceWriter) -> None:
        """Keep run folders."""
        self._evidence = evidence
        self._metrics.watch("evidence", evidence)
        self.alarms.watch("evidence", evidence, required=self._require)

    def audit(self, audit: AuditWriter, secret: bytes) -> None:
        """Keep rows."""
        self._audit, self._secret = audit, secret
        self._metrics.watch("audit", audit)
        self.alarms.watch("audit", audit, required=False)

    def trace(self, telemetry: "Telemetry") -> None:
        """Send spans."""
        self._telemetry = telemetry
        self._metrics.watch("otel", telemetry)
        self.alarms.watch("otel", telemetry, required=False)

    def share(self, quotas: SharedQuotas) -> None:
        """Show whether the quotas that replicas share can be asked."""
        self._metrics.watch_health("quotas", lambda: quotas.healthy)
        self.alarms.watch("quotas", quotas, required=True, ask=quotas.ping)

    def record(self, exchange: Exchange) -> None:
        """Put an exchange into the books, of which nothing more goes out."""
        if self._evidence is not None:
            self._evidence.record(exchange, self._rules.get(exchange.tenant))
        self._note(exchange)

    async def written(self, exchange: Exchange) -> None:
        """Put an exchange into the books before its answer goes out.

        Raises:
            EvidenceLost: The policy requires evidence, and it is not on disk.
        """
        if self._evidence is None or not self._require:
            self.record(exchange)
            return
        try:
            await self._evidence.written(exchange, self._rules.get(exchange.tenant))
        except EvidenceLost:
            self._note(replace(exchange, action=Action.BLOCKED, reason=NOT_RECORDED))
            raise
        except asyncio.CancelledError:
            self._note(replace(exchange, action=Action.BLOCKED, reason=BROKEN_OFF))
            raise
        self._note(exchange)

    def _note(self, exchange: Exchange) -> None:
        self._metrics.count(exchange)
        if self._audit is not None:
            folder = self._evidence.place(exchange) if self._evidence is not None else ""
            row = AuditRow.of(exchange, policy=self._policy, evidence=folder, key=self._secret)
            self._audit.record(row)
        if self._telemetry is not None:
            self._telemetry.record(exchange)

    def refused(self, code: str) -> None:
        """Count a request that got no answer, by the code of its error."""
        self._metrics.refused.labels(code).inc()

    def text(self, breakers: Breakers, admission: Admission) -> bytes:
        """The figures, as Prometheus reads them."""
        self._metrics.breaker.state("closed" if breakers.closed else "open")
        self._metrics.in_flight.set(admission.under_way)
        self._metrics.at_once.set(admission.most)
        self._metrics.ready.set(admission.ready and not self.alarms.required_down)
        return self._metrics.text()
