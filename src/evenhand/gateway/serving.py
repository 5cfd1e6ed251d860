"""Serve a gateway with Granian, in this process and its workers.

`python -m evenhand.gateway.serving` reads the settings as JSON from its standard input, so that an
address with a password is in no list of processes.
"""

import multiprocessing
import sys
from dataclasses import asdict
from functools import partial

import orjson
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings

from evenhand.core import environment
from evenhand.gateway.opening import GatewayRequest, application

CLOSING = 30  # seconds for the parts to be closed, after the grace of the policy


def serve(request: GatewayRequest) -> None:
    """Serve until a signal ends this process."""
    # Our choice: one thread of BLAS. Two make a score of one text a fifth faster and take half as
    # much CPU again; where the cores have other work, they wait for each other busily. It is read
    # where numpy is loaded, which has happened here, so new processes are spawned.
    environment.use_one_blas_thread()
    multiprocessing.set_start_method("spawn", force=True)
    Granian(
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
