"""How an answer is sent, and how a client that goes away ends the work for it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from starlette.types import Receive, Send

from evenhand.gateway.sse import event
from evenhand.gateway.wire import Refused

_T = TypeVar("_T")
PLAIN, STREAM = "application/json", "text/event-stream; charset=utf-8"
QUIET_SECONDS = 10.0  # our choice: proxies close what is silent for 60 s, some for 15


class ClientGone(Exception):
    """The client closed its connection; nobody reads what would be sent."""


class Client:
    """Who asked: one answer is sent there, and what has been sent of it is known."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self.receive = receive
        self._send = send
        self.started = self._streams = False
        self.names_errors = False  # whether it tells errors in a stream by the name of the event

    async def start(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        """Send the status and the headers, without a length: the body may still change.

        Args:
            status: The HTTP status.
            kind: The content type, which also says whether the body is a stream.
            headers: Further headers.
        """
        self.started, self._streams = True, kind == STREAM
        pairs = {"content-type": kind, "cache-control": "no-store", **headers}
        head = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": head})

    async def body(self, data: bytes) -> None:
        """Send a piece of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece."""
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def refuse(self, refused: Refused, headers: Mapping[str, str]) -> None:
        """Send a refusal: as the status, or if that was sent already, as an event that clients
        raise. A plain answer that was cut stays as it is, which no client can read."""
        if self.started:
            name = "error" if self.names_errors else ""
            await self.end(event(refused.body(), name) if self._streams else b"")
            return
        await self.start(refused.status, PLAIN, {**headers, **refused.headers})
        await self.end(refused.body())

    async def unless_gone(
        self,
        working: Coroutine[Any, Any, _T],
        meanwhile: Callable[[], Awaitable[None]] | None = None,
    ) -> _T:
        """Wait for some work, and do something every now and then meanwhile. A client that goes
        away ends the work, with what it asked of others."""
        work = asyncio.ensure_future(working)
        gone = asyncio.ensure_future(self._gone())
        try:
            while not work.done():
                await asyncio.wait(
                    {work, gone}, timeout=QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if gone.done() and not work.done():
                    raise ClientGone
                if meanwhile is not None and not work.done():
                    await meanwhile()
            return work.result()
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _gone(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
