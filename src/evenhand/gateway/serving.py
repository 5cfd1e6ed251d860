"""Serve a gateway with Granian, in this process and its workers.

`python -m evenhand.gateway.serving` reads the settings as JSON from its standard input, so that an
address with a password is in no list of processes.
"""

import multiprocessing
import os
import signal
import sys
from dataclasses import asdict
from functools import partial
from typing import Any

import orjson
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.mp import MPServer

from evenhand.core import environment
from evenhand.gateway.opening import CLOSING, GatewayRequest, application


class _Server(MPServer):
    """The server, whose processes are told of a SIGHUP and not replaced for it."""

    def signal_handler_reload(self, *_: Any) -> None:
        for worker in self.wrks:
            if (pid := worker.inner.pid) is not None:
                os.kill(pid, signal.SIGHUP)


def serve(request: GatewayRequest) -> None:
    """Serve until a signal ends this process."""
    # Our choice: one thread of BLAS. Two make a score of one text a fifth faster and take half as
    # much CPU again; where the cores have other work, they wait for each other busily. It is read
    # where numpy is loaded, which has happened here, so new processes are spawned.
    environment.use_one_blas_thread()
    multiprocessing.set_start_method("spawn", force=True)
    _Server(
        "evenhand gateway",
        interface=Interfaces.ASGI,
        # Where the server finds out which HTTP is spoken, a silent connection is never closed.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=1000 * request.idle_seconds),
        websockets=False,
        log_access=False,
        respawn_failed_workers=True,
        address=request.host,
        port=request.port,
        workers=request.replicas,
        workers_kill_timeout=int(request.read().grace) + CLOSING,
    ).serve(target_loader=partial(application, request), wrap_loader=False)


def to_json(request: GatewayRequest) -> bytes:
    """The settings, as the process reads them from its standard input."""
    return orjson.dumps(asdict(request))


if __name__ == "__main__":
    serve(GatewayRequest(**orjson.loads(sys.stdin.buffer.read())))
