"""The endpoint behind the gateway, asked over aiohttp with bounded bodies, retries and patience."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import orjson

from evenhand.gateway.admission import busy
from evenhand.gateway.breaker import Breakers, Caller, RetryBudget
from evenhand.gateway.sse import EventReader
from evenhand.gateway.wire import MalformedReply, Refused, UpstreamReply
from evenhand.models.http_client import plain_url, read_capped
from evenhand.models.keys import Redactor, sendable

MOST_BODY = 16 * 1024 * 1024  # our choice: 128 choices of a long answer
_MOST_ERROR = 64 * 1024
_TRACED = ("traceparent", "tracestate")
_MESSAGES, _VERSION = "/messages", "2023-06-01"  # the version where a client names none
_DIALECT = ("anthropic-version", "anthropic-beta")
_ACCOUNT = ("openai-organization", "openai-project")  # of the client's own key
# What an upstream may say of a request in its own words: any other could quote a model.
_CODES = frozenset({
    "context_length_exceeded", "insufficient_quota", "invalid_api_key", "invalid_request_error",
    "model_not_found", "rate_limit_exceeded", "unsupported_parameter", "unsupported_value",
})  # fmt: skip
_AGAIN = frozenset({502, 503, 504})


class Upstream:
    """One endpoint. With a key of its own, the client's never goes there.

    >>> async with upstream.asked("/chat/completions", body, headers, caller) as response: ...
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        seconds: float = 300.0,
        slow_after: float | None = None,
        connections: int = 1024,
    ) -> None:
        self.url = plain_url(
            url,
            no_address="--upstream should look like https://api.example/v1",
            tells_too_much="--upstream holds a user, a password or a query; leave them out and "
            "name the key's environment variable in --upstream-key-env",
        ).rstrip("/")
        self._key = sendable(key)
        self.redact = Redactor(key)  # an upstream may write its key into an answer
        self._seconds = seconds
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self.breakers = Breakers(slow_after=slow_after)
        self.retries = RetryBudget()

    async def close(self) -> None:
        """Let go of the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def without_key(self, body: bytes) -> bytes:
        """Take the key out of what a client gets in addition to texts: arguments, names, ids."""
        if not self._key or not self.redact:
            return body
        return body.replace(self._key.encode(), b"[redacted]")

    @asynccontextmanager
    async def asked(
        self, route: str, body: bytes | None, headers: Mapping[str, str], caller: Caller
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield the response, whose body is read inside the `async with`.

        Args:
            route: The path below the upstream's address.
            body: The body to send by POST; None for a GET.
            headers: The client's headers, from which those for the upstream are taken.
            caller: Whose circuit breaker counts.

        Yields:
            A response with status 200.

        Raises:
            Refused: If the upstream fails, refuses, is too slow, or its circuit breaker is open.
        """
        breaker = self.breakers.of(caller)
        call = breaker.let_through()
        if call is None:
            message = "the upstream failed too often just now; try again later"
            raise busy("upstream_resting", message, breaker.retry_after)
        good: bool | None = None  # a client that goes away says nothing about the upstream
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._answered(route, body, self._headers(route, headers))
                async with response:
                    if response.status != 200:
                        good = response.status < 500 and (response.status != 429 or None)
                        raise await self._refusal(response)
                    yield response
            good = True
        except TimeoutError:
            good = False
            raise Refused(
                504, "upstream_timeout", "the upstream gave no whole answer in time"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            good = False
            raise Refused(
                502, "upstream_unreachable", f"the upstream failed: {type(error).__name__}"
            ) from None
        finally:
            breaker.done(call, good=good)

    async def _answered(
        self, route: str, body: bytes | None, headers: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        """Send a request until there is the head of an answer: twice at most, and as often as the
        budget of retries allows."""
        self.retries.request()
        ask = partial(
            self._open().request,
            "GET" if body is None else "POST",
            self.url + route,
            data=body,
            headers=headers,
            allow_redirects=False,
        )
        try:
            response = await ask()
        except (aiohttp.ClientConnectionError, ConnectionError):
            if not self.retries.retry():
                raise
            return await ask()
        if response.status in _AGAIN and self.retries.retry():
            response.close()
            return await ask()
        return response

    def _headers(self, route: str, incoming: Mapping[str, str]) -> dict[str, str]:
        anthropic = route == _MESSAGES
        keys = ("authorization", "x-api-key") if anthropic else ("authorization",)
        passed_on = _TRACED if self._key else (*_TRACED, *_ACCOUNT, *keys)
        headers = {"anthropic-version": _VERSION} if anthropic else {}
        for name in (*passed_on, *(_DIALECT if anthropic else ())):
            if name in incoming:
                headers[name] = incoming[name]
        headers |= {"content-type": "application/json", "accept-encoding": "identity"}
        if self._key:
            key = (
                {"x-api-key": self._key} if anthropic else {"authorization": f"Bearer {self._key}"}
            )
            headers |= key
        return headers

    async def _refusal(self, response: aiohttp.ClientResponse) -> Refused:
        """The upstream's no, in our words: its status, and its code if it is one that we know."""
        headers = {}
        wait = response.headers.get("retry-after", "")
        if wait.isascii() and wait.isdigit() and len(wait) < 6:
            headers["retry-after"] = wait
        if not 400 <= response.status < 500:
            return Refused(
                502, "upstream_error", f"the upstream answered {response.status}", headers=headers
            )
        code = _code(await read_capped(response, _MOST_ERROR) or b"")
        message = f"the upstream refused the request: {response.status}"
        return Refused(
            response.status,
            code or "upstream_refused",
            f"{message}, {code}" if code else message,
            headers=headers,
        )

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            )
        return self._session


def _code(body: bytes) -> str:
    try:
        error = orjson.loads(body)["error"]
        codes = [error.get("code"), error.get("type")]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return ""
    return next((code for code in codes if isinstance(code, str) and code in _CODES), "")


async def collect(
    response: aiohttp.ClientResponse,
    reply: UpstreamReply,
    stream: bool,
    heard: Callable[[], None] = lambda: None,
) -> None:
    """Read a response to its end.

    Args:
        response: The response of the upstream.
        reply: Receives the body, or the events of a stream.
        stream: Whether a stream was asked for.
        heard: Called after every piece of a stream.

    Raises:
        MalformedReply: If the answer is cut, too long, or cannot be read.
    """
    refuse_compressed(response)
    if not (stream and is_stream(response)):
        body = await read_capped(response, MOST_BODY)
        if body is None:
            raise MalformedReply("an answer that is too long")
        reply.read(body)
        return
    events = EventReader()
    async for chunk in response.content.iter_any():
        for data in events.feed(chunk):
            reply.feed(data)
        heard()
    if not reply.whole:
        raise MalformedReply("a stream that was cut")


def refuse_compressed(response: aiohttp.ClientResponse) -> None:
    """Refuse what could unpack to a thousand times its size. It was not asked for."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise MalformedReply("a compressed answer")


def is_stream(response: aiohttp.ClientResponse) -> bool:
    """Whether an answer is a stream of events."""
    return response.content_type == "text/event-stream"
