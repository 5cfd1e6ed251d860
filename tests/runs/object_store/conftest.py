"""A real S3-compatible server in a process of its own, and runs that write to it."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from s3fs import S3FileSystem

from tests.runs.crash.checker import Committed, check_whole, started
from tests.runs.crash.conftest import Runner, no_runner_is_left  # noqa: F401
from tests.runs.crash.worker import Job

from . import store_server

BUCKET = "runs"
SECRET = "canary-secret-key"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """moto's server with one bucket; gives its URL."""
    url = f"http://127.0.0.1:{free_port()}"
    port = url.rpartition(":")[2]
    log = (tmp_path_factory.mktemp("moto") / "log").open("wb")
    command = [sys.executable, store_server.__file__, port]
    process = subprocess.Popen(command, stdout=log, stderr=log)
    for _ in range(300):
        try:
            bucket = urllib.request.Request(f"{url}/{BUCKET}", method="PUT")
            urllib.request.urlopen(bucket, timeout=1).close()
            break
        except OSError:
            time.sleep(0.1)
    yield url
    process.kill()
    process.wait()
    log.close()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    return port


def use_endpoint(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For this process, from now on, and those that it starts."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    S3FileSystem.clear_instance_cache()


@pytest.fixture(autouse=True)
def store(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The store as a third party sees it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    use_endpoint(server, monkeypatch)
    yield fsspec.filesystem("s3", use_listings_cache=False, endpoint_url=server)
    S3FileSystem.clear_instance_cache()


@dataclass(frozen=True)
class Unbroken:
    """The run that nothing happened to, in a local folder."""

    job: Job
    whole: Committed
    calls: Any


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    folder = tmp_path_factory.mktemp("unbroken")
    job = Job(out=str(folder / "run"), log=str(folder / "calls"), items=80, concurrency=10)
    Runner(job, script=True).finish()
    return Unbroken(job, check_whole(folder / "run", job.items), started(folder / "calls"))


@pytest.fixture
def job(tmp_path: Path, unbroken: Unbroken) -> Job:
    """The same run, in a folder of its own in the store."""
    out = f"s3://{BUCKET}/{tmp_path.name}/run"
    return replace(unbroken.job, out=out, log=str(tmp_path / "calls"))


def copied(job: Job, store: Any, to: Path) -> Path:
    """The run's objects as files, fetched without the package under test."""
    root = job.out.removeprefix("s3://")
    for path in store.find(root):
        local = to / path.removeprefix(f"{root}/")
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(store.cat_file(path))
    return to


def objects(job: Job, store: Any) -> dict[str, bytes]:
    root = job.out.removeprefix("s3://")
    return {path.removeprefix(f"{root}/"): store.cat_file(path) for path in store.find(root)}


def status(state: str, age: float) -> bytes:
    """As a runner writes `status.json` every few seconds."""
    then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age))
    return json.dumps({"state": state, "updated": then, "writer": "process 7 on host"}).encode()
