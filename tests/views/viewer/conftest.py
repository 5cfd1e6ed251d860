"""One run in several parts for all tests that only read it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.view import write_run
from tests.views.viewer.asking import Asking, viewing


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty items in parts of sixteen, some of them without an answer."""
    folder = tmp_path_factory.mktemp("viewed") / "run"
    write_run(folder, 60, seed=1, part=16, failing=0.3)
    return folder


@pytest.fixture(scope="session")
def asked(large: Path) -> Iterator[Asking]:
    with viewing(large) as asking:
        yield asking
