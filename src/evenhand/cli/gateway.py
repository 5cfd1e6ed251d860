"""`evenhand gateway`: a proxy that repairs the responses of an endpoint."""

import asyncio
import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.execution import Terminal
from evenhand.cli.options import BaseUrl, ConfigFile, Json, ModelName, PriceFile, group_for
from evenhand.cli.screen import err, out, print_finding, print_json
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.findings.plan import ItemPrice
from evenhand.gateway.functions import gateway_envoy_config, gateway_plan

_HERE = "http://127.0.0.1:8088"
_QUOTAS, _AUDIT = "EVENHAND_GATEWAY_QUOTAS", "EVENHAND_GATEWAY_AUDIT"

gateway = typer.Typer(
    cls=group_for("serve"),
    help="Run a proxy that checks and repairs responses.",
    no_args_is_help=True,
)


@gateway.command()
def serve(
    upstream: Annotated[
        str,
        typer.Option(help="Forward requests to this endpoint. Its address usually ends in /v1."),
    ],
    policy: Annotated[
        Path | None,
        typer.Option(help="Read the checks and tenants from this policy file: docs/gateway.md."),
    ] = None,
    upstream_key_env: Annotated[
        str | None,
        typer.Option(help="Read the key of the upstream from this environment variable."),
    ] = None,
    host: Annotated[str, typer.Option(help="Listen on this host.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Listen on this port.")] = 8088,
    replicas: Annotated[
        int, typer.Option(min=1, help="Set the number of processes. More than one needs --quotas.")
    ] = 1,
    replica: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name this gateway among several that share --evidence, such as by its pod.",
        ),
    ] = None,
    quotas: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar=_QUOTAS,
            help="Share quotas between replicas in this Redis-protocol store. Set the variable "
            "instead if the address has a password.",
        ),
    ] = None,
    evidence: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Write run folders of the traffic into this folder."),
    ] = None,
    audit: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar=_AUDIT,
            help="Write a row per exchange to postgresql://… or a folder for Parquet. Set the "
            "variable instead if the address has a password.",
        ),
    ] = None,
    otel: Annotated[
        bool,
        typer.Option(
            "--otel",
            help="Send a span per exchange to OTEL_EXPORTER_OTLP_ENDPOINT.",
        ),
    ] = False,
    idle_seconds: Annotated[
        int,
        typer.Option(min=1, help="Close a connection after this many seconds without a request."),
    ] = 30,
    ext_proc: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Also answer an Envoy over gRPC at this address."),
    ] = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
) -> None:
    """Serve an endpoint with every answer checked, and repaired where it has to be.

    You can omit the word "serve". Without a policy file, the gateway blocks every answer until its
    verdict, and does not send an answer that it cannot check. The agents ask the model of the
    config file, or else the upstream. The gateway runs until Ctrl-C.

    Example: evenhand gateway serve --upstream http://127.0.0.1:8080/v1 --policy policy.toml
    """
    opening = _part("gateway.opening")
    for option, address, variable in (("--quotas", quotas, _QUOTAS), ("--audit", audit, _AUDIT)):
        said_here = address and configuration.secret(variable) != address
        if said_here and opening.password_in(address):
            raise UserError(
                f"{option} contains a password, which all users of this machine can read in the "
                f"list of processes. Put the whole address into the variable {variable}"
            )
    request = opening.GatewayRequest(
        upstream=upstream,
        upstream_key_env=upstream_key_env,
        policy=str(policy) if policy else None,
        config=str(config) if config else None,
        base_url=base_url,
        model=model,
        host=host,
        port=port,
        replicas=replicas,
        replica=replica,
        quotas=quotas,
        evidence=evidence,
        audit=audit,
        otel=otel,
        idle_seconds=idle_seconds,
        ext_proc=ext_proc,
    )
    watch = Terminal(request.settings(), request.asked_upstream())
    asyncio.run(opening.rehearse(request, watch))
    serving = _part("gateway.serving")
    err.print(f"the gateway of {upstream} is at http://{host}:{port}/v1, press Ctrl-C to stop")
    serving.serve(request)


@gateway.command()
def plan(
    answers_per_day: Annotated[float, typer.Option(help="Set the number of answers per day.")],
    characters: Annotated[int, typer.Option(help="Set the characters of an answer.")] = 230,
    peak: Annotated[
        float, typer.Option(help="Set the busiest minute, as a multiple of the mean.")
    ] = 3.0,
    load: Annotated[
        float, typer.Option(help="Set the share of a core that may be in use at the peak.")
    ] = 0.6,
    screen: Annotated[str, typer.Option(help="Set the screen: offline or wordlist.")] = "offline",
    to_agents: Annotated[
        float | None,
        typer.Option(
            help="Set the share of answers that go to the agents. Default: as measured on harmless "
            "held-out paragraphs."
        ),
    ] = None,
    calls: Annotated[
        float, typer.Option(help="Set the agent calls per answer that goes to the agents.")
    ] = 3,
    tokens: Annotated[float, typer.Option(help="Set the tokens per call, in and out.")] = 500,
    price: Annotated[
        float | None,
        typer.Option(min=0.0, help="Set the price per million tokens, in your currency."),
    ] = None,
    json: Json = False,
) -> None:
    """Plan the cores, replicas, agent calls and price of a gateway, from measured figures.

    Example: evenhand gateway plan --answers-per-day 1e9 --characters 230 --price 0.2
    """
    planned = asyncio.run(
        gateway_plan(
            answers_per_day,
            characters=characters,
            peak=peak,
            load=load,
            screen=screen,
            to_agents=to_agents,
            price=ItemPrice(calls=calls, tokens=tokens, per_million=price),
        )
    )
    print_finding(planned, json=json)


@gateway.command("envoy-config")
def envoy_config(
    upstream: Annotated[str, typer.Option(help="Forward requests to this endpoint.")],
    processor: Annotated[
        str, typer.Option(help="Ask the gateway at this --ext-proc address.")
    ] = "127.0.0.1:9001",
    listen: Annotated[str, typer.Option(help="Listen on this address.")] = "127.0.0.1:10000",
    admin: Annotated[
        str, typer.Option(help="Serve the figures of Envoy on this address.")
    ] = "127.0.0.1:9901",
    certificate: Annotated[
        Path | None, typer.Option(help="Serve TLS with this certificate (PEM).")
    ] = None,
    private_key: Annotated[
        Path | None, typer.Option(help="Use this key of the certificate (PEM).")
    ] = None,
    upstream_key_env: Annotated[
        str | None,
        typer.Option(help="Read the key of the upstream from this environment variable of Envoy."),
    ] = None,
    requests_a_second: Annotated[int, typer.Option(min=1, help="Set the rate limit.")] = 1000,
    seconds: Annotated[
        float,
        typer.Option(
            help="Set the time for a request, above upstream_seconds and deadline of the policy."
        ),
    ] = 330.0,
    open_on_failure: Annotated[
        bool,
        typer.Option(
            "--open-on-failure", help="Let answers through unchecked if no gateway answers."
        ),
    ] = False,
) -> None:
    """Write a bootstrap for an Envoy that asks the gateway about each request.

    Keys, TLS, rate limits, retries, outlier detection and access logs are Envoy's.

    Example: evenhand gateway envoy-config --upstream http://127.0.0.1:8080/v1
    """
    text = asyncio.run(
        gateway_envoy_config(
            upstream,
            processor=processor,
            listen=listen,
            admin=admin,
            certificate=certificate,
            private_key=private_key,
            upstream_key_env=upstream_key_env,
            requests_a_second=requests_a_second,
            seconds=seconds,
            open_on_failure=open_on_failure,
        )
    )
    print(text, end="")


@gateway.command()
def key(json: Json = False) -> None:
    """Make a key for a tenant, and the hash of it that the policy file holds.

    Example: evenhand gateway key
    """
    secret, hashed = importlib.import_module("evenhand.gateway.keys").new_key()
    if json:
        print_json({"key": secret, "hash": hashed})
        return
    out.print(f"send this key to the tenant; it appears only once:\n{secret}", highlight=False)
    out.print(f'\nadd this line to the policy file:\nkeys = ["{hashed}"]', highlight=False)


@gateway.command()
def top(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Watch the gateway at this address.")
    ] = _HERE,
    key_env: Annotated[
        str | None, typer.Option(help="Read the key of an operator from this environment variable.")
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Show the words of the last repairs in these run folders."
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(min=0.1, help="Set the seconds between two updates.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print the figures once and exit.")] = False,
    prices: PriceFile = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Watch a running gateway: what it does, what it adds, what it lost.

    Rates and shares cover the last minute; the first update covers the time since the start. Each
    process of a gateway counts separately. With --replicas, every update tries to reach all
    processes and shows how many it reached. Behind a load balancer, an update reaches only one of
    several gateways, so watch each at its own address. Press Ctrl-C to stop.

    Example: evenhand gateway top http://127.0.0.1:8088 --key-env OPERATOR_KEY
    """
    part = _part("cli.gateway_top")
    settings = configuration.load(config, None, None, prices=prices)
    part.watch(
        part.TopOptions(
            url=url,
            key_env=key_env,
            evidence=evidence,
            every=None if once else every,
            prices=settings.price_table,
            as_json=json,
        )
    )


def _part(name: str) -> Any:
    try:
        return importlib.import_module(f"evenhand.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("evenhand"):
            raise
        raise UserError("the gateway is not installed: pip install 'evenhand[gateway]'") from None
