"""What Prometheus is told: how many, how long and by what cause, and what was not run or lost.

Tenants and routes are those that are configured, so a label never grows with what clients send;
every action is there from the start, at 0, because a series that is missing looks like a good day.
"""

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Enum,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evenhand.gateway.recorded import tokens
from evenhand.gateway.verdicts import Action, Exchange

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CAUSES = ("upstream", "screen", "agents", "all")
# Errors for reasons of the gateway's own, which the objective of availability counts.
OWN_REFUSALS = (
    "overloaded", "draining", "quota_unknown", "not_recorded", "not_checked", "gateway_failed"
)  # fmt: skip
_STATES = ("closed", "half_open", "open")
_NAME = "evenhand_gateway"
# What is said before there is anything to count: the upstream has not answered since the start.
NOT_READY = f"# TYPE {_NAME}_ready gauge\n{_NAME}_ready 0\n".encode()
_OTHER = "other"  # tenants and routes that are not configured
# Our choice, in seconds: from a screen's millisecond to the longest deadline that makes sense.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60)


class ExchangeWriter(Protocol):
    """Whatever exchanges are handed to behind the answers."""

    lost: dict[Action, int]

    @property
    def healthy(self) -> bool: ...

    @property
    def waiting(self) -> int: ...


class Metrics:
    """The figures of one process of a gateway, each instance with a registry of its own."""

    def __init__(self, tenants: Iterable[str], routes: Iterable[str], replicas: int = 1) -> None:
        self._registry = CollectorRegistry()
        self._tenants, self._routes = {*tenants, _OTHER}, {*routes, _OTHER}
        counter = partial(Counter, registry=self._registry)
        self._requests = counter(
            f"{_NAME}_requests", "Exchanges by what was done.", ("tenant", "route", "action")
        )
        self._seconds = Histogram(
            f"{_NAME}_seconds",
            "Seconds of an exchange by cause.",
            ("cause",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._calls = counter(f"{_NAME}_agent_calls", "Calls to agents.", ("tenant",))
        said = "Tokens of agents, where an endpoint counted them."
        self._tokens = counter(f"{_NAME}_agent_tokens", said, ("tenant", "direction"))
        said = "Tokens of agents by the model that was asked, where its endpoint counted them."
        self._of_models = counter(f"{_NAME}_model_tokens", said, ("model", "direction"))
        said = "Exchanges with agents whose tokens were not counted."
        self._uncounted = counter(f"{_NAME}_agent_tokens_unknown", said, ("tenant",))
        said = "Journals of processes that died, committed by this one."
        self.adopted = counter(f"{_NAME}_evidence_adopted", said)
        self.refused = counter(f"{_NAME}_refused", "Requests that got an error.", ("code",))
        for code in OWN_REFUSALS:
            self.refused.labels(code)
        gauge = partial(Gauge, registry=self._registry)
        self.in_flight = gauge(f"{_NAME}_in_flight", "Requests at work.")
        self.at_once = gauge(f"{_NAME}_at_once", "Requests that may be at work.")
        self.ready = gauge(f"{_NAME}_ready", "1 while /ready says yes.")
        said = "The policy in force, by its hash."
        self._policy = Gauge(f"{_NAME}_policy", said, ("sha256",), registry=self._registry)
        said = "Reads of a changed policy: applied, or refused and the old one kept."
        self._reloads = counter(f"{_NAME}_policy_reloads", said, ("outcome",))
        said = "1 while the policy in force is older than its file, which was refused."
        self._stale = gauge(f"{_NAME}_policy_stale", said)
        for outcome in ("applied", "refused"):
            self._reloads.labels(outcome)
        said = "The breaker before the upstream."
        self.breaker = Enum(f"{_NAME}_breaker", said, states=_STATES, registry=self._registry)
        # The name of this process: two requests show whether the same one answered.
        up = gauge(f"{_NAME}_process_seconds", "How long this process has counted.", ("process",))
        began = time.monotonic()
        name = f"{socket.gethostname()}-{os.getpid()}"
        up.labels(name).set_function(lambda: time.monotonic() - began)
        said = "Processes that answer at this port, each with figures of its own."
        gauge(f"{_NAME}_replicas", said).set(replicas)
        self.add_tenants(self._tenants)
        for cause in CAUSES:
            self._seconds.labels(cause)

    def add_tenants(self, tenants: Iterable[str]) -> None:
        """Show the series of these tenants, from 0."""
        tenants = set(tenants)
        self._tenants |= tenants
        for tenant, route, action in product(tenants, self._routes, Action):
            self._requests.labels(tenant, route, action)
        for tenant in tenants:
            self._calls.labels(tenant)
            self._uncounted.labels(tenant)
            for direction in ("in", "out"):
                self._tokens.labels(tenant, direction)

    def policy(self, sha256: str) -> None:
        """Show which policy is in force."""
        self._policy.clear()
        self._policy.labels(sha256).set(1)

    def reloaded(self, outcome: str) -> None:
        """Count a read of a changed policy: "applied" or "refused"."""
        self._reloads.labels(outcome).inc()
        self._stale.set(outcome == "refused")

    def watch(self, kind: str, writer: ExchangeWriter) -> None:
        """Show what a writer lost, whether it can write, and how many wait for it."""
        self._registry.register(_WriterCollector(kind, writer))

    def watch_health(self, kind: str, healthy: Callable[[], bool]) -> None:
        """Show whether a store can be asked."""
        gauge = Gauge(
            f"{_NAME}_{kind}_healthy", "1 while it can be asked.", registry=self._registry
        )
        gauge.set_function(lambda: float(healthy()))

    def count(self, exchange: Exchange) -> None:
        """Count an exchange that has ended. A cause without a figure is not counted as 0."""
        tenant = exchange.tenant if exchange.tenant in self._tenants else _OTHER
        route = exchange.route if exchange.route in self._routes else _OTHER
        self._requests.labels(tenant, route, exchange.action).inc()
        for cause in CAUSES:
            if cause in exchange.seconds:
                self._seconds.labels(cause).observe(exchange.seconds[cause])
        turns = [turn for verdict in exchange.verdicts for turn in verdict.turns]
        self._calls.labels(tenant).inc(len(turns))
        counts = tokens(turns)
        for direction, spent in zip(("in", "out"), counts, strict=True):
            self._tokens.labels(tenant, direction).inc(spent or 0)
        for turn in turns:  # by models of the config, so these labels are bounded too
            self._of_models.labels(turn.model, "in").inc(turn.prompt_tokens or 0)
            self._of_models.labels(turn.model, "out").inc(turn.completion_tokens or 0)
        if None in counts:
            self._uncounted.labels(tenant).inc()

    def text(self) -> bytes:
        """All figures in the text format, under `CONTENT_TYPE`."""
        return generate_latest(self._registry)


class _WriterCollector(Collector):
    """The state of a writer, read when it is asked for."""

    def __init__(self, kind: str, writer: ExchangeWriter) -> None:
        self._kind, self._writer = kind, writer

    def collect(self) -> Iterator[Metric]:
        name = f"{_NAME}_{self._kind}"
        lost: Mapping[Action, int] = self._writer.lost
        counted = CounterMetricFamily(f"{name}_lost", "Exchanges not on record.", labels=["action"])
        for action in Action:
            counted.add_metric([action], lost[action])
        yield counted
        healthy = float(self._writer.healthy)
        yield GaugeMetricFamily(f"{name}_healthy", "1 while it can be written.", value=healthy)
        waiting = float(self._writer.waiting)
        yield GaugeMetricFamily(f"{name}_waiting", "Exchanges not written yet.", value=waiting)
