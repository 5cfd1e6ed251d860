"""Who may ask, what goes on to the upstream, what happens when a client leaves, and `observe`."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from evenhand.gateway import app
from evenhand.gateway.app import _models
from evenhand.gateway.keys import new_key
from evenhand.gateway.policy import CheckPolicy, Policy, Tenant
from evenhand.gateway.upstream import Upstream
from evenhand.gateway.wire import Refused
from tests.gateway.speaking import BAD, GOOD, Speaker, gateway, upstream
from tests.gateway.test_hold import said

CHECK = CheckPolicy(set=("performance=false", "max_iterations=1"), deadline=5.0)
ROUTES = [
    ("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("POST", "/v1/responses"),
    ("POST", "/v1/completions"), ("GET", "/metrics"), ("GET", "/"), ("GET", "/v1/chat/completions"),
    ("DELETE", "/v1/models"), ("GET", "/health/x"), ("POST", "/health"), ("GET", "/v1/../metrics"),
]  # fmt: skip


async def test_without_a_key_every_route_but_health_is_401() -> None:
    key, hashed = new_key()
    policy = Policy(check=CHECK, tenants={"hr": Tenant(keys=[hashed])})
    async with (
        upstream(Speaker()) as address,
        gateway(address, policy) as served,
        aiohttp.ClientSession() as session,
    ):
        root = served.url.removesuffix("/v1")
        for method, path in ROUTES:
            for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": key}):
                async with session.request(method, root + path, headers=given, data=b"{}") as got:
                    assert got.status == 401, (method, path)
        for path in ("/health", "/ready"):
            async with session.get(root + path) as got:
                assert got.status == 200
        async with session.get(
            root + "/metrics", headers={"authorization": f"Bearer {key}"}
        ) as got:
            assert got.status == 401  # it speaks of all tenants
        status, _, _ = await served.ask(key=key)
    assert status == 200
    assert [one.tenant for one in served.exchanges] == ["hr"]


async def test_a_key_of_the_gateway_never_goes_to_the_upstream() -> None:
    key, hashed = new_key()
    policy = Policy(check=CHECK, tenants={"hr": Tenant(keys=[hashed])})
    speaker = Speaker()
    async with upstream(speaker) as address, gateway(address, policy) as served:
        await served.ask(key=key)
    assert "authorization" not in speaker.headers[0]


async def test_without_tenants_the_clients_own_key_goes_on() -> None:
    speaker = Speaker()
    async with upstream(speaker) as address, gateway(address) as served:
        await served.ask(key="sk-of-the-client")
    assert speaker.headers[0]["authorization"] == "Bearer sk-of-the-client"


async def test_the_list_of_models_holds_nothing_that_we_do_not_know() -> None:
    async with (
        upstream(Speaker()) as address,
        gateway(address) as served,
        aiohttp.ClientSession() as session,
        session.get(f"{served.url}/models") as got,
    ):
        body = await got.read()
    assert [row["id"] for row in json.loads(body)["data"]] == ["up"]
    assert BAD.encode() not in body


@pytest.mark.parametrize(
    ("row", "listed"),
    [
        ({"id": "a b/c.gguf", "owned_by": f"They are {BAD}.", "created": True}, "a b/c.gguf"),
        ({"id": "a", "created": -1}, "a"),
        ({"id": f"{BAD}\n"}, None),
        ({"id": BAD * 65}, None),
        (BAD, None),
        ({}, None),
    ],
)
def test_an_odd_row_of_models_says_nothing_and_costs_no_other(row: Any, listed: str | None) -> None:
    body = _models(json.dumps({"data": [row, {"id": "up", "created": 7}]}).encode())
    rows = json.loads(body)["data"]
    assert [row["id"] for row in rows] == [name for name in (listed, "up") if name]
    assert [row["created"] for row in rows] == [0] * (len(rows) - 1) + [7]
    assert BAD.encode() not in body


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"data": {"id": "a"}}', b'{"data": null}'])
def test_what_is_no_list_of_models_is_an_error_of_the_upstream(body: bytes) -> None:
    with pytest.raises(Refused) as refusal:
        _models(body)
    assert (refusal.value.status, refusal.value.code) == (502, "upstream_garbled")


async def test_a_client_that_leaves_ends_the_call_to_the_upstream() -> None:
    speaker = Speaker(fault="hang")
    async with upstream(speaker) as address, gateway(address) as served:
        for stream in (False, True):
            asking = asyncio.create_task(served.ask(stream=stream))
            while len(speaker.seen) < 1 + stream:
                await asyncio.sleep(0.01)
            asking.cancel()
            while speaker.gone < 1 + stream:  # the test's own time-out is the bar
                await asyncio.sleep(0.01)
        while len(served.exchanges) < 2:
            await asyncio.sleep(0.01)
        assert served.parts.admission.under_way == 0
    assert {(one.action, one.reason) for one in served.exchanges} == {("blocked", "broken_off")}


async def test_observe_sends_what_comes_says_that_nothing_ran_and_records_what_it_finds() -> None:
    check = CHECK.otherwise({"mode": "observe"})
    speaker = Speaker(texts=(f"They are {BAD}.",))
    async with upstream(speaker) as address, gateway(address, Policy(check=check)) as served:
        for stream in (False, True):
            status, headers, body = await served.ask(stream=stream)
            assert (status, headers["evenhand-action"]) == (200, "not_run")
            assert said(body, stream) == [f"They are {BAD}."]
        while len(served.exchanges) < 2:
            await asyncio.sleep(0.01)
    for exchange in served.exchanges:
        [verdict] = exchange.verdicts
        assert (exchange.action, verdict.text) == ("flagged", f"They are {BAD}.")
        assert verdict.answer is not None
        assert GOOD in verdict.answer.text  # what it would have sent in `hold`


async def test_an_observed_answer_that_breaks_off_is_on_record_as_not_run() -> None:
    check = CHECK.otherwise({"mode": "observe"})
    async with (
        upstream(Speaker(fault="no end")) as address,
        gateway(address, Policy(check=check)) as served,
    ):
        await served.ask(stream=True)
        while not served.exchanges:
            await asyncio.sleep(0.01)
    [exchange] = served.exchanges
    assert (exchange.action, exchange.reason) == ("not_run", "upstream_garbled")


async def test_what_a_check_of_one_tenant_says_is_not_that_of_another() -> None:
    keys = {name: new_key() for name in ("strict", "open")}
    tenants = {
        "strict": Tenant(keys=[keys["strict"][1]]),
        "open": Tenant(keys=[keys["open"][1]], check={"on_failure": "pass_flagged"}),
    }
    policy = Policy(check=CHECK.otherwise({"deadline": 1.0}), tenants=tenants)
    async with upstream(Speaker()) as address, gateway(address, policy) as served:
        served.screen.mood = "killed"
        found = {name: (await served.ask(key=key))[0] for name, (key, _) in keys.items()}
    assert found == {"strict": 503, "open": 200}


async def test_a_client_that_leaves_in_the_middle_of_a_check_has_spent_what_was_reserved() -> None:
    key, hashed = new_key()
    tenant = Tenant(keys=[hashed], tokens_a_day=CHECK.tokens + 10)
    policy = Policy(check=CHECK.otherwise({"deadline": 60.0}), tenants={"hr": tenant})
    async with upstream(Speaker()) as address, gateway(address, policy) as served:
        served.model._seconds = 3600
        asking = asyncio.create_task(served.ask(key=key))
        while not served.model.requests:
            await asyncio.sleep(0.01)
        asking.cancel()
        while served.parts.admission.under_way:
            await asyncio.sleep(0.01)
        status, _, body = await served.ask(key=key)
    assert (status, json.loads(body)["error"]["code"]) == (429, "budget_spent")


async def test_without_keys_a_web_page_cannot_ask() -> None:
    pages = ({"origin": "https://evil.example"}, {"host": "evil.example"}, {"origin": "null"})
    async with (
        upstream(Speaker()) as address,
        gateway(address) as served,
        aiohttp.ClientSession() as session,
    ):
        for given in (*pages, {"origin": "http://localhost:3000"}):
            async with session.get(f"{served.url}/models", headers=given) as got:
                assert got.status == (403 if given in pages else 200), given


async def test_an_account_is_chosen_with_the_clients_own_key_alone() -> None:
    headers = {"openai-project": "proj_b", "traceparent": "00-1-1-00"}
    assert "openai-project" in Upstream("http://127.0.0.1:1/v1")._headers(
        "/chat/completions", headers
    )
    given = Upstream("http://127.0.0.1:1/v1", key="sk-of-the-operator")._headers(
        "/chat/completions", headers
    )
    assert "openai-project" not in given
    assert "traceparent" in given


async def test_the_breaker_rests_an_upstream_that_fails_and_no_retry_storm_follows() -> None:
    speaker = Speaker(fault="500")
    async with upstream(speaker) as address, gateway(address) as served:
        statuses = [(await served.ask())[0] for _ in range(40)]
    assert set(statuses) == {502, 503}
    assert statuses[-1] == 503
    assert len(speaker.seen) <= 1.2 * 40
    assert len(speaker.seen) < 15  # the rest was shed


# -- what an upstream may not do -------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("route", ["chat/completions", "models"])
async def test_a_redirect_of_the_upstream_is_not_followed(status: int, route: str) -> None:
    other = Speaker()
    async with upstream(other) as elsewhere:

        async def away(request: web.Request) -> web.Response:
            return web.Response(status=status, headers={"location": f"{elsewhere}/{route}"})

        app = web.Application()
        app.router.add_route("*", "/v1/{rest:.*}", away)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        async with gateway(address) as served, aiohttp.ClientSession() as session:
            verb = "GET" if route == "models" else "POST"
            body = {"model": "up", "messages": []}
            headers = {"authorization": "Bearer sk-of-the-client"}
            async with session.request(
                verb, f"{served.url}/{route}", json=body, headers=headers
            ) as got:
                assert (got.status, (await got.json())["error"]["code"]) == (502, "upstream_error")
        await runner.cleanup()
    assert other.headers == [], "the client's key would have gone to another host"


@pytest.mark.parametrize("mode", ["hold", "observe"])
async def test_an_answer_that_says_it_is_compressed_is_refused_whatever_it_holds(mode: str) -> None:
    policy = Policy(check=CHECK.otherwise({"mode": mode}))
    speaker = Speaker(texts=("A fine day.",), sends={"content-encoding": "br"})
    async with upstream(speaker) as address, gateway(address, policy) as served:
        status, _, body = await served.ask()
    assert (status, json.loads(body)["error"]["code"]) == (502, "upstream_garbled")


async def test_a_request_that_does_not_come_in_time_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "_BODY_SECONDS", 0.2)
    async with upstream(Speaker()) as address, gateway(address) as served:
        port = int(served.url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            b"content-length: 1000\r\nconnection: close\r\n\r\n{"
        )
        async with asyncio.timeout(30):
            head = await reader.readuntil(b"\r\n")
        writer.close()
        assert head == b"HTTP/1.1 408 Request Timeout\r\n"
        assert served.parts.admission.under_way == 0


async def test_a_request_that_is_too_long_is_refused_and_goes_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "_MOST_REQUEST", 1_000)
    speaker = Speaker(texts=("A fine day.",))
    async with upstream(speaker) as address, gateway(address) as served:
        status, _, body = await served.ask(user="x" * 1_000)
        assert (status, json.loads(body)["error"]["code"]) == (413, "too_long")
        assert speaker.seen == []
        assert (await served.ask(user="x" * 100))[0] == 200


@pytest.mark.parametrize("created", [1e300, -5, 2**62, "soon", None, True])
async def test_a_moment_that_is_none_is_no_fault_of_the_gateway(created: object) -> None:
    speaker = Speaker(texts=("A fine day.",), more={"created": created})
    async with upstream(speaker) as address, gateway(address) as served:
        status, _, body = await served.ask()
    assert (status, json.loads(body)["created"]) == (200, 0)


async def test_an_id_is_short_and_a_model_may_be_a_path() -> None:
    speaker = Speaker(texts=("A fine day.",), more={"id": "x" * 65, "model": "a/" * 64})
    async with upstream(speaker) as address, gateway(address) as served:
        status, _, body = await served.ask()
        told = json.loads(body)
        assert (status, told["id"], told["model"]) == (200, "unnamed", "a/" * 64)


@pytest.mark.parametrize("mode", ["hold", "window"])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_upstreams_key_in_an_answer_does_not_reach_the_client(
    mode: str, stream: bool
) -> None:
    key, check = "sk-upstream-0123456789", CHECK.otherwise({"mode": mode})
    tenant, hashed = new_key()
    policy = Policy(check=check, tenants={"hr": Tenant(keys=[hashed])})
    speaker = Speaker(
        texts=(f"My key is {key}. A fine day.",),
        arguments=json.dumps({"key": key}),
        more={"model": key},
        head={"model": key},
    )
    async with (
        upstream(speaker) as address,
        gateway(address, policy, upstream_key=key) as served,
    ):
        status, _, body = await served.ask(key=tenant, stream=stream)
    assert speaker.headers[0]["authorization"] == f"Bearer {key}"
    assert status == 200
    assert key.encode() not in body
    without_comment = body.replace(b": evenhand-action: passed\n\n", b"")
    redacted = "My key is [redacted]. A fine day."
    assert redacted in said(without_comment, stream)


async def test_500s_that_one_tenant_provokes_do_not_rest_the_upstream_for_another() -> None:
    class Provoked(Speaker):
        async def chat(self, request: web.Request) -> web.StreamResponse:
            self.fault = "500" if (await request.json()).get("user") == "bad" else ""
            return await super().chat(request)

    keys = {name: new_key() for name in "ab"}
    tenants = {name: Tenant(keys=[hashed]) for name, (_, hashed) in keys.items()}
    policy = Policy(check=CHECK, tenants=tenants)
    speaker = Provoked(texts=("All well here.",))
    async with upstream(speaker) as address, gateway(address, policy) as served:
        of_a = [(await served.ask(key=keys["a"][0], user="bad"))[0] for _ in range(12)]
        of_b = [(await served.ask(key=keys["b"][0]))[0] for _ in range(6)]
        other = (await served.ask(key=keys["a"][0], model="another"))[0]
    assert of_a[-1] == 503  # it rests for whom it failed
    assert of_b == [200] * 6
    assert other == 200


async def test_a_request_of_too_many_values_or_bytes_is_refused_before_it_is_parsed() -> None:
    values = b'{"model":"m","messages":[],"metadata":[' + b"{}," * 200_000 + b"{}]}"
    async with (
        upstream(Speaker()) as address,
        gateway(address, Policy(check=CHECK)) as served,
        aiohttp.ClientSession() as session,
    ):
        async with session.post(f"{served.url}/chat/completions", data=values) as got:
            said_of_values = got.status, (await got.json())["error"]["code"]
        served.parts.admission.memory._most_of_a_tenant = 1_000  # as if others held the rest
        async with session.post(f"{served.url}/chat/completions", data=b" " * 2_000) as got:
            said_of_bytes = got.status, (await got.json())["error"]["code"], got.headers
        assert served.parts.admission.memory.held == 0
    assert said_of_values == (413, "too_many_values")
    assert said_of_bytes[:2] == (503, "overloaded")
    assert said_of_bytes[2]["retry-after"] == "1"
