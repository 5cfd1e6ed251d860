"""A loopback stand-in for an OpenAI-compatible server, fast enough not to be what is measured.

It runs in a process of its own, speaks just enough HTTP/1.1, and sends answers that were built
before the first request came. The path says how long it waits: `/v1` not at all, `/50ms/v1` 50 ms.

What it answers makes StarDTox do the same for the same items every time. An item whose prompt
holds `ROUGH_ITEM` gets a first draft that holds a mark; the judge objects to the mark, and the
revision comes without it. So a smooth item takes three calls, and a rough one six.
"""

import asyncio
import re
import subprocess
import sys
from typing import Any, Self

import orjson
import psutil

MODEL = "loopback"
ROUGH_ITEM = "in a blunt voice"
_ROUGH_DRAFT = "as everybody knows"

_SMOOTH = (
    "The nurse came back from the night shift, put the kettle on, and wrote three lines to a "
    "colleague about the patient in room four: calm, asleep by two, asked after his daughter. "
    "The engineer next door had left a note about the heating, with a drawing of the valve."
)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_WAIT = re.compile(rb"\A[A-Z]+ /(\d+)ms/")


def _http(said: str | dict[str, Any]) -> bytes:
    text = said if isinstance(said, str) else orjson.dumps(said).decode()
    message = {"role": "assistant", "content": text}
    body: dict[str, Any] = {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion",
        "created": 1760000000,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 180, "completion_tokens": 60, "total_tokens": 240},
    }
    data = orjson.dumps(body)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return head.encode() + b"\r\n" + data


_HARMFUL = _http({"reason": "It says of engineers as a group that they are unkind.", "harm": 62})
_HARMLESS = _http({"reason": "Nothing in it insults or stereotypes a group.", "harm": 2})
_GOOD = _http(
    {
        "reason": "The last sentence adds a second scene that the task did not ask for.",
        "fluency": 93,
        "coherence": 91,
        "relevance": 88,
    }
)
_ROUGH_TEXT = _http(_SMOOTH.replace("next door", f"next door, {_ROUGH_DRAFT} no good with people,"))
_SMOOTH_TEXT = _http(_SMOOTH)
_ITEM_MARK, _DRAFT_MARK = ROUGH_ITEM.encode(), _ROUGH_DRAFT.encode()


def _answer(body: bytes) -> bytes:
    if b'"harm"' in body:  # the schema's name: within a prompt its quotes are escaped
        return _HARMFUL if _DRAFT_MARK in body else _HARMLESS
    if b'"quality"' in body:
        return _GOOD
    return _ROUGH_TEXT if _ITEM_MARK in body and _DRAFT_MARK not in body else _SMOOTH_TEXT


class _Connection(asyncio.Protocol):
    """One keep-alive connection. A client that pipelines is answered in the order it asked."""

    _transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        unread = self._unread + data if self._unread else data
        while (end := unread.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(unread, 0, end)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(unread) < whole:
                break
            self._send(unread, _answer(unread[end + 4 : whole]))
            unread = unread[whole:]
        self._unread = unread

    def _send(self, request: bytes, answer: bytes) -> None:
        wait = _WAIT.match(request)
        if wait is None:
            self._transport.write(answer)
        else:
            self._loop.call_later(int(wait[1]) / 1000, self._transport.write, answer)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(loop), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


class Upstream:
    """The server as a child process.

    >>> with Upstream() as upstream:
    ...     Endpoint(upstream.url(latency_ms=50), model=MODEL)
    """

    def __enter__(self) -> Self:
        self._child = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE)
        assert self._child.stdout is not None
        self._port = int(self._child.stdout.readline())
        self._process = psutil.Process(self._child.pid)
        return self

    def __exit__(self, *_: object) -> None:
        self._child.terminate()
        self._child.wait()
        assert self._child.stdout is not None
        self._child.stdout.close()

    def url(self, latency_ms: int = 0) -> str:
        wait = f"/{latency_ms}ms" if latency_ms else ""
        return f"http://127.0.0.1:{self._port}{wait}/v1"

    @property
    def pid(self) -> int:
        return self._child.pid

    def cpu_seconds(self) -> float:
        """CPU time it has used so far: near the wall time it would be what limits the clients."""
        times = self._process.cpu_times()
        return float(times.user + times.system)


if __name__ == "__main__":
    asyncio.run(_serve())
