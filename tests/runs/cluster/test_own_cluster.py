"""A cluster that a run starts on this machine."""

import json
import os
import subprocess
import sys

# Ray listens on every interface: who reaches the port is kept out by a token alone.
HOST = """
import asyncio, json, os, subprocess, sys
import ray
from evenhand.runs.runners.ray import _cluster

async def main():
    async with _cluster(None):
        address = ray.get_runtime_context().gcs_address
        come = f"from ray._raylet import GcsClient; GcsClient({address!r}); print('in')"
        stranger = {**os.environ, "RAY_AUTH_MODE": "disabled"}
        guest = subprocess.run([sys.executable, "-c", come], env=stranger, capture_output=True)
        print(json.dumps([os.environ["RAY_AUTH_MODE"], guest.stdout.decode()]))

asyncio.run(main())
"""


def test_nobody_joins_it_without_its_token_whatever_the_environment_says() -> None:
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", HOST],
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == ["token", ""]
