"""What is kept of every exchange, in one call: figures, a run folder, a row for those who audit, a
span for those who trace."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.gateway.admission import Admission
from evenhand.gateway.alarms import Alarms
from evenhand.gateway.audit import AuditRow, AuditWriter
from evenhand.gateway.breaker import Breakers
from evenhand.gateway.evidence import EvidenceLost, EvidenceWriter
from evenhand.gateway.metrics import Metrics
from evenhand.gateway.policy import LITELLM_ALONE, ROUTES, Policy
from evenhand.gateway.shared_quotas import SharedQuotas
from evenhand.gateway.verdicts import BROKEN_OFF, NOT_RECORDED, Action, Exchange

if TYPE_CHECKING:  # it needs an extra of its own
    from evenhand.gateway.telemetry import Telemetry


class ExchangeRecorder:
    """The books of one gateway process. Without evidence and audit there are the figures alone."""

    def __init__(self, policy: Policy, tenants: tuple[str, ...], replicas: int = 1) -> None:
        self._policy = policy.sha256()
        self._require = policy.require_evidence
        self._metrics = Metrics(tenants, (*ROUTES, LITELLM_ALONE), replicas)
        self._evidence: EvidenceWriter | None = None
        self._audit: AuditWriter | None = None
        self._secret = b""
        self._telemetry: Telemetry | None = None
        self.alarms = Alarms()

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
            self._evidence.record(exchange)
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
            await self._evidence.written(exchange)
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
        self._metrics.breaker("closed" if breakers.closed else "open")
        self._metrics.in_flight.set(admission.under_way)
        return self._metrics.text()
