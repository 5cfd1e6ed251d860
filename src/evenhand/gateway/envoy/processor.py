"""Envoy carries the traffic, and the gateway decides about it: `ext_proc` over gRPC.

Envoy opens one gRPC stream for each request. The request's body comes whole, and the response's in
FULL_DUPLEX_STREAMED: nothing of it goes on but what is sent here. So a gateway that answers such a
stream is the gateway that serves HTTP: what Envoy brings of the request is its `receive`, what
Envoy brings of the response is its upstream, and what it sends goes out by Envoy.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any

import grpc
import grpc.aio
from starlette.types import ASGIApp, Message

from evenhand.gateway.breaker import Caller
from evenhand.gateway.envoy.messages import (
    OVERWRITE,
    SERVICE,
    ProcessingRequest,
    ProcessingResponse,
)
from evenhand.gateway.sending import ClientGone
from evenhand.gateway.upstream import MOST_BODY, Upstream
from evenhand.gateway.wire import Refused

_GONE = object()  # the end of a gRPC stream: the client, or Envoy, has gone
_stream: ContextVar["EnvoyStream"] = ContextVar("stream of Envoy")


class EnvoyUpstream(Upstream):
    """The upstream of the request that Envoy has just brought. Keys, retries, time limits and
    outlier detection are Envoy's."""

    @asynccontextmanager
    async def asked(
        self, route: str, body: bytes | None, headers: Mapping[str, str], caller: Caller
    ) -> AsyncIterator[Any]:
        """Let the request go on, and yield the response. Raises `Refused` for any but a 200."""
        del route, headers, caller  # Envoy has them
        response = await _stream.get().asked(body)
        if response.status != 200:
            refused = 400 <= response.status < 500
            raise Refused(
                response.status if refused else 502,
                "upstream_refused" if refused else "upstream_error",
                f"the upstream answered {response.status}",
            )
        yield response


class EnvoyResponse:
    """A response that Envoy brings, read as aiohttp's is."""

    def __init__(self, stream: "EnvoyStream", headers: Mapping[str, str], *, empty: bool) -> None:
        status = headers.get(":status", "")
        self.status = int(status) if status.isascii() and status.isdigit() else 502
        self.headers = headers
        self.content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        self.content = self
        self._stream, self._empty = stream, empty

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes. Raises `Refused` if it is cut."""
        while not self._empty:
            piece = await self._stream.response.get()
            if piece is _GONE:
                raise Refused(502, "upstream_unreachable", "the upstream's answer was cut")
            data, self._empty = piece
            if data:
                yield data

    def close(self) -> None:
        """Read no more of it."""


class EnvoyStream:
    """One request and its response, in Envoy's hands."""

    def __init__(self, send: Callable[[Any], Any]) -> None:
        self._send = send
        self.request: asyncio.Queue[Message] = asyncio.Queue()
        self.response: asyncio.Queue[Any] = asyncio.Queue()
        self._head: asyncio.Future[tuple[dict[str, str], bool]] = (
            asyncio.get_running_loop().create_future()
        )
        self.scope: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._has_body = self._trailers = False
        self._refusal: tuple[int, list[tuple[bytes, bytes]]] | None = None
        self._refused = bytearray()
        self.over = False

    # -- what Envoy brings -------------------------------------------------------------------

    async def heard(self, requests: AsyncIterator[Any]) -> None:
        """Take what Envoy brings until it has no more."""
        try:
            async for message in requests:
                await self._take(message)
        finally:
            await self.request.put({"type": "http.disconnect"})
            await self.response.put(_GONE)
            for future in (self._head, self.scope):
                if not future.done():
                    future.cancel()

    async def _take(self, message: Any) -> None:
        if message.HasField("request_headers"):
            headers = _headers(message.request_headers)
            self.scope.set_result(_scope(headers))
            if message.request_headers.end_of_stream:
                await self.request.put({"type": "http.request", "body": b""})
            self._has_body = not message.request_headers.end_of_stream
        elif message.HasField("request_body"):
            part = message.request_body
            await self.request.put(
                {"type": "http.request", "body": part.body, "more_body": not part.end_of_stream}
            )
        elif message.HasField("response_headers"):
            part = message.response_headers
            self._head.set_result((_headers(part), part.end_of_stream))
        elif message.HasField("response_body"):
            await self.response.put(
                (message.response_body.body, message.response_body.end_of_stream)
            )
        elif message.HasField("response_trailers"):
            self._trailers = True
            await self.response.put((b"", True))

    async def receive(self) -> Message:
        """Give a piece of the request, as ASGI has it. The body comes once Envoy was told to go on;
        the request itself waits for what is said of the body."""
        if self._has_body:
            self._has_body = False
            await self._send(_request_headers())
        return await self.request.get()

    # -- what goes on ------------------------------------------------------------------------

    async def asked(self, body: bytes | None) -> EnvoyResponse:
        """Let the request go on with this body, and wait for the head of the response."""
        if body is None:
            await self._send(_request_headers())
        else:
            answer = ProcessingResponse()
            answer.request_body.response.body_mutation.body = body
            await self._send(answer)
        try:
            headers, empty = await asyncio.shield(self._head)
        except asyncio.CancelledError:
            if self._head.cancelled():
                raise Refused(502, "upstream_unreachable", "the upstream has gone") from None
            raise
        return EnvoyResponse(self, headers, empty=empty)

    async def send(self, message: Message) -> None:
        """Send a piece of the answer, as ASGI has it."""
        if message["type"] == "http.response.start":
            status, headers = message["status"], message["headers"]
            if status == 200 and self._head.done():
                await self._start(headers)
            else:  # nothing of the upstream's has gone out
                self._refusal = status, headers
            return
        if self._refusal is not None:
            self._refused += message["body"]
            if not message["more_body"]:
                await self._end_at_once(*self._refusal)
            return
        await self._send_body(message["body"], last=not message["more_body"])

    async def _start(self, headers: list[tuple[bytes, bytes]]) -> None:
        """The head of the answer is ours: no header of the upstream's goes out."""
        answer = ProcessingResponse()
        change = answer.response_headers.response.header_mutation
        ours = {name.decode("latin-1") for name, _ in headers}
        theirs = self._head.result()[0]
        change.remove_headers.extend(
            name for name in theirs if not name.startswith(":") and name not in ours
        )
        for name, value in headers:
            _set(change, name.decode("latin-1"), value.decode("latin-1"))
        await self._send(answer)

    async def _send_body(self, data: bytes, *, last: bool) -> None:
        answer = ProcessingResponse()
        part = answer.response_body.response.body_mutation.streamed_response
        part.body, part.end_of_stream = data, last and not self._trailers
        await self._send(answer)
        if last and self._trailers:
            answer = ProcessingResponse()
            answer.response_trailers.SetInParent()
            await self._send(answer)
        self.over = self.over or last

    async def _end_at_once(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        answer = ProcessingResponse()
        part = answer.immediate_response
        part.status.code, part.body = status, bytes(self._refused)
        for name, value in headers:
            _set(part.headers, name.decode("latin-1"), value.decode("latin-1"))
        await self._send(answer)
        self.over = True


class Processor:
    """The gRPC service: one `EnvoyStream` for each request."""

    def __init__(self, gateway: Callable[[], ASGIApp]) -> None:
        """
        Args:
            gateway: Gives the gateway of the policy in force, whose upstream is `EnvoyUpstream`.
        """
        self._gateway = gateway
        self._answering: set[asyncio.Task[None]] = set()

    def handler(self) -> grpc.GenericRpcHandler:
        """What a gRPC server is given."""
        process = grpc.stream_stream_rpc_method_handler(
            self.process,
            request_deserializer=ProcessingRequest.FromString,
            response_serializer=lambda answer: answer.SerializeToString(),
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"Process": process})

    async def process(self, requests: AsyncIterator[Any], context: Any) -> None:
        """Decide about one request. An error ends the stream, and Envoy then fails closed."""

        async def write(answer: Any) -> None:
            try:
                await context.write(answer)
            except Exception:  # whatever gRPC raises where nobody reads any more
                raise ClientGone from None

        stream = EnvoyStream(write)
        hearing = asyncio.ensure_future(stream.heard(requests))
        # A task of its own: what `observe` checks behind the answer outlives Envoy's stream.
        answering = asyncio.create_task(self._answer(stream))
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)
        try:
            await asyncio.shield(answering)
            if not stream.over and not hearing.done():  # the client got no end: nor may it
                await context.abort(grpc.StatusCode.ABORTED, "the answer ended early")
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _answer(self, stream: EnvoyStream) -> None:
        _stream.set(stream)
        with suppress(asyncio.CancelledError, ClientGone):  # Envoy has gone
            scope = await asyncio.shield(stream.scope)
            await self._gateway()(scope, stream.receive, stream.send)


@asynccontextmanager
async def served(gateway: Callable[[], ASGIApp], address: str) -> AsyncIterator[int]:
    """Serve the processor at an address, such as 127.0.0.1:9001.

    Args:
        gateway: Gives the gateway of the policy in force.
        address: Where to listen.

    Yields:
        The port.
    """
    longest = ("grpc.max_receive_message_length", MOST_BODY)
    server = grpc.aio.server(options=[longest])
    server.add_generic_rpc_handlers((Processor(gateway).handler(),))
    port = server.add_insecure_port(address)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(grace=None)


def _headers(part: Any) -> dict[str, str]:
    """Headers by name. Envoy gives the values as bytes."""
    return {
        one.key.lower(): (one.raw_value.decode("latin-1") or one.value)
        for one in part.headers.headers
    }


def _scope(headers: Mapping[str, str]) -> dict[str, Any]:
    path = headers.get(":path", "/").partition("?")[0]
    pairs = [(name.encode("latin-1"), value.encode("latin-1"))
             for name, value in headers.items() if not name.startswith(":")]  # fmt: skip
    pairs.append((b"host", headers.get(":authority", "").encode("latin-1")))
    return {"type": "http", "method": headers.get(":method", ""), "path": path, "headers": pairs}


def _request_headers() -> Any:
    """A key of this gateway goes no further; Envoy adds that of the upstream."""
    answer = ProcessingResponse()
    change = answer.request_headers.response.header_mutation
    change.remove_headers.extend(["content-length", "authorization", "x-api-key"])
    _set(change, "accept-encoding", "identity")
    return answer


def _set(change: Any, name: str, value: str) -> None:
    option = change.set_headers.add()
    option.header.key, option.header.raw_value = name, value.encode("latin-1")
    option.append_action = OVERWRITE
