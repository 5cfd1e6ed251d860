"""What was imported is not rubbish: the collector need not look at it a hundred thousand times."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _imports_are_not_rubbish() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
