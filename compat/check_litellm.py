"""What a client of LiteLLM's real proxy gets from a guardrail that rewrites, and what one of our
own gateway gets from the same model.

    python -m compat.check_litellm .venv-litellm/bin/litellm

The model is a parrot of our own: it repeats what it is asked to, plain or some signs at a time. Our
gateway is started as a user starts it, the proxy once for each configuration, and then `evenhand
doctor litellm` looks. A line for each; what the proxy leaks is no failure of ours. Ends with code 1
if our own gateway leaks, or the configuration that docs/deploy-gateway.md names does on
/chat/completions.
"""

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from compat.parrot import BAD_WORD, GOOD, parrot
from evenhand.gateway.litellm_check import joined

EVENHAND = str(Path(sys.executable).with_name("evenhand"))
WAYS = [(route, stream) for route in ("/v1/chat/completions", "/v1/responses")
        for stream in (False, True)]  # fmt: skip
NAMED = "incremental_diff, end_of_stream_only"
CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "block_only (default)": {},
    "buffer_until_moderated": {"streaming_buffer_until_moderated": True},
    "incremental_diff": {"streaming_transform_mode": "incremental_diff"},
    NAMED: {"streaming_transform_mode": "incremental_diff", "streaming_end_of_stream_only": True},
}
BAD = f"All of them are filthy, stupid {BAD_WORD} who should shut up."
_SECONDS = 300.0  # our choice: a proxy takes half a minute of CPU time to start


# -- what is started -----------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def running(log: Path, well: str, *command: str) -> AsyncIterator[str]:
    """Start a server at a port of its own, wait until it is well, and end it afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *command, "--port", str(port), stdout=out, stderr=out
        )
    address = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(_SECONDS), aiohttp.ClientSession() as session:
            while not await answers(session, f"{address}{well}"):
                if process.returncode is not None:
                    raise SystemExit(f"{command[0]} ended:\n{log.read_text()[-2000:]}")
                await asyncio.sleep(0.5)
        yield address
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


def configuration(model: str, guardrail: str, streaming: Mapping[str, Any]) -> str:
    """A configuration of the proxy. JSON is YAML too."""
    guard = {"guardrail": "generic_guardrail_api", "mode": ["pre_call", "post_call"],
             "api_base": guardrail, "default_on": True, "timeout": 30,
             "unreachable_fallback": "fail_closed", **streaming}  # fmt: skip
    behind = {"model": "openai/parrot", "api_base": f"{model}/v1", "api_key": "unused"}
    return json.dumps({
        "model_list": [{"model_name": "parrot", "litellm_params": behind}],
        "guardrails": [{"guardrail_name": "evenhand", "litellm_params": guard}],
    })  # fmt: skip


# -- what is looked at ---------------------------------------------------------------------------


async def doctor(address: str) -> list[str]:
    """What the doctor finds, in the order of `WAYS`."""
    process = await asyncio.create_subprocess_exec(
        EVENHAND, "doctor", "litellm", address, "--key-env", "LITELLM_MASTER_KEY", "--json",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    told, _ = await process.communicate()
    found = {(one["route"], one["stream"]): one["found"] for one in json.loads(told)["passages"]}
    return [found[way] for way in WAYS]


async def ours(address: str, route: str, stream: bool) -> str:
    """What a client of our own gateway reads whose model says something bad."""
    asked = f"Repeat this and say nothing else: {BAD}"
    given = {"input": asked} if route.endswith("responses") else {
        "messages": [{"role": "user", "content": asked}]}  # fmt: skip
    body = {"model": "parrot", "stream": stream, **given}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{address}{route}", json=body) as response,
    ):
        read, action = await response.read(), response.headers.get("evenhand-action")
    texts = joined(read)
    if any("filthy" in text or BAD_WORD in text for text in texts):
        return "leaks"
    if action == "repaired" and any(GOOD in text for text in texts):
        return "repaired"
    return "blocked" if action == "blocked" else "open"


async def main(litellm: str) -> int:
    os.environ |= {"LITELLM_MASTER_KEY": f"sk-{secrets.token_hex(24)}", "NO_PROXY": "127.0.0.1",
                   "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "0"}  # fmt: skip
    table: dict[str, list[str]] = {}
    print(f"{'':46} {'chat':9} {'streamed':9} {'responses':9} {'streamed':9}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        gateway = [EVENHAND, "gateway", "--model", "team", "--upstream"]
        async with (
            parrot() as model,
            running(place / "gateway.log", "/ready", *gateway, f"{model}/v1") as guardrail,
        ):
            for name, streaming in CONFIGURATIONS.items():
                file = place / "config.yaml"
                file.write_text(configuration(model, guardrail, streaming))
                proxy = [litellm, "--host", "127.0.0.1", "--config", str(file)]
                async with running(place / "proxy.log", "/health/liveliness", *proxy) as address:
                    table[name] = show(f"LiteLLM, {name}", await doctor(address))
            own = show("evenhand gateway, hold", [await ours(guardrail, *way) for way in WAYS])
    failed = [] if set(own) <= {"repaired", "blocked"} else ["our own gateway"]
    failed += [] if table[NAMED][:2] == ["repaired"] * 2 else [NAMED]
    for one in failed:
        print(f"FAILED: {one}")
    found = Counter(one for row in table.values() for one in row)
    print(*["RESULT", *(f"{kind}={found[kind]}" for kind in ("leaks", "repaired", "open"))])
    return 1 if failed else 0


def show(name: str, row: list[str]) -> list[str]:
    print(f"{name:46}", *(f"{one:9}" for one in row), flush=True)
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("litellm", help="the proxy's command, as litellm_proxy.sh prints it")
    raise SystemExit(asyncio.run(main(parser.parse_args().litellm)))
