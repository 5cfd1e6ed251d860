"""Spans, read by the SDK's own exporter in memory and by a real collector that hangs and dies."""

import asyncio
import contextlib
import hashlib
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from evenhand import __version__
from evenhand.agents import Cast
from evenhand.cli.gateway import serve
from evenhand.core import Answer, Draft
from evenhand.core.errors import UserError
from evenhand.gateway import telemetry as module
from evenhand.gateway.books import ExchangeRecorder
from evenhand.gateway.checking import Checker
from evenhand.gateway.evidence import EvidenceLost, EvidenceWriter
from evenhand.gateway.guardrail import PATH
from evenhand.gateway.opening import evaluators
from evenhand.gateway.policy import ANYBODY, Policy, Tenant
from evenhand.gateway.telemetry import EVENT, RouteEvaluator, Telemetry
from evenhand.gateway.verdicts import Action, Exchange
from evenhand.methods.build import build_method
from evenhand.models.replay import ScriptedModel
from tests.errors import raises_naming
from tests.gateway.speaking import Screen, Speaker, free_port, gateway, team, up, upstream

from .exchanges import NOON, exchange, kept, passed, refused, repaired, turn

EVENHAND = str(Path(sys.executable).with_name("evenhand"))
WHO = RouteEvaluator(
    screen="offline@1+3f2a", method="stardtox", prompts="ab" * 32, certified="unknown"
)
HERE = {(tenant, "/chat/completions"): WHO for tenant in ("team-hr", ANYBODY)}
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def memory() -> InMemorySpanExporter:
    return InMemorySpanExporter()


async def told(memory: InMemorySpanExporter, *exchanges: Exchange) -> list[Any]:
    """What is sent of some exchanges."""
    telemetry = Telemetry(memory, HERE, policy="p" * 64)
    for one in exchanges:
        telemetry.record(one)
    await telemetry.close()
    assert not sum(telemetry.lost.values()), telemetry.problem
    return list(memory.get_finished_spans())


# -- what is said --------------------------------------------------------------------------------


async def test_an_exchange_is_a_span_by_the_conventions(memory: InMemorySpanExporter) -> None:
    [span] = await told(memory, exchange("eh-1", repaired(), passed()))
    assert (span.name, span.kind, span.parent) == ("chat gpt-x", SpanKind.CLIENT, None)
    assert span.start_time == NOON * 10**9
    assert span.end_time - span.start_time == 2_100_000_000
    assert span.status.status_code is StatusCode.UNSET
    assert span.resource.attributes["service.name"] == "evenhand-gateway"
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "evenhand.id": "eh-1",
        "evenhand.tenant": "team-hr",
        "evenhand.route": "/chat/completions",
        "evenhand.action": "repaired",
        "evenhand.reason": "accepted",
        "evenhand.policy.sha256": "p" * 64,
        "evenhand.calls": 2,
        "evenhand.seconds.upstream": 0.5,
        "evenhand.seconds.screen": 0.001,
        "evenhand.seconds.agents": 1.5,
        "evenhand.seconds.all": 2.1,
    }


async def test_each_text_has_an_event_that_says_who_judged_and_by_what(
    memory: InMemorySpanExporter,
) -> None:
    [span] = await told(memory, exchange("eh-1", repaired(), passed()))
    assert [event.name for event in span.events] == [EVENT, EVENT]
    by_method, by_screen = (dict(event.attributes) for event in span.events)
    ours = {"evenhand.policy.sha256": "p" * 64, "evenhand.version": __version__}
    assert by_method == {
        "gen_ai.evaluation.name": "stardtox",
        "gen_ai.evaluation.score.label": "repaired",
        "gen_ai.evaluation.explanation": "accepted",
        "evenhand.evaluator.kind": "method",
        "evenhand.evaluator.models": ("judge-model",),
        "evenhand.evaluator.prompts_sha256": "ab" * 32,
        "evenhand.evaluator.certified": "unknown",
        "evenhand.screen.score": 0.6,
        **ours,
    }
    assert by_screen == {
        "gen_ai.evaluation.name": "offline",
        "gen_ai.evaluation.score.value": 0.01,
        "gen_ai.evaluation.score.label": "passed",
        "gen_ai.evaluation.explanation": "clean",
        "evenhand.evaluator.kind": "screen",
        "evenhand.evaluator.version": "1+3f2a",
        "evenhand.screen.score": 0.01,
        **ours,
    }


@pytest.mark.parametrize("action", [Action.NOT_RUN, Action.BLOCKED])
async def test_a_check_that_did_not_come_to_its_end_is_an_error_without_a_score(
    memory: InMemorySpanExporter, action: Action
) -> None:
    broken = replace(refused(action, "deadline"), ran=False, screen=0.01)
    [span] = await told(memory, exchange("eh-1", passed(), broken))
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "deadline"
    assert span.attributes["evenhand.action"] == action
    event = span.events[1].attributes
    assert event["gen_ai.evaluation.score.label"] == action
    assert event["error.type"] == "deadline"
    assert "gen_ai.evaluation.score.value" not in event


async def test_an_exchange_without_a_verdict_says_so_and_one_without_words_has_no_event(
    memory: InMemorySpanExporter,
) -> None:
    garbled = replace(exchange("a"), action=Action.NOT_RUN, reason="upstream_garbled")
    unseen, silent = await told(memory, garbled, exchange("b"))
    [event] = unseen.events
    assert event.attributes["gen_ai.evaluation.score.label"] == "not_run"
    assert event.attributes["error.type"] == "upstream_garbled"
    assert (silent.events, silent.status.status_code) == ((), StatusCode.UNSET)


@given(
    actions=st.lists(st.sampled_from(list(Action)), max_size=4),
    ran=st.booleans(),
    screen=st.none() | st.floats(0, 1),
)
def test_only_what_passed_is_ever_called_passed(
    actions: list[Action], ran: bool, screen: float | None
) -> None:
    verdicts = [replace(refused(one, "x"), ran=ran, screen=screen) for one in actions]
    memory = InMemorySpanExporter()
    [span] = asyncio.run(told(memory, exchange("eh-1", *verdicts)))
    labels = [event.attributes["gen_ai.evaluation.score.label"] for event in span.events]
    assert labels == [str(one) for one in actions]
    scored = [event for event in span.events if "gen_ai.evaluation.score.value" in event.attributes]
    assert len(scored) == (len(actions) if ran and screen is not None else 0)


async def test_no_word_of_a_prompt_an_answer_or_an_agent_is_sent(
    memory: InMemorySpanExporter,
) -> None:
    secret = "zanzibar"
    drafts = (Draft(text=secret, reasoning=secret), Draft(text=f"{secret}."))
    verdict = replace(
        repaired(secret, f"{secret}."),
        answer=Answer(drafts=drafts, stopped="accepted"),
        turns=(turn(secret, secret, error_message=secret),),
    )
    asked = exchange("a", verdict, prompt=secret, context=secret, model=f"tell me of {secret}")
    [span] = await told(memory, replace(asked, traceparent=secret))
    assert secret not in span.to_json()
    assert span.name == "chat [not kept]"


@pytest.mark.parametrize("flags", ["00", "01"])
async def test_the_clients_span_is_the_parent_whether_or_not_it_is_sampled(
    memory: InMemorySpanExporter, flags: str
) -> None:
    said = replace(exchange("a", passed()), traceparent=f"00-{TRACE}-{PARENT}-{flags}")
    [span] = await told(memory, said)
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT


@given(st.text() | st.from_regex(r"00-[0-9a-f]{32}-[0-9a-f]{16}-.{2}", fullmatch=True))
def test_no_header_keeps_a_span_from_being_sent(header: str) -> None:
    said = replace(exchange("a", passed()), traceparent=header)
    assert len(asyncio.run(told(InMemorySpanExporter(), said))) == 1


async def test_an_answer_held_back_for_want_of_a_record_is_not_called_passed(
    memory: InMemorySpanExporter, tmp_path: Path
) -> None:
    books = ExchangeRecorder(Policy(require_evidence=True), ("team-hr",))
    evidence = EvidenceWriter(tmp_path, {"team-hr": kept()}, require_evidence=True)
    await evidence.close()
    books.keep(evidence)
    telemetry = Telemetry(memory, HERE, policy="p")
    books.trace(telemetry)
    with pytest.raises(EvidenceLost):
        await books.written(exchange("a", passed()))
    await telemetry.close()
    [span] = memory.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["evenhand.action"] == "blocked"
    assert span.attributes["error.type"] == "not_recorded"
    [event] = span.events
    assert event.attributes is not None
    assert event.attributes["gen_ai.evaluation.score.label"] == "blocked"


def test_who_judges_is_known_for_every_tenant_and_route() -> None:
    routes = {"/litellm": {"band": (0.0, 1.0)}}
    own = Tenant(keys=["x"], check={"method": "self_refine"}, routes=routes)
    policy = Policy(tenants={"hr": own, "search": Tenant(keys=["y"])})
    cast = Cast(ScriptedModel(team))
    checkers = {
        check: Checker(check, Screen(), build_method(check.method, check.set), cast)
        for check in policy.checks()
    }
    found = evaluators(policy, checkers)
    wires = ("/chat/completions", "/completions", "/responses", "/messages")
    routes_of = (*wires, "/litellm", "/litellm/alone")
    assert set(found) == {(who, route) for who in ("hr", "search") for route in routes_of}
    assert {one.method for (who, _), one in found.items() if who == "hr"} == {"self_refine"}
    assert {one.method for (who, _), one in found.items() if who == "search"} == {"stardtox"}
    prompts = {one.prompt.label: one.prompt.sha256 for one in build_method("stardtox").agents()}
    spelt = json.dumps(prompts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    hashed = hashlib.sha256(spelt.encode()).hexdigest()
    assert found["search", "/responses"] == RouteEvaluator(
        screen="word@1", method="stardtox", prompts=hashed, certified="unknown"
    )
    required = policy.model_copy(update={"require_certified_judges": True})
    assert {one.certified for one in evaluators(required, checkers).values()} == {"pass"}


async def test_the_span_of_a_proxys_question_is_the_parent_as_well() -> None:
    header = f"00-{TRACE}-{PARENT}-01"
    question = {"input_type": "response", "texts": ["They are people."], "litellm_call_id": "c1"}
    async with (
        gateway("http://127.0.0.1:1/v1") as served,
        aiohttp.ClientSession(headers={"traceparent": header}) as session,
        session.post(served.url.removesuffix("/v1") + PATH, json=question) as said,
    ):
        assert said.status == 200
    assert [one.traceparent for one in served.exchanges] == [header]


# -- a collector that fails ----------------------------------------------------------------------


@dataclass
class Collector:
    """A collector that keeps what it took. `mood` says what is wrong with it."""

    mood: str = "well"
    spans: list[Any] = field(default_factory=list)
    asked: int = 0
    release: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def take(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.mood == "hung":
            await self.release.wait()
        if self.mood == "drop":
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError
        if self.mood.isdigit():
            return web.Response(status=int(self.mood))
        read = ExportTraceServiceRequest.FromString(await request.read())
        self.spans += [s for r in read.resource_spans for g in r.scope_spans for s in g.spans]
        return web.Response()

    def actions(self) -> Counter[str]:
        return Counter(attributes(span)["evenhand.action"] for span in self.spans)


def attributes(said: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in said.attributes}


@contextlib.asynccontextmanager
async def collecting(mood: str = "well") -> AsyncIterator[Collector]:
    collector = Collector(mood)
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        collector.release.set()
        await runner.cleanup()


def sending(url: str, seconds: float = 0.5, **given: Any) -> Telemetry:
    exporter = OTLPSpanExporter(f"{url}/v1/traces", timeout=seconds)
    return Telemetry(exporter, HERE, policy="p", **given)


def some(count: int, seed: int = 0) -> Iterator[Exchange]:
    rng = random.Random(seed)
    for number in range(count):
        action = rng.choice(list(Action))
        yield exchange(f"eh-{number}", replace(refused(action, "x"), ran=rng.random() < 0.5))


def counted(lost: dict[Action, int]) -> Counter[str]:
    return +Counter({str(action): count for action, count in lost.items()})


@pytest.mark.parametrize("mood", ["400", "503", "drop"])
async def test_what_a_collector_does_not_take_is_counted_by_its_action(mood: str) -> None:
    asked = list(some(40))
    async with collecting(mood) as collector:
        telemetry = sending(collector.url)
        for one in asked:
            telemetry.record(one)
        await telemetry.flush()
        assert not telemetry.healthy
        assert counted(telemetry.lost) == Counter(str(one.action) for one in asked)
        collector.mood = "well"
        telemetry.record(exchange("later", passed()))
        await telemetry.close()
    assert collector.actions() == {"passed": 1}
    assert telemetry.healthy


async def test_a_dead_collector_costs_spans_and_they_are_counted() -> None:
    telemetry = sending(f"http://127.0.0.1:{free_port()}")
    for one in some(40):
        telemetry.record(one)
    await telemetry.close()
    assert sum(telemetry.lost.values()) == 40
    assert telemetry.waiting == 0


async def test_while_a_collector_hangs_the_newest_are_lost_and_those_that_waited_arrive() -> None:
    asked = list(some(10))
    async with collecting("hung") as collector:
        telemetry = sending(collector.url, 60.0, waiting=4)
        for one in asked:
            telemetry.record(one)
        assert telemetry.waiting == 4
        assert not telemetry.healthy
        collector.release.set()
        await telemetry.close()
    assert collector.actions() == Counter(str(one.action) for one in asked[:4])
    assert counted(telemetry.lost) == Counter(str(one.action) for one in asked[4:])


async def test_a_hung_collector_does_not_keep_the_gateway_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_END_SECONDS", 0.2)
    async with collecting("hung") as collector:
        telemetry = sending(collector.url, 60.0)
        for one in some(20):
            telemetry.record(one)
        await telemetry.close()
        assert sum(telemetry.lost.values()) == 20
        telemetry.record(exchange("too late", passed()))
        assert sum(telemetry.lost.values()) == 21


async def test_whatever_fails_each_exchange_arrives_or_is_counted() -> None:
    rng = random.Random(7)
    asked = list(some(400, seed=7))
    async with collecting() as collector:
        telemetry = sending(collector.url, waiting=64)
        for number, one in enumerate(asked):
            if number % 20 == 0:
                collector.mood = rng.choice(["well", "well", "400", "503", "drop"])
                if rng.random() < 0.7:
                    await telemetry.flush()
            telemetry.record(one)
        await telemetry.close()
    arrived = collector.actions()
    assert arrived + counted(telemetry.lost) == Counter(str(one.action) for one in asked)
    assert sum(arrived.values()) > 20
    assert sum(telemetry.lost.values()) > 20
    assert len({attributes(span)["evenhand.id"] for span in collector.spans}) == len(
        collector.spans
    )


@pytest.mark.parametrize("mood", ["hung", "400", "drop", "dead"])
async def test_no_answer_waits_for_a_collector_or_is_lost_by_it(mood: str) -> None:
    async with (
        collecting(mood) as collector,
        upstream(Speaker(texts=("They are people.",))) as address,
    ):
        url = f"http://127.0.0.1:{free_port()}" if mood == "dead" else collector.url
        telemetry = sending(url, 60.0 if mood == "hung" else 0.5, waiting=8)
        async with gateway(address, record=telemetry.record) as served:
            # A collector that hangs answers when all of these have been answered, not before.
            answers = await asyncio.gather(*(served.ask(stream=n % 2 == 0) for n in range(30)))
        assert {status for status, _, _ in answers} == {200}
        assert all(b"peo" in body for _, _, body in answers), "a stream has three signs at a time"
        collector.release.set()
        await telemetry.close()
    assert len(collector.spans) + sum(telemetry.lost.values()) == 30
    assert len(collector.spans) == (8 if mood == "hung" else 0)


# -- the command ---------------------------------------------------------------------------------


async def test_the_command_sends_what_is_left_when_it_ends_and_says_in_its_metrics_what_was_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    port, speaker = free_port(), Speaker(texts=("The capital of France is Paris.",))
    async with (
        collecting() as collector,
        upstream(speaker) as address,
        aiohttp.ClientSession() as session,
    ):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")  # nothing is sent before the end
        monkeypatch.setenv("OTEL_SERVICE_NAME", "ours")
        process = await asyncio.create_subprocess_exec(
            EVENHAND, "gateway", "--upstream", address, "--otel", "--port", str(port),
            cwd=tmp_path, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        await up(port)
        url = f"http://127.0.0.1:{port}"
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        body = {"model": "up", "messages": [{"role": "user", "content": "Which?"}]}
        async with session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as said:
            assert said.headers["evenhand-action"] == "passed"
            name = said.headers["evenhand-id"]
        async with session.get(f"{url}/metrics") as metrics:
            figures = await metrics.text()
        assert 'evenhand_gateway_otel_lost_total{action="not_run"} 0.0' in figures
        assert "evenhand_gateway_otel_waiting 1.0" in figures
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    [span] = collector.spans
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes(span)["evenhand.id"] == name
    [event] = span.events
    assert attributes(event)["gen_ai.evaluation.name"] == "staged"
    assert attributes(event)["gen_ai.evaluation.score.label"] == "passed"


def test_a_command_that_would_send_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with raises_naming(UserError, "--otel", "OTEL_SDK_DISABLED"):
        serve(upstream="http://127.0.0.1:1/v1", otel=True, replicas=2)


def test_without_opentelemetry_the_command_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "evenhand.gateway.telemetry")
    monkeypatch.setitem(sys.modules, "opentelemetry.context", None)
    with raises_naming(UserError, "evenhand[otel]"):
        serve(upstream="http://127.0.0.1:1/v1", otel=True, replicas=2)
