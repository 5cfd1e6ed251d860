"""Servers: a local model and the viewer. Each runs until it is cancelled."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from evenhand.models.local_server import ServerRequest, start


def _silent(address: str) -> None:
    del address


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
    from evenhand.views.viewer import opened  # noqa: PLC0415 - it needs the extra

    with await asyncio.to_thread(opened, run, against, port) as serving:
        ready(serving.link)
        await _until_cancelled()


async def _until_cancelled() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets this event")
