"""`evenhand gateway`: answers of an endpoint, repaired on their way out."""

import asyncio
import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.execution import Terminal
from evenhand.cli.options import BaseUrl, ConfigFile, Json, ModelName, PriceFile, group_for
from evenhand.cli.screen import err, out, print_json
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration

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
        str, typer.Option(help="The endpoint behind it; its address usually ends in /v1.")
    ],
    policy: Annotated[
        Path | None, typer.Option(help="What is checked, how, and for whom: docs/gateway.md.")
    ] = None,
    upstream_key_env: Annotated[
        str | None, typer.Option(help="The environment variable with the key of the upstream.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where to listen.")] = 8088,
    replicas: Annotated[int, typer.Option(min=1, help="Processes. More need --quotas.")] = 1,
    quotas: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar=_QUOTAS,
            help="A Redis-protocol store that replicas share. One with a password goes into the "
            "variable.",
        ),
    ] = None,
    evidence: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where run folders of the traffic go.")
    ] = None,
    audit: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar=_AUDIT,
            help="Where a row for each exchange goes: postgresql://… or a folder for Parquet. One "
            "with a password goes into the variable.",
        ),
    ] = None,
    otel: Annotated[
        bool,
        typer.Option(
            "--otel",
            help="Send a span for each exchange to where OTEL_EXPORTER_OTLP_ENDPOINT says.",
        ),
    ] = False,
    idle_seconds: Annotated[
        int,
        typer.Option(min=1, help="How long a connection may be open without a request."),
    ] = 30,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
) -> None:
    """Serve an endpoint with every answer checked, and repaired where it has to be.

    The word "serve" may be left out. Without a policy file every answer is held until its verdict,
    and one that cannot be checked is not sent. The agents ask the model of the config file, or the
    upstream itself. It runs until Ctrl-C.

    Example: evenhand gateway serve --upstream http://127.0.0.1:8080/v1 --policy policy.toml
    """
    opening = _part("gateway.opening")
    for option, address, variable in (("--quotas", quotas, _QUOTAS), ("--audit", audit, _AUDIT)):
        said_here = address and configuration.secret(variable) != address
        if said_here and opening.password_in(address):
            raise UserError(
                f"{option} holds a password, which everybody on this machine can read in the list "
                f"of processes: put the whole address into the variable {variable}"
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
        quotas=quotas,
        evidence=evidence,
        audit=audit,
        otel=otel,
        idle_seconds=idle_seconds,
    )
    watch = Terminal(request.settings(), request.asked_upstream())
    asyncio.run(opening.rehearse(request, watch))
    serving = _part("gateway.serving")
    err.print(f"the gateway of {upstream} is at http://{host}:{port}/v1, Ctrl-C ends it")
    serving.serve(request)


@gateway.command()
def key(json: Json = False) -> None:
    """Make a key for a tenant, and the hash of it that the policy file holds.

    Example: evenhand gateway key
    """
    secret, hashed = importlib.import_module("evenhand.gateway.keys").new_key()
    if json:
        print_json({"key": secret, "hash": hashed})
        return
    out.print(f"give this to the tenant; it is shown once:\n{secret}", highlight=False)
    out.print(f'\nand this goes into the policy file:\nkeys = ["{hashed}"]', highlight=False)


@gateway.command()
def top(
    url: Annotated[str, typer.Argument(metavar="URL", help="The gateway.")] = _HERE,
    key_env: Annotated[
        str | None, typer.Option(help="The environment variable with the key of an operator.")
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Show the last repairs of these run folders, word by word."
        ),
    ] = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    prices: PriceFile = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Watch a running gateway: what it does, what it adds, what it lost.

    Rates and shares are of the last minute; the first look says what there was since the start.
    Each process of a gateway counts for itself: with --replicas every look tries to meet them all,
    and says how many it met. Behind a load balancer a look meets one gateway of several, so watch
    each at its own address. Ctrl-C ends it.

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
            prices=settings.prices.prices() if settings.prices else None,
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
