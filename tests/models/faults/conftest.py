"""Servers and endpoints that are closed again, whatever a test does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol

import pytest

from evenhand.models import Endpoint
from tests.loopback.faulty import Behaviour, LoopbackServer

Serve = Callable[[Behaviour], Awaitable[LoopbackServer]]


class Connect(Protocol):
    def __call__(self, url: str, /, **options: Any) -> Endpoint: ...


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start a server with this behaviour, in the test's own event loop."""
    async with AsyncExitStack() as stack:

        async def start(behaviour: Behaviour) -> LoopbackServer:
            return await stack.enter_async_context(LoopbackServer(behaviour))

        yield start


@pytest.fixture
async def connect(serve: Serve) -> AsyncIterator[Connect]:
    """An endpoint at this URL. Depends on `serve`, so that it closes before the servers do."""
    opened: list[Endpoint] = []

    def connect(url: str, /, **options: Any) -> Endpoint:
        opened.append(Endpoint(url, model="pretended", **options))
        return opened[-1]

    yield connect
    for endpoint in opened:
        await endpoint.close()
    await asyncio.sleep(0)  # closed sockets say so on the loop's next turn
