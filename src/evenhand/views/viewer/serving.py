"""The viewer as a server on 127.0.0.1: its two pages, and the door that lets in one person."""

import secrets
import socket
from collections.abc import Callable
from threading import Thread
from types import TracebackType
from urllib.parse import parse_qs

import anyio.to_thread
import polars as pl
import uvicorn
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.core.errors import EvenhandError, UserError
from evenhand.views.html import POLICY
from evenhand.views.viewer.browsing import RunBrowser
from evenhand.views.viewer.filters import Facets, ListQuery, whole
from evenhand.views.viewer.pages import item_page, list_page, said_page

_CONNECTIONS = 64  # our choice: anybody on this machine may knock


class Serving:
    """A server that runs while the context is open. `link` opens the page as often as it is used,
    `link_once` one time."""

    def __init__(self, browsed: RunBrowser, port: int = 0) -> None:
        self.browsed = browsed
        self.facets = Facets(browsed.run)
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
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
        try:
            self._thread.start()
        except BaseException:
            self._socket.close()
            raise
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


def _listening(port: int) -> socket.socket:
    """Open a socket at a port of 127.0.0.1; it is closed again where that fails."""
    opened = socket.socket()
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(("127.0.0.1", port))
        opened.listen()
    except OSError as error:
        opened.close()
        raise UserError(
            f"Could not listen on port {port} ({error.strerror}). Choose another --port, or "
            "leave it out to use a free one."
        ) from None
    return opened


_AT_ONCE = 2  # our choice: pages that are made at once, so that memory does not grow with requests


def app_of(browsed: RunBrowser, facets: Facets) -> Starlette:
    """Serve the pages of a run to authorized users."""
    limiter = CapacityLimiter(_AT_ONCE)

    def page(path: str, make: Callable[[Request], HTMLResponse]) -> Route:
        async def answer(request: Request) -> HTMLResponse:
            return await anyio.to_thread.run_sync(_safely, make, request, limiter=limiter)

        return Route(path, answer, methods=["GET"])

    def listed(request: Request) -> HTMLResponse:
        query = ListQuery.of(request.query_params.multi_items())
        with facets.waiting():
            listing = browsed.listed(query)
        return HTMLResponse(list_page(browsed, facets, query, listing))

    def item(request: Request) -> HTMLResponse:
        query = ListQuery.of(request.query_params.multi_items())
        position = whole(request.path_params["position"])
        with facets.waiting():
            entry = None if position is None else browsed.one(position, query)
        if entry is None:
            return _said(404, "The run has no such item, or has not done it yet.")
        return HTMLResponse(item_page(browsed, query, entry))

    async def nowhere(_request: Request, _error: Exception) -> HTMLResponse:
        return _said(404, "This page does not exist; the list of items is at /")

    routes = [page("/", listed), page("/item/{position}", item)]
    return Starlette(routes=routes, exception_handlers={404: nowhere})


def _safely(make: Callable[[Request], HTMLResponse], request: Request) -> HTMLResponse:
    """A run folder may come from a stranger: what is wrong with it is said on the page."""
    try:
        return make(request)
    except UserError as error:
        return _said(400, str(error))
    except EvenhandError as error:
        return _said(500, str(error))
    # Whatever a hostile table makes of its reader; a panic of polars is no `Exception`.
    except (Exception, pl.exceptions.PanicException) as error:
        return _said(500, f"This cannot be read ({type(error).__name__}): {error}")


def _said(status: int, text: str) -> HTMLResponse:
    return HTMLResponse(said_page(str(status), text), status)


_HEAD = {
    "content-security-policy": f"{POLICY}; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# By name, whatever the port: a tunnel may have another one at its other end. A name that somebody
# has let point to this machine is none of them.
_HOSTS = ("127.0.0.1", "localhost")


class TokenAuth:
    """It lets in who has the token, by the address once and by a cookie from then on.

    `once` is for the address that a browser is started with, which other people of this machine can
    read in the list of processes: it opens one time.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.token = secrets.token_urlsafe()
        self.once = secrets.token_urlsafe()
        self._once: str | None = self.once
        self._cookie = f"evenhand-view-{port}"  # cookies know no ports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        assert scope["type"] == "http"
        headers = Headers(scope=scope)

        async def with_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEAD)
            await send(message)

        if headers.get("host", "").partition(":")[0] not in _HOSTS:
            answer: ASGIApp = _said(403, "This is not the address of this page.")
        elif self._opens(token := _token(scope)) or (token and self._has_cookie(headers)):
            answer = self._welcome()
        elif self._has_cookie(headers):
            answer = self.app if scope["method"] in ("GET", "HEAD") else _said(
                405, "This page is only read."
            )  # fmt: skip
        else:
            answer = _said(
                401, "Open the address that `evenhand runs view` printed: it has the token."
            )
        await answer(scope, receive, with_head)

    def _has_cookie(self, headers: Headers) -> bool:
        """Cookies of other pages on this machine come along, in whatever form: they say nothing."""
        pairs = (cookie.strip() for line in headers.getlist("cookie") for cookie in line.split(";"))
        return any(_alike(cookie, f"{self._cookie}={self.token}") for cookie in pairs)

    def _opens(self, token: str) -> bool:
        if self._once is not None and _alike(token, self._once):
            self._once = None
            return True
        return _alike(token, self.token)

    def _welcome(self) -> HTMLResponse:
        """Set the cookie, and go on by a page of ours: after a redirect from elsewhere, such as a
        terminal in a browser, a strict cookie would not be sent."""
        answer = HTMLResponse(said_page("evenhand runs view", "The list opens at once."))
        answer.set_cookie(self._cookie, self.token, httponly=True, samesite="strict")
        answer.headers["refresh"] = "0; url=/"
        return answer


def _token(scope: Scope) -> str:
    query: str = scope["query_string"].decode("latin-1")
    return parse_qs(query).get("token", [""])[0]


def _alike(received: str, expected: str) -> bool:
    return secrets.compare_digest(received.encode(), expected.encode())
