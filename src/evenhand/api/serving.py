"""Servers: a local model, the viewer and the gateway. Each runs until it is cancelled."""

import asyncio
import contextlib
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from evenhand.errors import UserError
from evenhand.models.local_server import ServerRequest, start

if TYPE_CHECKING:
    from evenhand.gateway.looks import Figures

_TIME_TO_END = 60.0  # seconds for a gateway to finish what is under way


def _silent(address: str) -> None:
    del address


class NewKey(NamedTuple):
    """A key of a gateway: the key is for a client, its hash for the policy file."""

    key: str
    hash: str


async def serve_local(
    model: str | None = None,
    *,
    weights: str | Path | None = None,
    port: int = 8080,
    slots: int = 4,
    context: int = 4096,
    threads: int | None = None,
    ready: Callable[[str], None] = _silent,
) -> NoReturn:
    """Serve a model on this machine with llama.cpp, until this call is cancelled.

    Args:
        model: A model that `evenhand serve-local --list` shows. Defaults to smollm2.
        weights: A GGUF file: the weights of `model`, or any other.
        port: Port at 127.0.0.1.
        slots: Number of requests that are answered at the same time.
        context: Tokens of context per slot.
        threads: CPU threads. Defaults to all cores but one.
        ready: Receives the address of the server.

    Raises:
        UserError: If llama.cpp is not installed or cannot start.
    """
    request = ServerRequest(
        model=model,
        weights=None if weights is None else Path(weights),
        port=port,
        slots=slots,
        context=context,
        threads=threads,
    )
    server = await asyncio.to_thread(start, request)
    ready(server.address)
    await _until_cancelled()


async def view(
    run: str | Path,
    *,
    against: str | Path | None = None,
    port: int = 0,
    ready: Callable[[str], None],
) -> NoReturn:
    """Show the items of a run in a browser on this machine, until this call is cancelled.

    Args:
        run: A run folder, as path or URL.
        against: An earlier run of the same items.
        port: Port at 127.0.0.1. 0 chooses a free one.
        ready: Receives the address. Whoever has it can read the run.

    Raises:
        UserError: If the viewer is not installed, or the run cannot be read.
    """
    from evenhand.viewer.opening import opened  # noqa: PLC0415 - it needs the extra

    with await asyncio.to_thread(opened, run, against, port) as serving:
        ready(serving.link)
        await _until_cancelled()


async def gateway_serve(
    upstream: str,
    *,
    policy: str | Path | None = None,
    upstream_key_env: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8088,
    replicas: int = 1,
    quotas: str | None = None,
    evidence: str | Path | None = None,
    audit: str | Path | None = None,
    otel: bool = False,
    idle_seconds: int = 30,
    base_url: str | None = None,
    model: str | None = None,
    config: str | Path | None = None,
    ready: Callable[[str], None] = _silent,
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
        quotas: URL of a Redis-protocol store that replicas share.
        evidence: Folder of the run folders of the traffic.
        audit: PostgreSQL URL or a folder, for one row per exchange.
        otel: Send a span for each exchange to OTEL_EXPORTER_OTLP_ENDPOINT.
        idle_seconds: How long a connection may be open without a request.
        base_url: The endpoint of the agents. Defaults to that of the config, else the upstream.
        model: The model of the agents.
        config: A config file.
        ready: Receives the address when the settings are checked and the processes start.

    Raises:
        UserError: If the settings cannot be served, or a process ends by itself.
    """
    from evenhand.experiments.watch import Watch  # noqa: PLC0415
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
        quotas=quotas,
        evidence=_text(evidence),
        audit=_text(audit),
        otel=otel,
        idle_seconds=idle_seconds,
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


async def gateway_key() -> NewKey:
    """Make a key for a tenant of a gateway, and the hash that the policy file holds.

    Returns:
        The key and its hash.
    """
    keys = importlib.import_module("evenhand.gateway.keys")
    return NewKey(*keys.new_key())


async def gateway_top(
    url: str = "http://127.0.0.1:8088",
    *,
    key: str | None = None,
    every: float | None = None,
    looked: "Callable[[Figures | UserError], None] | None" = None,
) -> "Figures":
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

    last: Figures | None = None
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


async def _until_cancelled() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets this event")
