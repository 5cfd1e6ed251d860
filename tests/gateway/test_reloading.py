"""A gateway without an upstream at its start, and one whose policy changes while it serves."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from evenhand.gateway.keys import new_key
from evenhand.gateway.opening import GatewayRequest
from evenhand.runs.store import RunReader
from tests.gateway.speaking import OPERATOR, Asking, Speaker, free_port, serving, up, upstream

EVENHAND = str(Path(sys.executable).with_name("evenhand"))
WORDS = 'screen = "wordlist"\nnot_english = "ignore"\n'
TENANT, OTHER = new_key(), new_key()


def policy_of(tenants: dict[str, str], more: str = "") -> str:
    """A policy with an operator and these tenants."""
    said = "".join(f'[tenants.{name}]\nkeys = ["{key}"]\n' for name, key in tenants.items())
    return f'{WORDS}operators = ["{OPERATOR[1]}"]\n{more}{said}'


@contextlib.asynccontextmanager
async def listening(speaker: Speaker, port: int) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", speaker.chat)
    app.router.add_get("/v1/models", speaker.models)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield
    finally:
        await runner.cleanup()


async def test_without_an_upstream_it_lives_is_not_ready_and_begins_when_there_is_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "policy.toml").write_text(WORDS)
    port = free_port()
    address = f"http://127.0.0.1:{port}/v1"
    request = GatewayRequest(
        upstream=address, policy=str(tmp_path / "policy.toml"), port=free_port()
    )
    async with serving(request) as ask:
        assert (await ask.get("/health"))[0] == 200
        assert await ask.get("/ready") == (503, '{"ok":false,"reasons":["upstream_down"]}')
        assert "evenhand_gateway_ready 0" in (await ask.get("/metrics"))[1]
        assert await ask.chat() == 503
        async with listening(Speaker(texts=("Nurses help people.",)), port):
            await ask.until("/ready", '"ok":true')
            assert await ask.chat() == 200
            assert "evenhand_gateway_ready 1.0" in (await ask.get("/metrics"))[1]


async def test_a_changed_policy_is_in_force_for_new_requests_and_the_old_one_for_those_under_way(
    tmp_path: Path,
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(policy_of({"hr": TENANT[1]}))
    told = asyncio.Event()
    speaker = Speaker(texts=("Nurses help people.",), wait=told)
    async with upstream(speaker) as address:
        request = GatewayRequest(
            upstream=address, policy=str(file), port=free_port(), replica="pod-1",
            evidence=str(tmp_path / "evidence"),
        )  # fmt: skip
        first = request.read().sha256()
        async with serving(request) as ask:
            under_way = asyncio.create_task(ask.chat(TENANT[0]))
            while not speaker.seen:
                await asyncio.sleep(0.01)
            assert await ask.chat(OTHER[0]) == 401
            file.write_text(policy_of({"search": OTHER[1]}))
            second = request.read().sha256()
            figures = await ask.until("/metrics", f'policy{{sha256="{second}"}} 1.0')
            assert f'sha256="{first}"' not in figures
            assert 'policy_reloads_total{outcome="applied"} 1.0' in figures
            assert 'tenant="search"' in figures
            told.set()
            assert await under_way == 200, "whose key has gone meanwhile"
            assert await ask.chat(OTHER[0]) == 200
            assert await ask.chat(TENANT[0]) == 401
    runs = [
        RunReader(path.parent).record.source for path in tmp_path.glob("evidence/*/*/*/run.json")
    ]
    assert {(run["tenant"], run["policy"]) for run in runs} == {("hr", first), ("search", second)}


@pytest.mark.parametrize(
    "broken",
    [
        "mode = [",
        policy_of({"hr": TENANT[1]}, "at_once = 7\n"),  # it lives as long as the process
        policy_of({"hr": TENANT[0]}),  # a key in the clear
        WORDS,  # nobody needs a key any more
    ],
)
async def test_a_policy_that_is_refused_leaves_the_old_one_in_force_and_is_an_alarm(
    tmp_path: Path, broken: str
) -> None:
    file = tmp_path / "policy.toml"
    good = policy_of({"hr": TENANT[1]})
    file.write_text(good)
    async with upstream(Speaker(texts=("Nurses help people.",))) as address:
        request = GatewayRequest(
            upstream=address, policy=str(file), port=free_port(), host="0.0.0.0"
        )
        async with serving(request) as ask:
            before = request.read().sha256()
            file.write_text(broken)
            figures = await ask.until("/metrics", "policy_stale 1.0")
            assert f'policy{{sha256="{before}"}} 1.0' in figures
            assert await ask.get("/ready") == (200, '{"ok":true,"reasons":["policy_file_down"]}')
            assert await ask.chat(TENANT[0]) == 200
            file.write_text(good)
            os.kill(os.getpid(), signal.SIGHUP)
            figures = await ask.until("/metrics", "policy_stale 0.0")
            assert 'policy_reloads_total{outcome="refused"} 1.0' in figures
            assert await ask.get("/ready") == (200, '{"ok":true,"reasons":[]}')


async def test_a_hangup_of_the_command_reaches_the_processes_that_serve(tmp_path: Path) -> None:
    file, port = tmp_path / "policy.toml", free_port()
    file.write_text(policy_of({"hr": TENANT[1]}))
    async with upstream(Speaker(texts=("Nurses help people.",))) as address:
        process = await asyncio.create_subprocess_exec(
            EVENHAND, "gateway", "--upstream", address, "--policy", "policy.toml",
            "--port", str(port), cwd=tmp_path, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            await up(port)
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
                ask = Asking(session)
                began = await ask.until("/metrics", "process_seconds{")
                process.send_signal(signal.SIGHUP)
                figures = await ask.until("/metrics", 'policy_reloads_total{outcome="applied"} 1.0')
        finally:
            process.terminate()
            assert await process.wait() == 0
    [[first], [second]] = (
        [line.split()[0] for line in text.splitlines() if "process_seconds{" in line]
        for text in (began, figures)
    )
    assert first == second, "the same process serves on"
