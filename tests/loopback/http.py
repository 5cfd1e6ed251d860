"""HTTP/1.1 over raw streams.

aiohttp is the client under test; a server of the same make would share its notion of what can be
sent. Here an answer is bytes, so it can be cut, dripped, reset or plain wrong.
"""

import asyncio
import hashlib
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any

_SLICE = 64 * 1024  # large bodies go out in slices, so that the server holds no second copy
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: close sends RST, not FIN


@dataclass(frozen=True)
class Call:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    received: float  # the loop's clock, when the whole request was here

    @cached_property
    def key(self) -> str:
        """The same for each attempt of one logical request."""
        return hashlib.sha256(self.path.encode() + self.raw).hexdigest()

    @cached_property
    def body(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.raw) if self.raw else {}
        return data


async def read_call(reader: asyncio.StreamReader) -> Call | None:
    """The next request of a connection, or None when the client is done with it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    return Call(method, path, headers, raw, asyncio.get_running_loop().time())


class Line:
    """The connection a request came on: answers it properly, or breaks it in a named way."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.open = True

    async def send(
        self, body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """A whole answer. `headers` replace the usual ones of the same name."""
        await self.write(_head(status, len(body), headers or {}) + body[:_SLICE])
        for start in range(_SLICE, len(body), _SLICE):
            await self.write(body[start : start + _SLICE])

    async def send_json(
        self, data: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        await self.send(json.dumps(data).encode(), status=status, headers=headers)

    async def write(self, data: bytes) -> None:
        """Bytes as they are: whatever they spell is what the client gets."""
        self._writer.write(data)
        await self._writer.drain()

    async def hang(self) -> None:
        """Say nothing more, until the client goes away."""
        while await self._reader.read(_SLICE):
            pass
        self.open = False

    async def cut(self, body: bytes, keep: int) -> None:
        """Promise the whole body, send its beginning, hang up."""
        await self.write(_head(200, len(body), {}) + body[:keep])
        self.close()

    async def drip(self, body: bytes, seconds: float) -> None:
        """The headers at once, then one byte at a time: no read ever takes long."""
        await self.write(_head(200, len(body), {}))
        await self.drip_raw(body, seconds)

    async def drip_raw(self, data: bytes, seconds: float) -> None:
        for place in range(len(data)):
            await asyncio.sleep(seconds)
            await self.write(data[place : place + 1])

    def reset(self) -> None:
        """End the connection with RST: the client reads ECONNRESET, not an end of file."""
        plug: socket.socket = self._writer.get_extra_info("socket")
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._writer.transport.abort()
        self.open = False

    def close(self) -> None:
        self._writer.close()
        self.open = False


def _head(status: int, length: int, headers: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    given = {name.lower() for name in headers}
    usual = {"content-type": "application/json", "content-length": str(length)}
    lines = [f"{name}: {value}" for name, value in usual.items() if name not in given]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} {phrase}", *lines, "", ""]).encode("utf-8")
