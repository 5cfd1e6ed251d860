"""What operators are told when a store is down."""

import logging
from dataclasses import dataclass

import aiohttp
import pytest

from evenhand.gateway.books import Alarms, ExchangeRecorder
from evenhand.gateway.policy import Policy
from evenhand.gateway.quotas import Allowance, SharedQuotas, StoreUnavailable
from tests.errors import assert_names
from tests.gateway.speaking import Speaker, free_port, gateway, upstream


@dataclass
class Store:
    healthy: bool = True
    problem: str = ""


def test_a_problem_is_logged_when_it_begins_each_minute_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now, store = [0.0], Store()
    alarms = Alarms(clock=lambda: now[0])
    alarms.watch("audit", store, required=False)
    with caplog.at_level(logging.WARNING, "evenhand.gateway"):
        for second in range(200):
            now[0] = float(second)
            store.healthy = not 10 <= second < 135
            store.problem = "OperationalError"
            alarms.look()
    said = [(one.levelname, one.getMessage()) for one in caplog.records]
    *errors, (level, message) = said  # at 10, 70, 130, 135
    assert [name for name, _ in errors] == ["ERROR"] * 3
    for _, text in errors:
        assert_names(text, "audit", "OperationalError")
    assert level == "WARNING"
    assert_names(message, "audit", "again")


@pytest.mark.parametrize(("required", "status"), [(True, 503), (False, 200)])
async def test_ready_names_what_is_down_and_not_why(required: bool, status: int) -> None:
    store = Store(healthy=False, problem="password canary refused")
    async with (
        upstream(Speaker()) as address,
        gateway(address) as served,
        aiohttp.ClientSession() as session,
    ):
        served.parts.alarms.watch("evidence", store, required=required)
        root = served.url.removesuffix("/v1")
        async with session.get(f"{root}/ready") as got:
            assert got.status == status
            assert await got.json() == {"ok": not required, "reasons": ["evidence_down"]}
        async with session.get(f"{root}/health") as got:
            assert (got.status, await got.json()) == (200, {"ok": True})
        store.healthy = True
        async with session.get(f"{root}/ready") as got:
            assert (got.status, await got.json()) == (200, {"ok": True, "reasons": []})


async def test_quotas_that_cannot_be_asked_are_down_until_a_ping_is_heard() -> None:
    quotas = SharedQuotas(f"redis://127.0.0.1:{free_port()}/0")
    books = ExchangeRecorder(Policy(), ("hr",))
    books.share(quotas)
    with pytest.raises(StoreUnavailable):
        await quotas.take("hr", Allowance(), 1)
    assert books.alarms.required_down
    assert (books.alarms.down, quotas.problem) == (["quotas"], "ConnectionError")
    assert b"evenhand_gateway_quotas_healthy 0.0" in books._metrics.text()

    async def heard() -> bool:
        return True

    quotas._client.ping = heard
    await quotas.ping()
    assert not books.alarms.down
    assert b"evenhand_gateway_quotas_healthy 1.0" in books._metrics.text()
    await quotas.close()
