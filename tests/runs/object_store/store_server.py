"""moto's S3 server, made to keep what S3 promises of a conditional PUT. Run as a script: PORT.

moto looks whether there is such an object and then writes it: another thread's PUT can come
between. S3 does both in one step, so the PUTs of this server go one at a time, each when all of it
has come: a writer that was paused in the middle of sending one keeps nobody else from writing."""

import io
import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import run_simple
from werkzeug.wsgi import get_input_stream


class OnePutAtATime:
    def __init__(self, app: Any) -> None:
        self._app = app
        self._putting = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "PUT":
            answer: Iterable[bytes] = self._app(environ, start_response)
            return answer
        environ["wsgi.input"] = io.BytesIO(get_input_stream(environ).read())
        with self._putting:
            return list(self._app(environ, start_response))


if __name__ == "__main__":
    app = OnePutAtATime(DomainDispatcherApplication(create_backend_app))
    handler = MotoRequestHandler
    run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=True, request_handler=handler)
