"""Serve a model on this machine with llama.cpp, in this process."""

import importlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.core.errors import UserError
from evenhand.models import local_models


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    """Which model is served, where, and with how much of this machine."""

    model: str | None = None  # a model of the list
    weights: Path | None = None
    port: int = 8080
    slots: int = 4
    context: int = 4096  # tokens per slot
    threads: int | None = None  # None: all cores but one


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A server that runs as long as this object is kept."""

    name: str
    address: str
    engine: Any


def start(request: ServerRequest, note: Callable[[str], None] = lambda _: None) -> LocalServer:
    """Load a model and serve it at 127.0.0.1.

    Args:
        request: The model, the port and the sizes.
        note: Receives a sentence about what is being done.

    Returns:
        The server, with the name that the model is served by.

    Raises:
        UserError: If llama.cpp is not installed or cannot start, or the port is taken.
    """
    engine = _engine()
    _require_free(request.port)
    name, file = _chosen(request, note)
    note(f"loading {file.name} …")
    parameters = _parameters(engine, request, file, name)
    try:
        server = engine.Server(parameters)
    except RuntimeError as error:
        raise UserError(
            f"llama.cpp could not start: {error}. Is port {request.port} free (--port), and is "
            f"{file.name} a GGUF model?"
        ) from None
    return LocalServer(name=name, address=f"{server.listening_address}/v1", engine=server)


def _chosen(request: ServerRequest, note: Callable[[str], None]) -> tuple[str, Path]:
    """Give the name to serve under, and the file. A file alone is served by its own name; if that
    is one of the list, the file has to be the listed one."""
    model, weights = request.model, request.weights
    if model is None and weights is not None:
        if not local_models.is_listed(weights.stem):
            return weights.stem, local_models.existing(weights)
        model = weights.stem
    entry = local_models.named(model or local_models.DEFAULT)
    if model is not None:
        note(f"{entry.title}, {entry.licence}: {entry.good_for}")
        note(f"{entry.bytes / 1e6:,.0f} MB, looked for and checked …")
    return entry.name, local_models.weights_of(entry, weights)


def _engine() -> Any:
    try:
        return importlib.import_module("xllamacpp")
    except ImportError:
        raise UserError(
            "llama.cpp is not installed. Install it: pip install 'evenhand[local]'"
        ) from None


def _parameters(engine: Any, request: ServerRequest, weights: Path, name: str) -> Any:
    parameters = engine.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.ui = False
    parameters.verbosity = 0
    parameters.port = request.port
    parameters.n_parallel = request.slots
    parameters.n_ctx = request.slots * request.context
    parameters.cpuparams.n_threads = request.threads or max(1, (os.cpu_count() or 2) - 1)
    return parameters


def _require_free(port: int) -> None:
    """Refuse a port in use: llama.cpp would share it, and calls would go to either server."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise UserError(f"Another program uses port {port}. Stop it, or choose another --port.")
