"""The routes of the gateway, and who may use them.

| route                                               | for                                     |
| --------------------------------------------------- | --------------------------------------- |
| POST /v1/chat/completions, /completions, /responses | tenants                                 |
| POST /v1/messages                                   | tenants, by x-api-key too               |
| GET /v1/models                                      | tenants                                 |
| POST /beta/litellm_basic_guardrail_api              | tenants: LiteLLM's proxy, by x-api-key  |
| GET /metrics                                        | operators                               |
| GET /health                                         | anybody: it says yes                    |
| GET /ready                                          | anybody: yes or no, and what is down    |

Every other address, and every one of these without a key, is 401 before it is anything else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial

import orjson
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from evenhand.gateway.admission import Admission, Permit, busy
from evenhand.gateway.books import Alarms
from evenhand.gateway.breaker import Caller
from evenhand.gateway.checking import Checker
from evenhand.gateway.exchanges import (
    ExchangeAnswerer,
    ExchangeState,
    answer_held,
    answer_observed,
    head,
)
from evenhand.gateway.guardrail import PATH as LITELLM_PATH
from evenhand.gateway.guardrail import Guardrail
from evenhand.gateway.keys import Keyring
from evenhand.gateway.metrics import CONTENT_TYPE, NOT_READY
from evenhand.gateway.policy import ANYBODY, CheckPolicy, Policy
from evenhand.gateway.sending import PLAIN, Client, ClientGone
from evenhand.gateway.upstream import Upstream
from evenhand.gateway.verdicts import Exchange
from evenhand.gateway.window import answer_in_windows
from evenhand.gateway.wire import MalformedReply, Refused, Wire, strict
from evenhand.gateway.wire.chat import Chat
from evenhand.gateway.wire.completions import Completions
from evenhand.gateway.wire.messages import Messages
from evenhand.gateway.wire.responses import Responses
from evenhand.models.http_client import read_capped

WIRES: tuple[Wire, ...] = (Chat(), Completions(), Responses(), Messages())
_MOST_REQUEST = 16 * 1024 * 1024  # our choice: pictures travel in requests
_MOST_VALUES = 250_000  # our choice: commas and brackets; pictures have few, prose has some
_MOST_MODELS = 4 * 1024 * 1024
_LONGEST_MODEL = 256  # our choice, in characters: paths of files too
_IN_THIS_THREAD = 64 * 1024  # our choice, in bytes: longer requests are read in another thread
_BODY_SECONDS = 60.0  # our choice: who sends a request more slowly takes a place from others
_ANSWERED = {"hold": answer_held, "window": answer_in_windows, "observe": answer_observed}
_HERE = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class GatewayParts:
    """What a gateway is made of."""

    policy: Policy
    upstream: Upstream
    admission: Admission
    checkers: Mapping[CheckPolicy, Checker]  # one for each check of the policy
    record: Callable[[Exchange], None]  # takes what nothing more goes out of
    metrics: Callable[[], bytes]
    written: Callable[[Exchange], Awaitable[None]] | None = None  # before an answer goes out
    alarms: Alarms = field(default_factory=Alarms)
    refused: Callable[[str], None] = lambda _: None  # counts errors by their code
    wires: tuple[Wire, ...] = WIRES


class Gateway:
    """The gateway of some parts; `Application` opens them and serves it."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._answering = ExchangeAnswerer(parts.upstream, parts.record, parts.written)
        tenants = {name: tenant.keys for name, tenant in parts.policy.tenants.items()}
        self._tenants = Keyring(tenants) if tenants else None
        operators = parts.policy.operators
        self._operators = Keyring({"operators": operators}) if operators else None
        self._wires = {f"/v1{wire.path}": wire for wire in parts.wires}
        self._guardrail = Guardrail(
            parts.policy, parts.checkers, parts.admission, self._answering, parts.refused
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        client = Client(receive, send)
        try:
            await self._routed(scope, client)
        except Refused as refused:
            self._parts.refused(refused.code)
            await client.refuse(refused, {})
        except ClientGone:
            pass
        except Exception:
            self._parts.refused("gateway_failed")
            await client.refuse(Refused(500, "gateway_failed", "the gateway failed"), {})
            raise

    async def _routed(self, scope: Scope, client: Client) -> None:
        method, path = scope["method"], scope["path"]
        headers = Headers(scope=scope)
        if (method, path) in (("GET", "/health"), ("GET", "/ready")):
            await self._well(path, client)
            return
        if self._tenants is None:
            _refuse_web_pages(headers)
        if (method, path) == ("GET", "/metrics"):
            self._refuse_strangers(headers)
            await client.start(200, CONTENT_TYPE, {})
            await client.end(self._parts.metrics())
        elif (method, path) == ("POST", LITELLM_PATH):
            tenant = self._tenant(f"Bearer {headers.get('x-api-key')}")
            body = partial(_in_time, client.receive)
            await self._guardrail.answer(tenant, headers, body, client)
        else:
            authorization = headers.get("authorization")
            if path == f"/v1{Messages.path}":
                client.names_errors = True
                authorization = authorization or f"Bearer {headers.get('x-api-key')}"
            tenant = self._tenant(authorization)
            if (method, path) == ("GET", "/v1/models"):
                await client.unless_gone(self._models(tenant, headers, client))
            elif method == "POST" and path in self._wires:
                await self._exchange(self._wires[path], tenant, headers, client)
            else:
                raise Refused(
                    404, "no_such_route", "unknown route; docs/gateway.md lists the routes"
                )

    # -- who asks --------------------------------------------------------------------------------

    def _tenant(self, authorization: str | None) -> str:
        if self._tenants is None:
            return ANYBODY
        tenant = self._tenants.tenant_of(authorization)
        if tenant is None:
            raise _no_key()
        return tenant

    def _refuse_strangers(self, headers: Headers) -> None:
        """Metrics speak of all tenants, so that a tenant's key does not open them."""
        if self._operators is None and self._tenants is None:
            return
        if self._operators is None or not self._operators.tenant_of(headers.get("authorization")):
            raise _no_key()

    def _forwarded(self, headers: Headers) -> dict[str, str]:
        """What goes on to the upstream of a client's headers. A key of this gateway does not."""
        forwarded = dict(headers)
        if self._tenants is not None:
            forwarded.pop("authorization", None)
            forwarded.pop("x-api-key", None)
        return forwarded

    # -- routes ----------------------------------------------------------------------------------

    async def _well(self, path: str, client: Client) -> None:
        if path == "/health":
            await client.start(200, PLAIN, {})
            await client.end(orjson.dumps({"ok": True}))
            return
        stopping = not self._parts.admission.ready
        alarms = self._parts.alarms
        well = not stopping and not alarms.required_down
        reasons = [f"{kind}_down" for kind in alarms.down] + (["stopping"] if stopping else [])
        await client.start(200 if well else 503, PLAIN, {})
        await client.end(orjson.dumps({"ok": well, "reasons": reasons}))

    async def _models(self, tenant: str, headers: Headers, client: Client) -> None:
        forwarded = self._forwarded(headers)
        async with (
            self._parts.admission.enter(tenant) as permit,
            self._parts.upstream.asked("/models", None, forwarded, Caller(tenant)) as response,
        ):
            permit.spend(0)
            body = _models(await read_capped(response, _MOST_MODELS))
            body = self._parts.upstream.without_key(body)
        await client.start(200, PLAIN, {})
        await client.end(body)

    async def _exchange(self, wire: Wire, tenant: str, headers: Headers, client: Client) -> None:
        check = self._parts.policy.check_for(tenant, wire.path)
        async with self._parts.admission.enter(tenant, tokens=check.tokens) as permit:
            spent: int | None = 0
            try:
                body = await _in_time(client.receive, permit)
                short = len(body) < _IN_THIS_THREAD
                request = wire.asked(body) if short else await asyncio.to_thread(wire.asked, body)
                detailed = headers.get("evenhand-detail") == "1"
                talk = ExchangeState(wire.path, request, tenant, self._forwarded(headers), detailed)
                try:
                    await self._answer(talk, wire, check, client)
                finally:
                    spent = talk.tokens
            finally:
                if spent is not None:  # else all that was reserved
                    permit.spend(spent)

    async def _answer(
        self, talk: ExchangeState, wire: Wire, check: CheckPolicy, client: Client
    ) -> None:
        answer = _ANSWERED[check.mode]
        checker = self._parts.checkers[check]
        try:
            await answer(self._answering, talk, wire, checker, client)
        except Refused as refused:
            self._parts.refused(refused.code)
            action = "not_run" if check.mode == "observe" else "blocked"
            await client.refuse(refused, head(talk, action))


Serve = Callable[[GatewayParts], None]


class Application:
    """The gateway as an ASGI application: its parts are opened when the server starts, replaced
    while it serves, and closed when those under way have been answered."""

    def __init__(self, opening: Callable[[Serve], AbstractAsyncContextManager[None]]) -> None:
        """
        Args:
            opening: Opens the parts, and hands them over when they can serve and at each change.
        """
        self._opening = opening(self._serve)
        self._parts: GatewayParts | None = None
        self._gateway: Gateway | None = None

    def _serve(self, parts: GatewayParts) -> None:
        """Answer new requests with these parts. Those under way keep the parts that they have."""
        gateway = Gateway(parts)
        self._parts, self._gateway = parts, gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await (self._gateway or not_open)(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        kind = "startup"
        try:
            async with self._opening:
                kind = "shutdown"
                await send({"type": "lifespan.startup.complete"})
                await receive()
                if self._parts is not None:
                    await self._parts.admission.drain(self._parts.policy.grace)
        except Exception as error:
            await send({"type": f"lifespan.{kind}.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})


async def not_open(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer while the endpoint of the agents cannot be asked, so that no check can run."""
    client, path = Client(receive, send), scope["path"]
    if path == "/health":
        await client.start(200, PLAIN, {})
        await client.end(orjson.dumps({"ok": True}))
    elif path == "/ready":
        await client.start(503, PLAIN, {})
        await client.end(orjson.dumps({"ok": False, "reasons": ["upstream_down"]}))
    elif path == "/metrics":
        await client.start(200, CONTENT_TYPE, {})
        await client.end(NOT_READY)
    else:
        await client.refuse(busy("upstream_down", "the upstream cannot be reached", 5.0), {})


def _refuse_web_pages(headers: Headers) -> None:
    """Without keys every page that a browser of this machine has open could ask: it names itself as
    the origin, or reaches us by a name of its own."""
    host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
    origin = headers.get("origin", "").rpartition("//")[2]
    origin_host = origin.rpartition(":")[0] or origin
    if host not in _HERE or (origin and origin_host not in _HERE):
        raise Refused(403, "not_from_here", "name tenants with keys to be asked from elsewhere")


def _no_key() -> Refused:
    return Refused(401, "no_key", "give a key of this gateway as Authorization: Bearer KEY")


async def _in_time(receive: Receive, permit: Permit) -> bytes:
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await _body(receive, permit)
    except TimeoutError:
        raise Refused(408, "too_slow", "the request did not come in time") from None


async def _body(receive: Receive, permit: Permit) -> bytes:
    """Read a request. Raises `Refused` where it, or all that are under way, take too much memory:
    of small values a few bytes each become an object of a hundred."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        permit.hold(len(piece))
        body += piece
        if len(body) > _MOST_REQUEST:
            raise Refused(413, "too_long", f"a request may have {_MOST_REQUEST} bytes")
        if not message.get("more_body", False):
            break
    if sum(map(body.count, (b",", b"{", b"["))) > _MOST_VALUES:
        raise Refused(413, "too_many_values", f"a request may have {_MOST_VALUES} values")
    return bytes(body)


def _models(body: bytes | None) -> bytes:
    """The list of models: their names and nothing else that an upstream may have put there."""
    try:
        rows = strict.a(list, strict.answer(body or b"").get("data"), "`data`")
    except MalformedReply:
        raise Refused(502, "upstream_garbled", "the upstream's models cannot be read") from None
    models = [
        {
            "id": row["id"],
            "object": "model",
            "created": strict.moment(row.get("created")),
            "owned_by": strict.token(row.get("owned_by")) or "",
        }
        for row in rows
        if isinstance(row, dict) and _is_model(row.get("id"))
    ]
    return orjson.dumps({"object": "list", "data": models})


def _is_model(name: object) -> bool:
    """Whether it may name a model. Some servers name files, so that a blank is allowed."""
    return isinstance(name, str) and 0 < len(name) <= _LONGEST_MODEL and name.isprintable()
