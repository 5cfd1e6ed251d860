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
from evenhand.errors import UserError
from gateway.speaking import Speaker, free_port, up, upstream

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
    with pytest.raises(UserError, match="evenhand gateway key") as refused:
        served(tmp_path, f'[tenants.hr]\nkeys = ["{made["key"]}"]')
    assert made["key"] not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "policy", "said"),
    [
        ({"host": "0.0.0.0"}, "", "tenants"),
        ({"replicas": 2}, "", "--quotas"),
        ({}, 'method = "default"', "stardtox"),
        ({}, 'method = "mabrf"', "stardtox"),
        ({"upstream_key_env": "NOT_SET_ANYWHERE"}, "", "NOT_SET_ANYWHERE"),
        ({"evidence": "x"}, 'content = "hashed"', "EVENHAND_GATEWAY_HASH"),
        ({}, 'screen = "nobody"', "no scorer"),
        ({"upstream": "ftp://x"}, "", "--upstream"),
        ({}, "require_evidence = true", "--evidence"),
    ],
)
def test_what_would_not_be_safe_is_not_started(
    tmp_path: Path, given: dict[str, Any], policy: str, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        served(tmp_path, policy, **given)


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


async def test_in_every_process_that_serves_blas_has_one_thread(tmp_path: Path) -> None:
    port = free_port()
    without = {name: said for name, said in os.environ.items() if name not in BLAS}
    async with upstream(Speaker()) as address:
        process = await asyncio.create_subprocess_exec(
            EVENHAND, "gateway", "--upstream", address, "--port", str(port),
            cwd=tmp_path, stderr=subprocess.DEVNULL, env=without,
        )  # fmt: skip
        try:
            await up(port)
            # Read when the process began: set later it would say so here and do nothing.
            began = [Path(f"/proc/{one.pid}/environ").read_bytes().split(b"\0")
                     for one in psutil.Process(process.pid).children()]  # fmt: skip
        finally:
            process.terminate()
            await process.wait()
    assert began
    assert all(b"OMP_NUM_THREADS=1" in said for said in began)
