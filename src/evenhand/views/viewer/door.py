"""The door of the viewer: who may come in, and what every answer has in its head.

The page is for the person who started it. Other people of this machine can reach the port too, and
so can every web page that this person opens; none of them has the token.
"""

import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.views.html import POLICY
from evenhand.views.viewer.pages import said_page

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
            answer = _said(401, "Open the address that `evenhand view` printed: it has the token.")
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
        answer = HTMLResponse(said_page("evenhand view", "The list opens at once."))
        answer.set_cookie(self._cookie, self.token, httponly=True, samesite="strict")
        answer.headers["refresh"] = "0; url=/"
        return answer


def _token(scope: Scope) -> str:
    query: str = scope["query_string"].decode("latin-1")
    return parse_qs(query).get("token", [""])[0]


def _alike(received: str, expected: str) -> bool:
    return secrets.compare_digest(received.encode(), expected.encode())


def _said(status: int, text: str) -> HTMLResponse:
    return HTMLResponse(said_page(str(status), text), status)
