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
from evenhand.views.viewer.filters import ListQuery, whole
from evenhand.views.viewer.pages import item_page, list_page, report_of_runs, runs_page, said_page
from evenhand.views.viewer.run_index import COMPARED, RunIndex, RunsQuery

_CONNECTIONS = 64  # our choice: anybody on this machine may knock


class Serving:
    """A server that runs while the context is open. `link` opens the page as often as it is used,
    `link_once` one time."""

    def __init__(self, browsed: RunBrowser | RunIndex, port: int = 0) -> None:
        self.browsed = browsed
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self.door = TokenAuth(app_of(browsed), self.port)
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


_REFRESH = "2"  # our choice, in seconds: as often as a run writes how far it is
_NO_RUN = "There is no such run any more; the list is at /"
_AT_ONCE = 2  # our choice: pages that are made at once, so that memory does not grow with requests


def app_of(browsed: RunBrowser | RunIndex) -> Starlette:
    """Serve the pages of a run, or of a folder of runs, to authorized users."""
    limiter = CapacityLimiter(_AT_ONCE)

    def page(path: str, make: Callable[[Request], HTMLResponse]) -> Route:
        async def answer(request: Request) -> HTMLResponse:
            return await anyio.to_thread.run_sync(_safely, make, request, limiter=limiter)

        return Route(path, answer, methods=["GET"])

    async def nowhere(_request: Request, _error: Exception) -> HTMLResponse:
        return _said(404, "This page does not exist; the list is at /")

    if isinstance(browsed, RunBrowser):
        run = browsed
        routes = [
            page("/", lambda request: _items(run, request)),
            page("/item/{position}", lambda request: _item(run, request)),
        ]
    else:
        index = browsed
        routes = [
            page("/", lambda request: _runs(index, request)),
            page("/compare", lambda request: _compared(index, request)),
            page("/run/{key}/", lambda request: _of_run(index, request, _items)),
            page("/run/{key}/item/{position}", lambda request: _of_run(index, request, _item)),
        ]
    return Starlette(routes=routes, exception_handlers={404: nowhere})


def _items(browsed: RunBrowser, request: Request) -> HTMLResponse:
    query = ListQuery.of(request.query_params.multi_items())
    with browsed.facets.waiting():
        listing = browsed.listed(query)
    return HTMLResponse(list_page(browsed, query, listing))


def _item(browsed: RunBrowser, request: Request) -> HTMLResponse:
    query = ListQuery.of(request.query_params.multi_items())
    position = whole(request.path_params["position"])
    with browsed.facets.waiting():
        entry = None if position is None else browsed.one(position, query)
    if entry is None:
        return _said(404, "The run has no such item, or has not done it yet.")
    return HTMLResponse(item_page(browsed, query, entry))


def _runs(index: RunIndex, request: Request) -> HTMLResponse:
    query = RunsQuery.of(request.query_params.multi_items())
    listing = index.listed(query)
    answer = HTMLResponse(runs_page(index, query, listing))
    if any(row.state == "running" for row in listing.rows):
        answer.headers["refresh"] = _REFRESH
    return answer


def _compared(index: RunIndex, request: Request) -> HTMLResponse:
    keys = list(dict.fromkeys(request.query_params.getlist("run")))
    if not 1 <= len(keys) <= COMPARED:
        raise UserError(f"Select 1 to {COMPARED} runs in the list at /")
    runs = [index.run(key) for key in keys]
    chosen = sorted((run for run in runs if run is not None), key=lambda run: run.created)
    if len(chosen) < len(runs):
        return _said(404, _NO_RUN)
    return HTMLResponse(report_of_runs(index.combine([run.path for run in chosen])))


def _of_run(
    index: RunIndex, request: Request, make: Callable[[RunBrowser, Request], HTMLResponse]
) -> HTMLResponse:
    browsed = index.opened(request.path_params["key"])
    return _said(404, _NO_RUN) if browsed is None else make(browsed, request)


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
