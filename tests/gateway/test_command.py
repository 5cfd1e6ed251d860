"""`evenhand gateway` as a process: what it refuses to start with, and how it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from evenhand.cli.gateway import key, serve
from evenhand.core.errors import UserError
from tests.errors import raises_naming
from tests.gateway.speaking import Speaker, free_port, up, upstream

EVENHAND = str(Path(sys.executable).with_name("evenhand"))
OPEN_STREAMS = 100
BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def served(folder: Path, policy: str, **given: Any) -> None:
    """Start a gateway by its command, which must refuse."""
    (folder / "policy.toml").write_text(policy)
    asked = {"upstream": "http://127.0.0.1:1/v1", "policy": folder / "policy.toml", **given}
    serve(**asked)


def test_a_key_in_the_clear_is_not_taken_and_not_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key(json=True)
    made = json.loads(capsys.readouterr().out)
    with raises_naming(UserError, "evenhand gateway key") as refused:
        served(tmp_path, f'[tenants.hr]\nkeys = ["{made["key"]}"]')
    assert made["key"] not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "policy", "facts"),
    [
        ({"host": "0.0.0.0"}, "", ("tenants",)),
        ({"ext_proc": "0.0.0.0:9001"}, "", ("0.0.0.0", "tenants")),
        ({"replicas": 2}, "", ("--quotas",)),
        ({}, 'method = "default"', ("stardtox",)),
        ({}, 'method = "mabrf"', ("stardtox",)),
        ({"upstream_key_env": "NOT_SET_ANYWHERE"}, "", ("NOT_SET_ANYWHERE",)),
        ({"evidence": "x"}, 'content = "hashed"', ("EVENHAND_GATEWAY_HASH",)),
        ({}, 'screen = "nobody"', ("scorer", "nobody")),
        ({"upstream": "ftp://x"}, "", ("--upstream",)),
        ({}, "require_evidence = true", ("--evidence",)),
        ({"quotas": "redis://127.0.0.1:1/0"}, "", ("--quotas", "store")),
        ({"audit": "postgresql://u@127.0.0.1:1/x"}, "", ("--audit", "store")),
        ({"audit": "policy.toml/below"}, "", ("--audit", "store")),
        ({"evidence": "policy.toml/below"}, "", ("--evidence", "store")),
        ({"quotas": "redis://:canary-word@127.0.0.1:1"}, "", ("EVENHAND_GATEWAY_QUOTAS",)),
        ({"audit": "postgresql://u:canary-word@127.0.0.1:1/x"}, "", ("EVENHAND_GATEWAY_AUDIT",)),
        ({"audit": "postgresql:///x?password=canary-word"}, "", ("EVENHAND_GATEWAY_AUDIT",)),
    ],
)
def test_what_would_not_be_safe_is_not_started(
    tmp_path: Path,
    given: dict[str, Any],
    policy: str,
    facts: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with raises_naming(UserError, *facts) as refused:
        served(tmp_path, policy, **given)
    assert "canary-word" not in str(refused.value)


def test_an_address_with_a_password_is_taken_from_its_variable_and_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "postgresql://u:canary-word@127.0.0.1:1/x"
    monkeypatch.setenv("EVENHAND_GATEWAY_AUDIT", address)
    with raises_naming(UserError, "--audit", "store") as refused:
        served(tmp_path, "", audit=address)
    assert "canary-word" not in str(refused.value)


async def test_a_gateway_that_is_asked_to_end_finishes_every_open_stream(tmp_path: Path) -> None:
    told = asyncio.Event()
    speaker = Speaker(texts=("The capital of France is Paris.",), wait=told)
    (tmp_path / "policy.toml").write_text("band = [1.0, 1.0]\ndeadline = 600.0")
    port = free_port()
    async with upstream(speaker) as address, aiohttp.ClientSession() as session:
        process = await asyncio.create_subprocess_exec(
            EVENHAND, "gateway", "--upstream", address, "--policy", "policy.toml",
            "--port", str(port), cwd=tmp_path, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        await up(port)

        async def ask() -> bytes:
            body = {"model": "up", "messages": [], "stream": True}
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            async with session.post(url, json=body) as response:
                return await response.read()

        asking = [asyncio.create_task(ask()) for _ in range(OPEN_STREAMS)]
        while len(speaker.seen) < OPEN_STREAMS:
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.5)
        told.set()
        bodies = await asyncio.gather(*asking)
        assert await process.wait() == 0
    assert {body[-14:] for body in bodies} == {b"data: [DONE]\n\n"}


async def test_a_process_that_serves_has_one_blas_thread_ends_what_is_idle_and_speaks_http_1(
    tmp_path: Path,
) -> None:
    port = free_port()
    without = {name: said for name, said in os.environ.items() if name not in BLAS}
    async with upstream(Speaker()) as address:
        process = await asyncio.create_subprocess_exec(
            EVENHAND, "gateway", "--upstream", address, "--port", str(port),
            "--idle-seconds", "1", cwd=tmp_path, stderr=subprocess.DEVNULL, env=without,
        )  # fmt: skip
        try:
            await up(port)
            # Read when the process began: set later it would say so here and do nothing.
            began = [Path(f"/proc/{one.pid}/environ").read_bytes().split(b"\0")
                     for one in psutil.Process(process.pid).children()]  # fmt: skip
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            # The test's own time-out is the bar: without the mode they are never closed.
            ends = await asyncio.gather(*(reader.read() for reader, _ in silent))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            spoken = await reader.read()
            for _, open_ in (*silent, (reader, writer)):
                open_.close()
        finally:
            process.terminate()
            await process.wait()
    assert began
    assert all(b"OMP_NUM_THREADS=1" in said for said in began)
    assert ends == [b""] * 3
    assert not spoken.startswith(b"\0"), "frames of HTTP/2"
