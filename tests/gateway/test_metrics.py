"""The figures, read back by Prometheus' own parser."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from evenhand.gateway.evidence import EvidenceWriter
from evenhand.gateway.metrics import CAUSES, Metrics
from evenhand.gateway.verdicts import Action

from .exchanges import exchange, kept, passed, refused, repaired, turn

CHAT = "/chat/completions"
TENANTS = ("team-hr", 'a "quoted\\ one\n')


def seen(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (one.name.removeprefix("evenhand_gateway_"), frozenset(one.labels.items())): one.value
        for family in families
        for one in family.samples
    }


def of(
    found: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str
) -> float:
    return found[name, frozenset(labels.items())]


def test_every_action_of_every_tenant_is_there_before_the_first_request() -> None:
    found = seen(Metrics(TENANTS, (CHAT,)))
    for tenant in TENANTS:
        for action in Action:
            assert of(found, "requests_total", tenant=tenant, route=CHAT, action=action) == 0
    assert of(found, "agent_calls_total", tenant="team-hr") == 0
    for cause in CAUSES:
        assert of(found, "seconds_count", cause=cause) == 0


def test_an_exchange_is_counted_by_tenant_route_and_action_and_its_time_by_cause() -> None:
    metrics = Metrics(TENANTS, (CHAT,))
    metrics.count(exchange("a", repaired(), passed()))
    metrics.count(replace(exchange("b", refused(Action.NOT_RUN, "overloaded")), seconds={"all": 3}))
    found = seen(metrics)
    assert of(found, "requests_total", tenant="team-hr", route=CHAT, action="repaired") == 1
    assert of(found, "requests_total", tenant="team-hr", route=CHAT, action="not_run") == 1
    assert of(found, "requests_total", tenant="team-hr", route=CHAT, action="passed") == 0
    assert of(found, "seconds_count", cause="agents") == 1, "what did not happen took no 0 s"
    assert of(found, "seconds_count", cause="all") == 2
    assert of(found, "seconds_sum", cause="all") == 2.1 + 3
    assert of(found, "agent_calls_total", tenant="team-hr") == 2
    assert of(found, "agent_tokens_total", tenant="team-hr", direction="in") == 20
    assert of(found, "agent_tokens_total", tenant="team-hr", direction="out") == 6


def test_buckets_rise_and_the_last_one_has_all() -> None:
    metrics = Metrics(TENANTS, (CHAT,))
    for number in range(50):
        took = {"all": number * 2.5}  # up to 122.5 s, past the last bucket
        metrics.count(replace(exchange("x", passed()), seconds=took))
    families = text_string_to_metric_families(metrics.text().decode())
    samples: Iterable[tuple[float, float]] = sorted(
        (float(one.labels["le"]), one.value)
        for family in families
        for one in family.samples
        if one.name.endswith("_bucket") and one.labels["cause"] == "all"
    )
    counts = [count for _, count in samples]
    assert all(one <= other for one, other in pairwise(counts))
    assert counts[-1] == 50
    assert dict(samples)[10.0] == 5, "0, 2.5, 5, 7.5 and 10 s"


def test_clients_cannot_make_labels() -> None:
    metrics = Metrics(TENANTS, (CHAT,))
    before = len(seen(metrics))
    for number in range(100):
        stranger = replace(exchange("x", passed(), tenant=f"t{number}"), route=f"/{number}")
        metrics.count(stranger)
    found = seen(metrics)
    assert len(found) == before
    assert of(found, "requests_total", tenant="other", route="other", action="passed") == 100


def test_tokens_that_nobody_counted_are_said_to_be_unknown() -> None:
    metrics = Metrics(TENANTS, (CHAT,))
    blind = replace(repaired(), turns=(turn("a", "b", prompt_tokens=None),))
    metrics.count(exchange("x", blind))
    found = seen(metrics)
    assert of(found, "agent_tokens_unknown_total", tenant="team-hr") == 1
    assert of(found, "agent_tokens_total", tenant="team-hr", direction="out") == 3


def test_the_breaker_and_what_is_in_flight_are_shown() -> None:
    metrics = Metrics(TENANTS, (CHAT,))
    assert of(seen(metrics), "breaker", evenhand_gateway_breaker="closed") == 1
    metrics.breaker.state("open")
    with metrics.in_flight.track_inprogress():
        found = seen(metrics)
    states = ("closed", "half_open", "open")
    assert [of(found, "breaker", evenhand_gateway_breaker=one) for one in states] == [0, 0, 1]
    assert of(found, "in_flight") == 1
    assert of(seen(metrics), "in_flight") == 0


async def test_evidence_that_is_lost_is_shown_by_action(tmp_path: Path) -> None:
    evidence = EvidenceWriter(tmp_path, {"team-hr": kept()}, waiting=1)
    metrics = Metrics(TENANTS, (CHAT,))
    metrics.watch("evidence", evidence)
    found = seen(metrics)
    assert [of(found, "evidence_lost_total", action=one) for one in Action] == [0] * 5
    assert of(found, "evidence_healthy") == 1
    evidence.record(exchange("a", passed()))
    evidence.record(exchange("b", refused(Action.NOT_RUN, "overloaded")))  # no room
    found = seen(metrics)
    assert of(found, "evidence_lost_total", action="not_run") == 1
    assert of(found, "evidence_healthy") == 0
    assert of(found, "evidence_waiting") == 1
