"""A real store on a port of its own, which tests kill, stop and start again."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest


class RedisServer:
    """Debian's redis-server, without a file: what it is killed with is lost."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port: int = sock.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--appendonly", "no"], cwd=self._folder, stdout=log, stderr=log
            )
        for _ in range(300):
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as sock:
                    sock.sendall(b"PING\r\n")
                    if sock.recv(7) == b"+PONG\r\n":
                        return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError("redis-server does not answer")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hang(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)


def new_server(folder: Path) -> RedisServer:
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server: install Debian's package of that name")
    server = RedisServer(folder)
    server.start()
    return server
