"""Every exchange becomes a span of OpenTelemetry, with an event for the verdict on each text.

Names are those of the conventions for generative AI (their status is "development"): a span of an
inference, and `gen_ai.evaluation.result`. What they lack, who judged by what, is under `evenhand.`.
No word of a prompt or an answer is in them.

Our choice: events of the span, not records of a log, which the conventions now prefer. Verdicts
then arrive with their exchange or not at all, stores of traces alone can show them, and Python's
API for logs is still private.

The SDK sends in a thread of its own, so that no answer waits. What could not be sent is counted by
its action.
"""

import asyncio
import contextlib
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from evenhand.core.errors import UserError
from evenhand.core.version import __version__
from evenhand.gateway.checking import Checker
from evenhand.gateway.policy import Policy
from evenhand.gateway.recorded import plain_name
from evenhand.gateway.verdicts import NOT_RECORDED, Action, Exchange, ExchangeVerdict

WAITING = 4096  # our choice, in exchanges: some 10 MB, and four seconds at a thousand a second
EVENT = "gen_ai.evaluation.result"
_BATCH = 512  # the SDK's own choice
_END_SECONDS = 5.0  # our choice: so long the end of the gateway waits for what was not sent yet
_Attributes = dict[str, AttributeValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteEvaluator:
    """Who judges the answers of one route to one tenant."""

    screen: str  # "offline@1+3f2a…"
    method: str
    prompts: str  # the hash over the names and hashes of all prompts of the method
    certified: str  # "pass" where the policy requires it, else nobody has looked: "unknown"

    @classmethod
    def of(cls, checker: Checker, policy: Policy) -> "RouteEvaluator":
        """The evaluator that a checker is."""
        record = checker.record()
        prompts = orjson.dumps(record.prompts, option=orjson.OPT_SORT_KEYS)
        return cls(
            screen=checker.screen,
            method=record.method["name"],
            prompts=hashlib.sha256(prompts).hexdigest(),
            certified="pass" if policy.require_certified_judges else "unknown",
        )


def otlp() -> SpanExporter:
    """The exporter that the standard variables (OTEL_EXPORTER_OTLP_ENDPOINT, …) describe. The SDK
    reads them itself."""
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    if not provider.get_tracer(__name__).start_span("").is_recording():
        raise UserError("--otel would send nothing: the variable OTEL_SDK_DISABLED is set")
    return OTLPSpanExporter()


class Telemetry:
    """The sender of spans. `record` never waits and never raises."""

    def __init__(
        self,
        exporter: SpanExporter,
        evaluators: Mapping[tuple[str, str], RouteEvaluator],  # by tenant and route
        *,
        policy: str,
        waiting: int = WAITING,
    ) -> None:
        self._evaluators, self._policy, self._most = evaluators, policy, waiting
        self._lock = threading.Lock()
        self._waiting: Counter[Action] = Counter()
        self._closed = False
        self.lost: dict[Action, int] = dict.fromkeys(Action, 0)
        self.healthy = True
        self.problem = ""  # why it is not healthy, or was not last
        ours = Resource({"service.name": "evenhand-gateway", "service.version": __version__})
        # All are sampled: no client can hide an exchange by its header. A collector may take fewer.
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=ours.merge(OTELResourceDetector().detect()),
            shutdown_on_exit=False,
        )
        counted = _CountingExporter(exporter, self._begun, self._ended)
        self._provider.add_span_processor(
            BatchSpanProcessor(
                counted, max_queue_size=waiting, max_export_batch_size=min(_BATCH, waiting)
            )
        )
        self._tracer = self._provider.get_tracer("evenhand.gateway", __version__)

    @property
    def waiting(self) -> int:
        with self._lock:
            return self._waiting.total()

    def record(self, exchange: Exchange) -> None:
        """Take an exchange to be sent. If too many wait, it is lost and counted."""
        with self._lock:
            full = self._waiting.total() >= self._most
            if full or self._closed:
                why = f"{self._most:,} exchanges wait to be sent" if full else "it is stopping"
                self.healthy, self.problem = False, why
                self.lost[exchange.action] += 1
                return
            self._waiting[exchange.action] += 1
        try:
            self._send(exchange)
        except Exception as error:  # whatever it is, no answer is lost by it
            with self._lock:
                self._lose(exchange.action, f"no span of an exchange: {type(error).__name__}")

    def follow(self, evaluators: Mapping[tuple[str, str], RouteEvaluator], *, policy: str) -> None:
        """Say of later exchanges that they were checked under another policy."""
        self._evaluators, self._policy = {**self._evaluators, **evaluators}, policy

    async def flush(self) -> None:
        """Wait until all that came so far was sent, or could not be."""
        await asyncio.to_thread(self._provider.force_flush)

    async def close(self) -> None:
        """Send what waits, for a while, and count as lost what could not be."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def end() -> None:
            self._provider.shutdown()
            with contextlib.suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=end, daemon=True).start()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _END_SECONDS)
        with self._lock:
            self._closed = True
            for action in self._waiting.elements():
                self.lost[action] += 1
            self._waiting.clear()

    # -- what a span says ------------------------------------------------------------------------

    def _send(self, exchange: Exchange) -> None:
        evaluator = self._evaluators[exchange.tenant, exchange.route]
        attributes = self._said(exchange)
        name = f"{_operation(exchange)} {plain_name(exchange.model)}".strip()
        parent = TraceContextTextMapPropagator().extract(
            {"traceparent": exchange.traceparent}, Context()
        )
        began = int(exchange.at * 1e9)
        ended = began + int(exchange.seconds.get("all", 0.0) * 1e9)
        span = self._tracer.start_span(
            name, parent, SpanKind.CLIENT, attributes=attributes, start_time=began
        )
        if "error.type" in attributes:
            span.set_status(Status(StatusCode.ERROR))
        for event in self._events(exchange, evaluator):
            span.add_event(EVENT, event, ended)
        span.end(ended)

    def _said(self, exchange: Exchange) -> _Attributes:
        attributes: _Attributes = {
            "gen_ai.operation.name": _operation(exchange),
            # The wire; whose model it is nobody tells us.
            "gen_ai.provider.name": "anthropic" if exchange.route == "/messages" else "openai",
            "evenhand.id": exchange.id,
            "evenhand.tenant": exchange.tenant,
            "evenhand.route": exchange.route,
            "evenhand.action": str(exchange.action),
            "evenhand.reason": exchange.reason,
            "evenhand.policy.sha256": self._policy,
            "evenhand.calls": sum(len(verdict.turns) for verdict in exchange.verdicts),
        }
        if model := plain_name(exchange.model):
            attributes["gen_ai.request.model"] = model
        for cause, seconds in exchange.seconds.items():
            attributes[f"evenhand.seconds.{cause}"] = seconds
        if not _judged(exchange):
            attributes["error.type"] = exchange.reason
        return attributes

    def _events(self, exchange: Exchange, evaluator: RouteEvaluator) -> Iterator[_Attributes]:
        """What was found of each text. An exchange that got no verdict has one event, which says
        so: nothing that was not checked is without a trace."""
        for verdict in exchange.verdicts:
            yield self._event(exchange, verdict, evaluator)
        if not exchange.verdicts and exchange.action is not Action.PASSED:
            nothing = ExchangeVerdict(
                action=exchange.action, before="", text="", reason=exchange.reason, ran=False
            )
            yield self._event(exchange, nothing, evaluator)

    def _event(
        self, exchange: Exchange, verdict: ExchangeVerdict, evaluator: RouteEvaluator
    ) -> _Attributes:
        unsent = exchange.reason == NOT_RECORDED
        attributes: _Attributes = {
            "gen_ai.evaluation.score.label": str(Action.BLOCKED if unsent else verdict.action),
            "gen_ai.evaluation.explanation": NOT_RECORDED if unsent else verdict.reason,
            "evenhand.policy.sha256": self._policy,
            "evenhand.version": __version__,
        }
        if not verdict.ran:
            attributes["error.type"] = verdict.reason
        if verdict.screen is not None:
            attributes["evenhand.screen.score"] = verdict.screen
        if verdict.turns or verdict.answer is not None:
            return attributes | {
                "gen_ai.evaluation.name": evaluator.method,
                "evenhand.evaluator.kind": "method",
                "evenhand.evaluator.models": sorted({plain_name(t.model) for t in verdict.turns}),
                "evenhand.evaluator.prompts_sha256": evaluator.prompts,
                "evenhand.evaluator.certified": evaluator.certified,
            }
        name, _, version = evaluator.screen.partition("@")
        if verdict.ran and verdict.screen is not None:
            attributes["gen_ai.evaluation.score.value"] = verdict.screen
        return attributes | {
            "gen_ai.evaluation.name": name,
            "evenhand.evaluator.kind": "screen",
            "evenhand.evaluator.version": version,
        }

    # -- in the SDK's thread ---------------------------------------------------------------------

    def _begun(self) -> bool:
        with self._lock:
            return not self._closed

    def _ended(self, spans: Sequence[ReadableSpan], sent: bool) -> None:
        with self._lock:
            if self._closed:  # they are counted already
                return
            self.healthy = sent
            for span in spans:
                action = Action(str((span.attributes or {})["evenhand.action"]))
                if sent:
                    self._waiting[action] -= 1
                else:
                    self._lose(action, "the collector did not take what was sent")

    def _lose(self, action: Action, problem: str) -> None:
        """Count one that waited as lost. The caller holds the lock."""
        self.healthy, self.problem = False, problem
        self._waiting[action] -= 1
        self.lost[action] += 1


def _operation(exchange: Exchange) -> str:
    return "text_completion" if exchange.route == "/completions" else "chat"


def _judged(exchange: Exchange) -> bool:
    """Whether every check came to its end. An answer without words has none to come to."""
    if not exchange.verdicts:
        return exchange.action is Action.PASSED
    return all(verdict.ran for verdict in exchange.verdicts) and exchange.reason != NOT_RECORDED


class _CountingExporter(SpanExporter):
    """An exporter of whose batches is said what became of them."""

    def __init__(
        self,
        exporter: SpanExporter,
        begun: Callable[[], bool],
        ended: Callable[[Sequence[ReadableSpan], bool], None],
    ) -> None:
        self._exporter, self._begun, self._ended = exporter, begun, ended

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            if self._begun():
                result = self._exporter.export(spans)
        finally:
            self._ended(spans, result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
