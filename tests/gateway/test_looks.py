"""What two looks at the figures say, worked by hand; the text is always that of real `Metrics`."""

from dataclasses import replace
from math import ceil, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.core.prices import Price, Prices
from evenhand.gateway.metrics import _BUCKETS, Metrics
from evenhand.gateway.top import (
    GatewayFigures,
    ProcessSnapshot,
    Quantile,
    SnapshotHistory,
    each_repair,
    quantile,
    read,
)
from evenhand.gateway.verdicts import Action
from tests.errors import raises_naming

from .exchanges import exchange, passed, refused, repaired, turn

CHAT = "/chat/completions"
PRICE = Price(per_million_prompt_tokens=10, per_million_completion_tokens=50)
PRICES = Prices({"judge-model": PRICE}, "EUR")


def metrics(replicas: int = 1) -> Metrics:
    return Metrics(("team-hr", "search"), (CHAT,), replicas)


def look(counted: Metrics, at: float, *, up: float = 100.0, process: str = "a") -> ProcessSnapshot:
    return replace(read(counted.text().decode(), at), up=up, process=process)


def seen(counted: Metrics) -> GatewayFigures:
    return SnapshotHistory().figures([look(counted, 0.0)])


def test_the_first_look_is_since_start_and_the_next_one_is_a_difference() -> None:
    counted, memory = metrics(), SnapshotHistory()
    for _ in range(20):
        counted.count(exchange("x", passed()))
    first = memory.figures([look(counted, 7.0, up=10.0)])
    assert (first.since_start, first.requests, first.a_second) == (True, 20, 2.0)
    for _ in range(3):
        counted.count(exchange("x", passed(), tenant="search"))
    counted.count(exchange("x", repaired()))
    second = memory.figures([look(counted, 9.0, up=12.0)])
    assert (second.since_start, second.seconds, second.requests) == (False, 2.0, 4)
    assert second.a_second == 2.0  # 4 in 2 s
    assert second.shares[Action.PASSED] == 0.75
    assert second.shares[Action.REPAIRED] == 0.25


def test_what_did_not_run_is_there_also_at_0_and_also_when_nothing_came() -> None:
    idle = seen(metrics())
    assert idle.actions == dict.fromkeys(Action, 0)
    assert idle.shares == dict.fromkeys(Action, None), "a share of nothing is not 0"
    counted = metrics()
    counted.count(exchange("x", refused(Action.NOT_RUN, "deadline")))
    counted.count(exchange("x", passed()))
    assert seen(counted).shares[Action.NOT_RUN] == 0.5


@pytest.mark.parametrize("up", [3.0, 200.0])
def test_a_process_that_began_anew_is_no_negative_rate(up: float) -> None:
    """Its clock went back; or, if it has none that can be trusted, its counts did."""
    old, memory = metrics(), SnapshotHistory()
    for _ in range(50):
        old.count(exchange("x", passed()))
    memory.figures([look(old, 0.0, up=100.0)])
    memory.figures([look(old, 2.0, up=102.0)])
    new = metrics()
    for _ in range(6):
        new.count(exchange("x", passed()))
    found = memory.figures([look(new, 4.0, up=up)])
    assert (found.since_start, found.requests, found.a_second) == (True, 6, 6 / up)
    new.count(exchange("x", passed()))
    after = memory.figures([look(new, 6.0, up=up + 2)])
    assert (after.since_start, after.requests, after.a_second) == (False, 1, 0.5)


def test_a_window_is_a_minute_however_often_one_looks() -> None:
    counted, memory = metrics(), SnapshotHistory(span=60.0)
    for at in range(0, 200, 2):  # one request before each look
        counted.count(exchange("x", passed()))
        found = memory.figures([look(counted, float(at), up=1000.0 + at)])
    assert (found.seconds, found.requests) == (60.0, 30)


def test_processes_are_told_apart_and_summed() -> None:
    one, other, memory = metrics(2), metrics(2), SnapshotHistory()
    one.breaker.state("open")
    one.in_flight.set(3)
    other.in_flight.set(4)
    other.count(exchange("x", passed()))
    looks = [look(one, 0.0, process="a"), look(other, 0.0, process="b")]
    first = memory.figures(looks)
    assert (first.processes, first.replicas, first.requests) == (("a", "b"), 2, 1)
    assert first.in_flight == 7
    assert first.breaker == {"closed": 1, "open": 1}
    for _ in range(4):
        one.count(exchange("x", passed()))
    # Only one of them was met: its rise is against its own look, not against the sum.
    alone = memory.figures([look(one, 2.0, up=102.0, process="a")])
    assert (alone.requests, alone.a_second, alone.replicas) == (4, 2.0, 2)
    other.count(exchange("x", passed()))
    both = [look(one, 4.0, up=104.0, process="a"), look(other, 4.0, up=104.0, process="b")]
    assert memory.figures(both).a_second == 4 / 4 + 1 / 4


def test_a_process_met_late_joins_the_window_with_the_next_look() -> None:
    one, late, memory = metrics(2), metrics(2), SnapshotHistory()
    for _ in range(1000):
        late.count(exchange("x", passed()))
    memory.figures([look(one, 0.0, process="a")])
    one.count(exchange("x", passed()))
    found = memory.figures([look(one, 2.0, up=102, process="a"), look(late, 2.0, process="b")])
    assert (found.requests, found.joined) == (1, 1)


def test_errors_are_shown_by_code_and_losses_since_start() -> None:
    counted = metrics()
    counted.refused.labels("overloaded").inc(2)
    counted.refused.labels("no_key").inc()
    found = seen(counted)
    assert found.refused == {"no_key": 1, "overloaded": 2}
    assert found.lost == {}, "nothing is kept, which is not the same as nothing lost"


def test_what_a_repaired_answer_took_is_the_agents_work_shared_among_them() -> None:
    counted = metrics()
    for _ in range(2):
        counted.count(exchange("x", repaired()))  # two calls each, of 10 tokens in and 3 out
    checked = replace(passed(), turns=(turn("a", "b"),))  # and one that passed by the agents
    counted.count(exchange("x", checked))
    found = each_repair(seen(counted), PRICES)
    assert found.calls == 5 / 2
    assert found.tokens == 5 * 13 / 2
    assert found.cost == pytest.approx((50 * 10 + 15 * 50) / 1e6 / 2)
    assert (found.currency, found.at_least, found.unpriced) == ("EUR", False, ())


def test_a_price_is_never_made_up() -> None:
    counted = metrics()
    counted.count(exchange("x", repaired()))
    found = seen(counted)
    assert each_repair(found, None).cost is None
    other = Prices({"other": PRICE})
    assert (each_repair(found, other).cost, each_repair(found, other).unpriced) == (
        None,
        ("judge-model",),
    )
    nothing = each_repair(seen(metrics()), PRICES)
    assert (nothing.calls, nothing.tokens, nothing.cost) == (None, None, None)


def test_tokens_that_nobody_counted_make_a_cost_the_least() -> None:
    counted = metrics()
    blind = replace(repaired(), turns=(turn("a", "b", prompt_tokens=None),))
    counted.count(exchange("x", blind))
    found = each_repair(seen(counted), PRICES)
    assert found.at_least
    assert found.cost == pytest.approx(3 * 50 / 1e6)


@pytest.mark.parametrize(
    ("share", "found"),
    [
        (0.25, Quantile(1.0, 0.0, 1.0)),  # the first of four, at the end of its bucket
        (0.5, Quantile(1.5, 1.0, 2.0)),  # the second of four: half-way through the two in (1, 2]
        (0.75, Quantile(2.0, 1.0, 2.0)),
        (0.99, Quantile(None, 2.0, None)),  # above all buckets: no number is made up
    ],
)
def test_a_quantile_is_looked_for_in_its_bucket(share: float, found: Quantile) -> None:
    assert quantile({1.0: 1, 2.0: 3, inf: 4}, share) == found


def test_nothing_timed_has_no_quantile() -> None:
    assert quantile({1.0: 0, inf: 0}, 0.5) == Quantile(None, None, None)
    assert seen(metrics()).latency["agents"]["p99"] == Quantile(None, None, None)


@given(
    st.lists(st.floats(0.0001, 100, allow_nan=False), min_size=1, max_size=40),
    st.sampled_from([0.01, 0.5, 0.9, 0.99]),
)
def test_the_true_quantile_lies_where_the_estimate_says(took: list[float], share: float) -> None:
    ends = (*_BUCKETS, inf)
    found = quantile({end: sum(one <= end for one in took) for end in ends}, share)
    true = sorted(took)[ceil(share * len(took) - 1e-9) - 1]
    assert found.low is not None
    assert found.low < true <= (inf if found.high is None else found.high)
    if found.value is not None:
        assert found.high is not None
        assert found.low <= found.value <= found.high


def test_latency_is_that_of_the_window() -> None:
    counted, memory = metrics(), SnapshotHistory()
    for _ in range(100):
        counted.count(replace(exchange("x", passed()), seconds={"screen": 9.0}))
    memory.figures([look(counted, 0.0)])
    counted.count(replace(exchange("x", passed()), seconds={"screen": 0.004, "agents": 0.7}))
    found = memory.figures([look(counted, 2.0, up=102.0)])
    assert found.timed == {"upstream": 0, "screen": 1, "agents": 1, "all": 0}
    screen, agents = found.latency["screen"]["p99"], found.latency["agents"]["p50"]
    assert (screen.low, screen.high) == (0.0025, 0.005)
    assert (agents.low, agents.high, agents.value) == (0.5, 1.0, 0.75)


def test_figures_without_an_action_are_refused_because_missing_is_not_0() -> None:
    whole = metrics().text().decode()
    without = [line for line in whole.splitlines(keepends=True) if 'action="not_run"' not in line]
    with raises_naming(UserError, "every action", "not 0"):
        read("".join(without), 0.0)


@pytest.mark.parametrize("text", ["", "<html>", "up 1\n", "evenhand_gateway_process_seconds 1\n"])
def test_what_is_not_of_a_gateway_is_refused(text: str) -> None:
    with raises_naming(UserError, "metrics", "gateway"):
        read(text, 0.0)


@pytest.mark.parametrize("value", ["NaN", "+Inf"])
def test_a_count_that_is_no_number_is_refused(value: str) -> None:
    name = "evenhand_gateway_in_flight"
    text = metrics().text().decode().replace(f"{name} 0.0", f"{name} {value}")
    with raises_naming(UserError, "metrics", "gateway"):
        read(text, 0.0)
