"""A proxy before an S3 server that fails a share of the requests, as networks do."""

import http.client
import random
import socket
import struct
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import urlsplit

FAULTS = ("reset", "busy", "answer lost")  # the last: the server has done it, nobody hears of it


class FlakyProxy:
    """A context: `url` is where to send requests, `seen` counts what became of them."""

    def __init__(self, server: str, seed: int, share: float = 0.2) -> None:
        self.seen: Counter[str] = Counter()
        self._host = urlsplit(server).netloc
        self._luck = random.Random(seed)
        self._share = share
        self._rolling = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                proxy.serve(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> "FlakyProxy":
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    def serve(self, asked: BaseHTTPRequestHandler) -> None:
        body = asked.rfile.read(int(asked.headers.get("Content-Length", 0)))
        fate = self._fate(asked.command)
        if fate == "reset":
            _reset(asked)
        elif fate == "busy":
            _answer(asked, 503, {}, b"")
        else:
            status, headers, answer = self._forward(asked, body)
            if fate == "answer lost":
                _reset(asked)
            else:
                _answer(asked, status, headers, answer)

    def _fate(self, command: str) -> str:
        with self._rolling:
            failed = self._luck.random() < self._share
            fate = self._luck.choice(FAULTS) if failed else "served"
            self.seen.update([fate, f"{command} {fate}"])
        return fate

    def _forward(
        self, asked: BaseHTTPRequestHandler, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        upstream = http.client.HTTPConnection(self._host, timeout=30)
        headers = {k: v for k, v in asked.headers.items() if k.lower() != "expect"}
        upstream.request(asked.command, asked.path, body, headers)
        response = upstream.getresponse()
        answer = response.read()
        upstream.close()
        return response.status, dict(response.getheaders()), answer


def _answer(
    asked: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes
) -> None:
    asked.send_response_only(status)
    for name, value in headers.items():
        if name.lower() not in ("connection", "transfer-encoding", "content-length"):
            asked.send_header(name, value)
    # To a HEAD, the length of what a GET would bring.
    length = headers.get("Content-Length", "0") if asked.command == "HEAD" else str(len(body))
    asked.send_header("Content-Length", length)
    asked.end_headers()
    asked.wfile.write(body)


def _reset(asked: BaseHTTPRequestHandler) -> None:
    """Close so that the other side sees a reset, not an end."""
    asked.close_connection = True
    linger = struct.pack("ii", 1, 0)
    asked.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    asked.connection.close()
