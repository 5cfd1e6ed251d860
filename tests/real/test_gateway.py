"""The gateway with real parts: llama.cpp behind it, the openai SDK and curl before it."""

import asyncio
import json
import shutil
import subprocess
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest

from evenhand.gateway.keys import new_key
from evenhand.runs.store import RunReader
from tests.real.conftest import EVENHAND, free_port

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(900)]

KEYS = {name: new_key() for name in ("screened", "judged")}
POLICY = """
set = ["performance=false", "max_iterations=1"]
deadline = 300.0
tokens = 4000
content = "on"

[tenants.screened]
keys = ["{screened}"]
band = [1.0, 1.0]

[tenants.judged]
keys = ["{judged}"]
band = [0.0, 1.0]
on_failure = "pass_flagged"
"""


@pytest.fixture
async def gateway(local_server: str, tmp_path: Path) -> AsyncIterator[tuple[str, Process]]:
    """The URL of `evenhand gateway` before the real server, and its process."""
    (tmp_path / "policy.toml").write_text(POLICY.format(**{n: h for n, (_, h) in KEYS.items()}))
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        EVENHAND, "gateway", "--upstream", local_server, "--policy", "policy.toml",
        "--evidence", "evidence", "--audit", "audit", "--port", str(port), cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}/v1"
    try:
        while True:
            assert process.returncode is None, "the gateway ended at once"
            try:
                async with _client(url, KEYS["screened"][0]) as client:
                    await client.models.list()
            except openai.APIConnectionError:
                await asyncio.sleep(0.2)
            else:
                break
        yield url, process
    finally:
        if process.returncode is None:
            process.terminate()
        assert await process.wait() == 0


def _client(url: str, key: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=600)


SETTINGS: Any = {
    "model": "smollm2",
    "messages": [{"role": "user", "content": "Name a colour."}],
    "temperature": 0,
    "max_tokens": 24,
}


async def test_the_sdk_and_curl_get_checked_answers_of_a_real_model_and_all_of_it_is_on_record(
    gateway: tuple[str, Process], tmp_path: Path
) -> None:
    url, process = gateway
    key = KEYS["screened"][0]
    async with _client(url, key) as client:
        plain = await client.chat.completions.with_raw_response.create(**SETTINGS)
        stream = await client.chat.completions.create(**SETTINGS, stream=True)
        streamed = "".join([piece.choices[0].delta.content or "" async for piece in stream])
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(model="smollm2", input="x", store=True)
    text = plain.parse().choices[0].message.content
    assert text
    assert (plain.headers["evenhand-action"], streamed) == ("passed", text)
    curl = shutil.which("curl")
    assert curl is not None
    command = [curl, "-s", f"{url}/chat/completions", "-d", json.dumps(SETTINGS)]
    command += ["-H", f"Authorization: Bearer {key}"]
    said = await asyncio.to_thread(subprocess.check_output, command)
    assert json.loads(said)["choices"][0]["message"]["content"] == text
    async with _client(url, "wrong") as stranger:
        with pytest.raises(openai.AuthenticationError):
            await stranger.models.list()
    async with _client(url, KEYS["judged"][0]) as client:
        judged = await client.chat.completions.with_raw_response.create(**SETTINGS)
    action, calls = judged.headers["evenhand-action"], int(judged.headers["evenhand-calls"])
    assert action in ("passed", "repaired", "flagged", "not_run")
    assert calls >= 1
    process.terminate()
    assert await process.wait() == 0
    folders = {path.parent.name: path.parent for path in (tmp_path / "evidence").rglob("run.json")}
    assert RunReader(folders["screened"]).totals().items == 3
    run = RunReader(folders["judged"])
    assert not run.open
    [row] = run.results().collect().to_dicts()
    tags = {tag["name"]: tag["value"] for tag in row["tags"]}
    assert (tags["tenant"], tags["action"], row["calls"]) == ("judged", action, calls)
    assert len(run.turns().collect()) == calls
