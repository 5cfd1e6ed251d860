"""The viewer as a server on 127.0.0.1, in a thread of its own."""

import socket
from threading import Thread
from types import TracebackType

import uvicorn

from evenhand.core.errors import UserError
from evenhand.views.viewer.app import app_of
from evenhand.views.viewer.browsing import RunBrowser
from evenhand.views.viewer.door import TokenAuth
from evenhand.views.viewer.facets import Facets

_CONNECTIONS = 64  # our choice: anybody on this machine may knock


class Serving:
    """A server that runs while the context is open. `link` opens the page as often as it is used,
    `link_once` one time."""

    def __init__(self, browsed: RunBrowser, port: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError as error:
            self._socket.close()
            raise UserError(
                f"cannot listen at port {port} ({error.strerror}); choose another --port, or leave "
                "it out to have a free one"
            ) from None
        self._socket.listen()
        self.port: int = self._socket.getsockname()[1]
        self.browsed = browsed
        self.facets = Facets(browsed.run)
        self.door = TokenAuth(app_of(browsed, self.facets), self.port)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self.door,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=_CONNECTIONS,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def link(self) -> str:
        return self._address(self.door.token)

    @property
    def link_once(self) -> str:
        return self._address(self.door.once)

    def _address(self, token: str) -> str:
        return f"http://127.0.0.1:{self.port}/?token={token}"

    def __enter__(self) -> "Serving":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
