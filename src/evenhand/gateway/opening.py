"""Open the parts of a gateway from its settings, in each of its processes, and check them first."""

import asyncio
import hashlib
import importlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.certificates import certificates_of, certificates_of_scorer
from evenhand.experiments.config import Config, open_cast, scorer_by_name
from evenhand.experiments.request import Watch
from evenhand.experiments.running import look_at_judges
from evenhand.experiments.screens import alarm_at
from evenhand.findings.screen_file import read_screen
from evenhand.gateway.admission import Admission
from evenhand.gateway.app import Application, GatewayParts
from evenhand.gateway.audit import AuditStore, AuditWriter, ParquetAudit, PostgresAudit
from evenhand.gateway.books import ExchangeRecorder
from evenhand.gateway.checking import Checker
from evenhand.gateway.evidence import SHORTEST_KEY, EvidenceWriter
from evenhand.gateway.keys import Keyring
from evenhand.gateway.policy import (
    ANYBODY,
    LITELLM,
    LITELLM_ALONE,
    ROUTES,
    CheckPolicy,
    Policy,
    read_policy,
)
from evenhand.gateway.quotas import LocalQuotas, Quotas, SharedQuotas
from evenhand.gateway.screening import FairQueue
from evenhand.gateway.traffic import TrafficRecording, check_folder
from evenhand.gateway.upstream import Upstream
from evenhand.methods import Method
from evenhand.methods.build import FROM_AN_ANSWER, build_method
from evenhand.models.keys import Redactor
from evenhand.runs.store.folder import open_folder
from evenhand.scorers import TOXICITY, Scorer

if TYPE_CHECKING:
    from evenhand.gateway.telemetry import RouteEvaluator, Telemetry

_TRY_SECONDS = 10.0  # our choice: a store that says nothing for so long is not there
HASHED_WITH = "EVENHAND_GATEWAY_HASH"  # the variable with the key that texts are hashed with


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRequest:
    """The settings of a gateway, as each of its processes gets them: names of files and variables,
    no key."""

    upstream: str
    upstream_key_env: str | None = None
    policy: str | None = None
    config: str | None = None
    base_url: str | None = None
    model: str | None = None
    host: str = "127.0.0.1"
    port: int = 8088
    replicas: int = 1
    quotas: str | None = None
    evidence: str | None = None
    audit: str | None = None
    otel: bool = False
    idle_seconds: int = 30

    def settings(self) -> Config:
        """The config file, whose default model is the upstream where none is named."""
        file = Path(self.config) if self.config else None
        loaded = configuration.load(file, self.base_url, self.model)
        default = loaded.default_model()
        if self.base_url or default.library or "base_url" in default.model_fields_set:
            return loaded
        here = configuration.load(file, self.upstream, self.model)
        if self.upstream_key_env is None:
            return here
        default = here.default_model().model_copy(update={"api_key_env": self.upstream_key_env})
        return here.model_copy(update={"models": {**here.models, "default": default}})

    def asked_upstream(self) -> str | None:
        """The upstream, if the agents ask it because no other model is named."""
        asks_it = self.settings().default_model().base_url == self.upstream != self.base_url
        return self.upstream if asks_it else None

    def read(self) -> Policy:
        """The policy, read and checked, with the checksums of its screens."""
        policy = read_policy(Path(self.policy) if self.policy else None)
        settings = self.settings()
        names = sorted({check.screen for check in policy.checks()})
        screens = {name: _checksum(name, settings) for name in names}
        return policy.model_copy(update={"screens": screens})


def _checksum(screen: str, settings: Config) -> str:
    """That of a screen file, or a scorer's name, which holds that of its weights."""
    if not screen.endswith(".json"):
        return scorer_by_name(settings, screen).name
    try:
        return hashlib.sha256(Path(screen).read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"the screen {screen} cannot be read: {error}") from None


def method_of(check: CheckPolicy) -> Method:
    """The method of a check. It must be one that takes an answer that is there."""
    method = build_method(check.method, check.set)
    if method.name not in FROM_AN_ANSWER:
        raise UserError(
            f"the method {check.method!r} does not begin from the answer that is there, so that it "
            f"repairs none; these do: {', '.join(FROM_AN_ANSWER)}"
        )
    return method


def screen_of(check: CheckPolicy, settings: Config) -> tuple[Scorer, CheckPolicy]:
    """The scorer of a check, and the check with the band that is in force: that of the screen file,
    where it names one. Where a file calls no text clean, the band begins at 0."""
    if not check.screen.endswith(".json"):
        return scorer_by_name(settings, check.screen), check
    file = read_screen(Path(check.screen))
    if file.scorer.attribute != TOXICITY:
        raise UserError(
            f"{check.screen} goes by {file.scorer.attribute!r}, and a gateway by {TOXICITY!r}: "
            f"calibrate one with --attribute {TOXICITY}"
        )
    if alarm := alarm_at(Path(check.screen), file):
        raise UserError(
            f"{check.screen} drifted at {alarm.place}, and its promise no longer holds: calibrate "
            "again with evenhand scorers screen calibrate"
        )
    scorer = scorer_by_name(settings, file.scorer.said)
    file.require(scorer.name, scorer.describe(), check.screen)
    low, high = file.low or 0.0, 1.0 if file.high is None else file.high
    return scorer, check.model_copy(update={"band": (low, high)})


@asynccontextmanager
async def opened(request: GatewayRequest) -> AsyncIterator[GatewayParts]:
    """Open all parts of a gateway; they are closed in the other request."""
    policy, settings = request.read(), request.settings()
    key = configuration.secret(request.upstream_key_env)
    async with AsyncExitStack() as stack:
        upstream = Upstream(
            request.upstream,
            key=key,
            seconds=policy.upstream_seconds,
            slow_after=policy.upstream_slow,
        )
        stack.push_async_callback(upstream.close)
        watch = Watch() if policy.require_certified_judges else None
        checkers = await _checkers(policy, settings, stack, watch)
        quotas: Quotas = SharedQuotas(request.quotas) if request.quotas else LocalQuotas()
        stack.push_async_callback(quotas.close)
        admission = Admission(quotas, policy.allowances(), most=policy.at_once)
        books = await _books(request, policy, checkers, stack, Redactor(key))
        if isinstance(quotas, SharedQuotas):
            books.share(quotas)
        await stack.enter_async_context(books.alarms.looking())
        yield GatewayParts(
            policy=policy,
            upstream=upstream,
            admission=admission,
            checkers=checkers,
            record=books.record,
            written=books.written,
            metrics=lambda: books.text(upstream.breakers, admission),
            alarms=books.alarms,
            refused=books.refused,
        )


async def _books(
    request: GatewayRequest,
    policy: Policy,
    checkers: Mapping[CheckPolicy, Checker],
    stack: AsyncExitStack,
    redact: Redactor,
) -> ExchangeRecorder:
    """Open what keeps the record of every exchange."""
    tenants = tuple(policy.tenants) or (ANYBODY,)
    books = ExchangeRecorder(policy, tenants, request.replicas)
    secret = (configuration.secret(HASHED_WITH) or "").encode()
    replica = str(os.getpid()) if request.replicas > 1 else ""
    if request.evidence:
        kept_by_tenant = {}
        for name in tenants:
            check = policy.check_for(name, "")
            kept_by_tenant[name] = TrafficRecording(
                plan=checkers[check].record(), content=check.content, policy=policy.sha256()
            )
        evidence = EvidenceWriter(
            request.evidence,
            kept_by_tenant,
            key=secret,
            replica=replica,
            redact=redact,
            require_evidence=policy.require_evidence,
        )
        await evidence.start()
        stack.push_async_callback(evidence.close)
        books.keep(evidence)
    if request.audit:
        audit = AuditWriter(_audit_store(request.audit))
        await audit.start()
        stack.push_async_callback(audit.close)
        books.audit(audit, secret)
    if request.otel:
        spans = _otel()
        telemetry: Telemetry = spans.Telemetry(
            spans.otlp(), evaluators(policy, checkers), policy=policy.sha256()
        )
        stack.push_async_callback(telemetry.close)
        books.trace(telemetry)
    return books


def evaluators(
    policy: Policy, checkers: Mapping[CheckPolicy, Checker]
) -> "dict[tuple[str, str], RouteEvaluator]":
    """Who judges the answers to each tenant on each route."""
    by_route = {}
    for tenant, route in product(tuple(policy.tenants) or (ANYBODY,), (*ROUTES, LITELLM_ALONE)):
        check = policy.check_for(tenant, LITELLM if route == LITELLM_ALONE else route)
        by_route[tenant, route] = _otel().RouteEvaluator.of(checkers[check], policy)
    return by_route


def _otel() -> Any:
    try:
        return importlib.import_module("evenhand.gateway.telemetry")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise UserError("--otel needs OpenTelemetry: pip install 'evenhand[otel]'") from None


def _audit_store(address: str) -> AuditStore:
    postgres = address.startswith(("postgres://", "postgresql://"))
    return PostgresAudit(address) if postgres else ParquetAudit(address)


async def _checkers(
    policy: Policy, settings: Config, stack: AsyncExitStack, watch: Watch | None
) -> dict[CheckPolicy, Checker]:
    """Open a checker for each check. With a watch, one whose judges are not certified is refused.

    A screen that asks a language model lets texts through by its word, so it counts as a judge."""
    folder = settings.certificates
    checkers, shares = {}, FairQueue()
    for check in dict.fromkeys(policy.checks()):
        method = method_of(check)
        cast = await open_cast(settings, method.agents())
        stack.push_async_callback(cast.close)
        screen, decides = screen_of(check, settings)
        stack.push_async_callback(screen.close)
        if watch is not None:
            judges = certificates_of(method, cast, folder)
            judges += certificates_of_scorer("screen", screen, folder)
            look_at_judges(judges, watch, required=True)
        checkers[check] = Checker(decides, screen, method, cast, shares)
    return checkers


def application(request: GatewayRequest) -> Application:
    """What the server calls in each of its processes."""
    return Application(opened(request))


async def rehearse(request: GatewayRequest, watch: Watch) -> None:
    """Refuse what cannot be served before any process starts.

    Args:
        request: The settings of the gateway.
        watch: Receives the state of the judges' certificates, where the policy requires them.

    Raises:
        UserError: If a part cannot be opened, or the gateway would be open to anyone.
    """
    policy, settings = request.read(), request.settings()
    _refuse_what_is_not_there(request, policy)
    if request.otel:
        _otel().otlp().shutdown()
    Upstream(request.upstream)
    if policy.tenants:
        Keyring({name: tenant.keys for name, tenant in policy.tenants.items()})
    if policy.operators:
        Keyring({"operators": policy.operators})
    for check in policy.checks():
        method_of(check)
        screen_of(check, settings)
    await _try_stores(request)
    if policy.require_certified_judges:
        async with AsyncExitStack() as stack:
            await _checkers(policy, settings, stack, watch)
    _refuse_open_door(request, policy)


def _refuse_open_door(request: GatewayRequest, policy: Policy) -> None:
    if not policy.tenants and not _only_here(request.host):
        raise UserError(
            f"anybody who reaches {request.host} could use the upstream: name tenants in the "
            "policy, with a key each (`evenhand gateway key`), or listen at 127.0.0.1"
        )
    if request.replicas > 1 and request.quotas is None:
        raise UserError(
            f"{request.replicas} replicas would each count for themselves: name a store that they "
            "share, such as --quotas redis://127.0.0.1:6379/0"
        )


def _only_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


async def _try_stores(request: GatewayRequest) -> None:
    """Ask each store once, so that a wrong address or password is known before any request."""
    if request.quotas:
        quotas = SharedQuotas(request.quotas, patience=_TRY_SECONDS)
        await _tried("--quotas", request.quotas, quotas.ping, quotas.close)
    if request.audit:
        store = _audit_store(request.audit)
        await _tried("--audit", request.audit, store.check, store.close)
    if request.evidence:
        folder = open_folder(request.evidence)
        await _tried(
            "--evidence", request.evidence, partial(asyncio.to_thread, check_folder, folder)
        )


async def _tried(
    option: str,
    address: str,
    ask: Callable[[], Awaitable[None]],
    close: Callable[[], Awaitable[None]] | None = None,
) -> None:
    problem = ""
    try:
        async with asyncio.timeout(_TRY_SECONDS):
            await ask()
    except TimeoutError:
        problem = f"no answer within {_TRY_SECONDS:g} s"
    except Exception as error:
        problem = str(error).strip().partition("\n")[0] or type(error).__name__
    finally:
        if close is not None:
            await close()
    if problem:
        password = password_in(address)
        message = problem.replace(password, "[redacted]") if password else problem
        raise UserError(f"{option}: this store cannot be used: {message}")


def password_in(address: str) -> str:
    """The password that an address holds; empty if it holds none."""
    try:
        parts = urlsplit(address)
        passwords = parse_qs(parts.query).get("password", [""])
        return parts.password or passwords[0]
    except ValueError:
        return ""


def _refuse_what_is_not_there(request: GatewayRequest, policy: Policy) -> None:
    if policy.require_evidence and not request.evidence:
        raise UserError("the policy has require_evidence: say where to, with --evidence FOLDER")
    variable = request.upstream_key_env
    if variable and not configuration.secret(variable):
        raise UserError(f"--upstream-key-env {variable}: this variable is not set, or is empty")
    hashed = request.evidence and any(check.content == "hashed" for check in policy.checks())
    if hashed and len(configuration.secret(HASHED_WITH) or "") < SHORTEST_KEY:
        raise UserError(
            f'content = "hashed" needs a key of {SHORTEST_KEY} characters or more in {HASHED_WITH}'
        )
