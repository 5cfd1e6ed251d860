"""The pretended model that the commands of a gate and of a watch ask."""

from collections.abc import Iterator

import pytest

from tests.findings.gate import texts
from tests.loopback.process import RemoteServer, in_own_process


@pytest.fixture(scope="module")
def server() -> Iterator[RemoteServer]:
    with in_own_process(texts.Corrector()) as running:
        yield running


@pytest.fixture(scope="module")
def endpoint(server: RemoteServer) -> str:
    return server.url
