"""The Python functions of the gateway: serve, plan and watch one, make keys, check a LiteLLM."""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from evenhand.core.errors import UserError
from evenhand.findings.gateway_plan import GatewayPlan, GatewayTraffic
from evenhand.findings.gateway_plan import gateway_plan as plan_of
from evenhand.findings.plan import ItemPrice
from evenhand.gateway.envoy.bootstrap import EnvoySettings, bootstrap
from evenhand.gateway.keys import new_key

if TYPE_CHECKING:
    from evenhand.gateway.litellm_check import Passage
    from evenhand.gateway.top import GatewayFigures

_TIME_TO_END = 60.0  # seconds for a gateway to finish what is under way


class NewKey(NamedTuple):
    """A key of a gateway: the key is for a client, its hash for the policy file."""

    key: str
    hash: str


async def gateway_serve(
    upstream: str,
    *,
    policy: str | Path | None = None,
    upstream_key_env: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8088,
    replicas: int = 1,
    replica: str | None = None,
    quotas: str | None = None,
    evidence: str | Path | None = None,
    audit: str | Path | None = None,
    otel: bool = False,
    idle_seconds: int = 30,
    ext_proc: str | None = None,
    base_url: str | None = None,
    model: str | None = None,
    config: str | Path | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> NoReturn:
    """Serve an endpoint with every answer checked, until this call is cancelled.

    The gateway runs in processes of its own. They read keys from the environment.

    Args:
        upstream: The endpoint behind the gateway.
        policy: A TOML file that says what is checked, how, and for whom.
        upstream_key_env: The environment variable with the key of the upstream.
        host: Address to listen at.
        port: Port to listen at.
        replicas: Number of processes. More than one needs `quotas`.
        replica: Name of this gateway among several that share `evidence`. Each writes folders of
            its own, and commits what one that died has left.
        quotas: URL of a Redis-protocol store that replicas share.
        evidence: Folder of the run folders of the traffic.
        audit: PostgreSQL URL or a folder, for one row per exchange.
        otel: Send a span for each exchange to OTEL_EXPORTER_OTLP_ENDPOINT.
        idle_seconds: How long a connection may be open without a request.
        ext_proc: Address for an Envoy that asks over gRPC, such as 127.0.0.1:9001.
        base_url: The endpoint of the agents. Defaults to that of the config, else the upstream.
        model: The model of the agents.
        config: A config file.
        ready: Receives the address when the settings are checked and the processes start.

    Raises:
        UserError: If the settings cannot be served, or a process ends by itself.
    """
    from evenhand.experiments.request import Watch  # noqa: PLC0415
    from evenhand.gateway.opening import (  # noqa: PLC0415 - it needs the extra
        GatewayRequest,
        rehearse,
    )
    from evenhand.gateway.serving import to_json  # noqa: PLC0415

    request = GatewayRequest(
        upstream=upstream,
        upstream_key_env=upstream_key_env,
        policy=_text(policy),
        config=_text(config),
        base_url=base_url,
        model=model,
        host=host,
        port=port,
        replicas=replicas,
        replica=replica,
        quotas=quotas,
        evidence=_text(evidence),
        audit=_text(audit),
        otel=otel,
        idle_seconds=idle_seconds,
        ext_proc=ext_proc,
    )
    await rehearse(request, Watch())
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "evenhand.gateway.serving", stdin=asyncio.subprocess.PIPE
    )
    ready(f"http://{host}:{port}/v1")
    try:
        await process.communicate(to_json(request))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), _TIME_TO_END)
    raise UserError(f"the gateway ended with code {process.returncode}; its errors are above")


async def gateway_plan(
    answers_per_day: float,
    *,
    characters: int = 230,
    peak: float = 3.0,
    load: float = 0.6,
    screen: str = "offline",
    to_agents: float | None = None,
    price: ItemPrice | None = None,
) -> GatewayPlan:
    """Plan the cores, replicas, agent calls and price of a gateway, from measured figures.

    Args:
        answers_per_day: Number of answers.
        characters: Characters of an answer.
        peak: The busiest minute, as a multiple of the mean.
        load: The share of a core that may be in use then.
        screen: The screen: "offline" or "wordlist".
        to_agents: The share of answers that go to the agents. Defaults to the share of harmless
            held-out paragraphs in the default band.
        price: Agent calls per answer that goes to the agents, tokens per call, and money per
            million tokens. Defaults to three calls of 500 tokens.

    Returns:
        The plan, each figure with its range.

    Raises:
        UserError: If a number makes no sense, or the screen was not measured.
    """
    traffic = GatewayTraffic(
        answers_per_day=answers_per_day,
        characters=characters,
        peak=peak,
        load=load,
        screen=screen,
        to_agents=to_agents,
    )
    return plan_of(traffic, price or ItemPrice(calls=3, tokens=500))


async def gateway_envoy_config(
    upstream: str,
    *,
    processor: str = "127.0.0.1:9001",
    listen: str = "127.0.0.1:10000",
    admin: str = "127.0.0.1:9901",
    certificate: str | Path | None = None,
    private_key: str | Path | None = None,
    upstream_key_env: str | None = None,
    requests_a_second: int = 1000,
    seconds: float = 330.0,
    open_on_failure: bool = False,
) -> str:
    """Write a bootstrap for an Envoy that asks a gateway.

    Args:
        upstream: The endpoint behind Envoy.
        processor: Where the gateway listens with `ext_proc`.
        listen: Where Envoy listens.
        admin: Where Envoy's own figures are.
        certificate: PEM file of the server's certificate.
        private_key: PEM file of its key.
        upstream_key_env: The environment variable of Envoy with the key of the upstream.
        requests_a_second: Rate limit of one Envoy.
        seconds: Time for a request: above `upstream_seconds` and `deadline` of the policy.
        open_on_failure: Let answers through unchecked if no gateway answers.

    Returns:
        The bootstrap, as YAML.

    Raises:
        UserError: If an address is not one.
    """
    return bootstrap(
        EnvoySettings(
            upstream=upstream,
            processor=processor,
            listen=listen,
            admin=admin,
            certificate=_text(certificate),
            private_key=_text(private_key),
            upstream_key_env=upstream_key_env,
            requests_a_second=requests_a_second,
            seconds=seconds,
            open_on_failure=open_on_failure,
        )
    )


async def gateway_key() -> NewKey:
    """Make a key for a tenant of a gateway, and the hash that the policy file holds.

    Returns:
        The key and its hash.
    """
    return NewKey(*new_key())


async def gateway_top(
    url: str = "http://127.0.0.1:8088",
    *,
    key: str | None = None,
    every: float | None = None,
    looked: "Callable[[GatewayFigures | UserError], None] | None" = None,
) -> "GatewayFigures":
    """Look at a running gateway: what it does, what it adds, what it lost.

    Args:
        url: The address of the gateway.
        key: The key of an operator.
        every: Seconds between two looks. With it the call goes on until it is cancelled.
        looked: Receives the figures of each look, or why a look failed.

    Returns:
        The figures of the last look.

    Raises:
        UserError: If the gateway does not answer the first look.
    """
    from evenhand.gateway.top import figures_of, gateway_address  # noqa: PLC0415

    last: GatewayFigures | None = None
    async for figures in figures_of(gateway_address(url), key, every):
        if looked is not None:
            looked(figures)
        if not isinstance(figures, UserError):
            last = figures
    if last is None:
        raise UserError(f"{url} gave no figures")
    return last


def _text(value: str | Path | None) -> str | None:
    return None if value is None else str(value)


async def doctor_litellm(
    url: str, *, model: str | None = None, key: str | None = None
) -> "tuple[Passage, ...]":
    """Check whether a LiteLLM proxy with our guardrail lets unrepaired words through.

    Args:
        url: The address of the proxy.
        model: A model of the proxy. Defaults to the first that it lists.
        key: A key of the proxy.

    Returns:
        What a client read on each of two routes, plain and streamed.

    Raises:
        UserError: If the proxy does not answer or lists no model.
    """
    from evenhand.gateway.litellm_check import passages_of  # noqa: PLC0415

    return tuple(await passages_of(url, model=model, key=key))
