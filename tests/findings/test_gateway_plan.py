"""The plan of a gateway, with figures worked by hand."""

from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.findings import gateway_plan as planning
from evenhand.findings.gateway_plan import GatewayTraffic, Range, gateway_plan
from evenhand.findings.plan import ItemPrice
from tests.errors import raises_naming

FIGURES = {
    "date": "2026-11-20",
    "machine": "a machine",
    "to_agents": {"events": 36, "texts": 300},
    "cpu_ms": {"offline": [[100, 10.0, 9.0, 12.0], [300, 20.0, 18.0, 24.0]]},
}


@pytest.fixture(autouse=True)
def figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "measured", lambda: FIGURES)


def test_cores_calls_and_price_follow_from_what_was_measured() -> None:
    traffic = GatewayTraffic(answers_per_day=86_400_000, characters=200, peak=2.0, load=0.5)
    plan = gateway_plan(traffic, ItemPrice(calls=3, tokens=500, per_million=0.2))
    # Half way between 100 and 300 characters; 1,000 answers a second, 2,000 at the peak.
    assert plan.cpu_ms == Range(15.0, 13.5, 18.0)
    assert plan.cores == pytest.approx((60.0, 54.0, 72.0))
    assert plan.replicas == 72
    # 36 of 300: Clopper-Pearson, as docs/gateway.md has it.
    assert plan.to_agents == pytest.approx((0.12, 0.0855, 0.1623), abs=2e-4)
    assert plan.calls.middle == pytest.approx(86_400_000 * 0.36)
    assert plan.money is not None
    assert plan.money.middle == pytest.approx(86_400_000 * 0.36 * 500 / 1e6 * 0.2)


@pytest.mark.parametrize(("characters", "cpu"), [(10, 10.0), (100, 10.0), (300, 20.0), (900, 60.0)])
def test_below_the_shortest_its_cost_counts_and_beyond_the_longest_it_is_scaled(
    characters: int, cpu: float
) -> None:
    traffic = GatewayTraffic(answers_per_day=1, characters=characters)
    plan = gateway_plan(traffic, ItemPrice())
    assert plan.cpu_ms.middle == pytest.approx(cpu)
    assert plan.replicas == 2, "one may be replaced at any time"
    assert plan.money is None


@pytest.mark.parametrize(
    ("traffic", "fact"),
    [
        ({"answers_per_day": 0.0}, "--answers-per-day"),
        ({"answers_per_day": float("inf")}, "--answers-per-day"),
        ({"answers_per_day": 1.0, "peak": 0.5}, "--peak"),
        ({"answers_per_day": 1.0, "to_agents": 1.5}, "--to-agents"),
        ({"answers_per_day": 1.0, "screen": "detoxify"}, "detoxify"),
    ],
)
def test_what_makes_no_sense_is_refused(traffic: dict[str, Any], fact: str) -> None:
    with raises_naming(UserError, fact):
        gateway_plan(GatewayTraffic(**traffic), ItemPrice())
