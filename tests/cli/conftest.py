"""The command as a user runs it, against a well-behaved loopback server."""

import atexit
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.warm import Warm
from tests.loopback.faulty import well
from tests.loopback.process import in_own_process

BIN = Path(sys.executable).parent
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    with in_own_process(well) as server:
        yield server.url


@functools.cache
def warm() -> Warm:
    """One for all folders of tests, which share the fixture below by its name."""
    started = Warm(clean_environment())
    atexit.register(started.close)
    return started


@pytest.fixture
def evenhand(tmp_path: Path, endpoint: str) -> Run:
    """Run `evenhand …` in an empty folder, with the loopback server as the default endpoint."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        given = {**clean_environment(), "EVENHAND_BASE_URL": endpoint, **environment}
        return warm().run(arguments, tmp_path, given)

    return run


@pytest.fixture
def cold_evenhand(tmp_path: Path, endpoint: str) -> Run:
    """The same, from the script that was installed and with nothing loaded."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / "evenhand"), *arguments],
            cwd=tmp_path,
            env={**clean_environment(), "EVENHAND_BASE_URL": endpoint, **environment},
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )

    return run


def clean_environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("EVENHAND_")}
    return {**kept, "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "200"}
