"""Open the parts of a gateway from its settings, in each of its processes, and check them first."""

import asyncio
import hashlib
import importlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from starlette.types import ASGIApp

from evenhand.core.errors import ModelBusy, UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.certificates import certificates_of, certificates_of_scorer
from evenhand.experiments.config import Config, open_cast, scorer_by_name
from evenhand.experiments.request import Watch
from evenhand.experiments.running import look_at_judges
from evenhand.experiments.screens import alarm_at
from evenhand.findings.screen_file import read_screen
from evenhand.gateway.admission import Admission
from evenhand.gateway.app import Application, Gateway, GatewayParts, Serve, not_open
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
from evenhand.gateway.reloading import PolicyFiles
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

_LOG = logging.getLogger("evenhand.gateway")
_AGAIN_SECONDS = 1.0  # our choice: between two questions to an upstream that is not there
CLOSING = 30  # seconds for the parts to be closed, after the grace of the policy
# Settings of a policy that parts have which live as long as the process.
_FOR_LIFE = (
    "at_once", "require_certified_judges", "require_evidence", "upstream_seconds", "upstream_slow"
)  # fmt: skip
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
    replica: str | None = None
    quotas: str | None = None
    evidence: str | None = None
    audit: str | None = None
    otel: bool = False
    idle_seconds: int = 30
    ext_proc: str | None = None

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
async def opened(request: GatewayRequest, serve: Serve) -> AsyncIterator[None]:
    """Open all parts of a gateway, and those of its policy again when that changes.

    Without an upstream that says which model it has there is no team of agents. Then nothing is
    served yet, and the upstream is asked again until it answers.

    Args:
        request: The settings of the gateway.
        serve: Receives the parts when they can serve, and again after each change of the policy.

    Raises:
        UserError: If something cannot be served whatever the upstream says.
    """
    async with AsyncExitStack() as stack:
        gateway = _OpenGateway(request, serve, stack)
        with suppress(ModelBusy):
            await gateway.open()
        if request.ext_proc:
            processor = _envoy().served(gateway.behind_envoy, request.ext_proc)
            await stack.enter_async_context(processor)
        task = asyncio.create_task(gateway.follow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class _OpenGateway:
    """One gateway over all policies that it has in its life."""

    def __init__(self, request: GatewayRequest, serve: Serve, stack: AsyncExitStack) -> None:
        self._request = request
        self._serve = serve
        self._stack = stack
        self._parts: GatewayParts | None = None
        self._checks = AsyncExitStack()  # what closes the screens and agents in use
        self._files = PolicyFiles(self._files_in_force)
        self._behind_envoy: ASGIApp = not_open

    async def open(self) -> None:
        """Open all parts and serve. Raises `ModelBusy` if the agents' endpoint is not there."""
        self._files.reading()
        policy, settings = self._request.read(), self._request.settings()
        async with AsyncExitStack() as stack:
            self._checks = await stack.enter_async_context(AsyncExitStack())
            checkers = await _checkers(policy, settings, self._checks)
            key = configuration.secret(self._request.upstream_key_env)
            upstream = Upstream(
                self._request.upstream,
                key=key,
                seconds=policy.upstream_seconds,
                slow_after=policy.upstream_slow,
            )
            stack.push_async_callback(upstream.close)
            shared = self._request.quotas
            quotas: Quotas = SharedQuotas(shared) if shared else LocalQuotas()
            stack.push_async_callback(quotas.close)
            admission = Admission(quotas, policy.allowances(), most=policy.at_once)
            self._books = await _books(self._request, policy, checkers, stack, Redactor(key))
            if isinstance(quotas, SharedQuotas):
                self._books.share(quotas)
            self._books.alarms.watch("policy_file", self._files, required=False)
            await stack.enter_async_context(self._books.alarms.looking())
            self._stack.push_async_exit(stack.pop_all())
        self._hand_over(
            GatewayParts(
                policy=policy,
                upstream=upstream,
                admission=admission,
                checkers=checkers,
                record=self._books.record,
                written=self._books.written,
                metrics=lambda: self._books.text(upstream.breakers, admission),
                alarms=self._books.alarms,
                refused=self._books.refused,
            )
        )

    async def follow(self) -> None:
        """Open what could not be opened at the start, then follow the files of the policy."""
        while self._parts is None:
            await asyncio.sleep(_AGAIN_SECONDS)
            try:
                await self.open()
            except Exception as error:  # whatever it is, it may pass
                _LOG.error("not ready: %s", error)
        async for _ in self._files.changes():
            try:
                await self._replace_policy(self._parts)
            except Exception as error:  # whatever it is, the old policy goes on
                self._files.refused(error)
                self._books.reloaded("refused")
            else:
                self._files.accepted()
                self._books.reloaded("applied")

    async def _replace_policy(self, old: GatewayParts) -> None:
        """Put another policy in force for the requests that come from now on."""
        policy = self._request.read()
        for name in _FOR_LIFE:
            if getattr(policy, name) != getattr(old.policy, name):
                raise UserError(f"{name} changes only when the gateway is started again")
        _refuse_what_is_not_there(self._request, policy)
        _refuse_open_door(self._request, policy)
        async with AsyncExitStack() as stack:
            checks = await stack.enter_async_context(AsyncExitStack())
            checkers = await _checkers(policy, self._request.settings(), checks)
            rules = _kept(policy, checkers) if self._request.evidence else {}
            books = self._books.under(policy, rules)
            parts = replace(
                old, policy=policy, checkers=checkers, record=books.record, written=books.written
            )
            self._hand_over(parts)
            self._stack.push_async_exit(stack.pop_all())
        judging = evaluators(policy, checkers) if self._request.otel else None
        books.in_force(tuple(policy.tenants) or (ANYBODY,), judging)
        old.admission.allow(policy.allowances())
        # Those under way have the old screens and agents for as long as they may take.
        loop, used = asyncio.get_running_loop(), self._checks
        loop.call_later(old.policy.grace + CLOSING, lambda: loop.create_task(used.aclose()))
        self._checks = checks

    def behind_envoy(self) -> ASGIApp:
        """The gateway whose upstream is Envoy."""
        return self._behind_envoy

    def _hand_over(self, parts: GatewayParts) -> None:
        self._serve(parts)
        self._parts = parts
        if self._request.ext_proc:
            upstream = _envoy().EnvoyUpstream(self._request.upstream)
            self._behind_envoy = Gateway(replace(parts, upstream=upstream))

    def _files_in_force(self) -> list[Path]:
        if self._request.policy is None:
            return []
        checks = () if self._parts is None else self._parts.policy.checks()
        screens = {check.screen for check in checks}
        files = [self._request.policy, *(name for name in screens if name.endswith(".json"))]
        return [Path(name) for name in files]


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
    processes = [str(os.getpid())] if request.replicas > 1 else []
    if request.evidence:
        evidence = EvidenceWriter(
            request.evidence,
            _kept(policy, checkers),
            key=secret,
            replica="-".join([*filter(None, [request.replica]), *processes]),
            redact=redact,
            require_evidence=policy.require_evidence,
            adopted=books.adopted,
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


def _kept(policy: Policy, checkers: Mapping[CheckPolicy, Checker]) -> dict[str, TrafficRecording]:
    """What is kept of the traffic of each tenant."""
    rules = {}
    for name in tuple(policy.tenants) or (ANYBODY,):
        check = policy.check_for(name, "")
        rules[name] = TrafficRecording(
            plan=checkers[check].record(), content=check.content, policy=policy.sha256()
        )
    return rules


def evaluators(
    policy: Policy, checkers: Mapping[CheckPolicy, Checker]
) -> "dict[tuple[str, str], RouteEvaluator]":
    """Who judges the answers to each tenant on each route."""
    by_route = {}
    for tenant, route in product(tuple(policy.tenants) or (ANYBODY,), (*ROUTES, LITELLM_ALONE)):
        check = policy.check_for(tenant, LITELLM if route == LITELLM_ALONE else route)
        by_route[tenant, route] = _otel().RouteEvaluator.of(checkers[check], policy)
    return by_route


def _envoy() -> Any:
    try:
        return importlib.import_module("evenhand.gateway.envoy.processor")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("grpc", "google"):
            raise
        raise UserError("--ext-proc needs gRPC: pip install 'evenhand[envoy]'") from None


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
    policy: Policy, settings: Config, stack: AsyncExitStack, watch: Watch | None = None
) -> dict[CheckPolicy, Checker]:
    """Open a checker for each check. Judges that the policy requires certified are looked at.

    A screen that asks a language model lets texts through by its word, so it counts as a judge."""
    folder = settings.certificates
    checkers, shares = {}, FairQueue()
    for check in dict.fromkeys(policy.checks()):
        method = method_of(check)
        cast = await open_cast(settings, method.agents())
        stack.push_async_callback(cast.close)
        screen, decides = screen_of(check, settings)
        stack.push_async_callback(screen.close)
        if policy.require_certified_judges:
            judges = certificates_of(method, cast, folder)
            judges += certificates_of_scorer("screen", screen, folder)
            look_at_judges(judges, watch or Watch(), required=True)
        checkers[check] = Checker(decides, screen, method, cast, shares)
    return checkers


def application(request: GatewayRequest) -> Application:
    """What the server calls in each of its processes."""
    return Application(partial(opened, request))


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
    if request.ext_proc:
        _envoy()
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
            try:
                await _checkers(policy, settings, stack, watch)
            except ModelBusy as error:  # each process looks again before it serves
                watch.note(f"not ready until the judges can be asked: {error}")
    _refuse_open_door(request, policy)


def _refuse_open_door(request: GatewayRequest, policy: Policy) -> None:
    hosts = [request.host, *([request.ext_proc.rpartition(":")[0]] if request.ext_proc else [])]
    open_to = [host for host in hosts if not _only_here(host.strip("[]"))]
    if not policy.tenants and open_to:
        raise UserError(
            f"anybody who reaches {open_to[0]} could use the upstream: name tenants in the "
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
