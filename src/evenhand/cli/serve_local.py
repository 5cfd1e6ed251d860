"""`evenhand serve-local`: a real model on this machine, for the first hour and for tests."""

import importlib
import os
import socket
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from evenhand.cli.screen import err, out, print_json
from evenhand.cli.waiting import wait_for_signal
from evenhand.errors import UserError
from evenhand.models import local_models


def serve_local(
    model: Annotated[
        str | None, typer.Option("--model", help="A model of the list. Default: smollm2.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            "--gguf",
            help="A GGUF file: the weights of --model (checked), or any other, by its own name.",
        ),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the models, and what each is good for.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Where to listen, on 127.0.0.1 alone.")
    ] = 8080,
    slots: Annotated[int, typer.Option(min=1, help="Requests answered at once.")] = 4,
    context: Annotated[int, typer.Option(min=512, help="Tokens of context per slot.")] = 4096,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads. Default: all cores but one.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="With --list: as JSON.")] = False,
) -> None:
    """Serve a model on this machine with llama.cpp.

    It runs until Ctrl-C. Without --model and --weights it serves SmolLM2-135M-Instruct: real enough
    to try every command, at chance as a judge. Do not draw conclusions about a method from it;
    --list says which are good for more.

    Example: evenhand serve-local --model qwen2.5-coder-1.5b --port 8080
    """
    if list_:
        _show_list(json=json)
        return
    if json:
        raise UserError("--json goes with the list: evenhand serve-local --list --json")
    engine = _engine()
    _require_free(port)
    name, file = _chosen(model, weights)
    err.print(f"loading {file.name} …")
    parameters = _parameters(engine, file, name)
    parameters.port = port
    parameters.n_parallel = slots
    parameters.n_ctx = slots * context
    parameters.cpuparams.n_threads = threads or max(1, (os.cpu_count() or 2) - 1)
    try:
        server = engine.Server(parameters)
    except RuntimeError as error:
        raise UserError(
            f"llama.cpp could not start: {error}. Is port {port} free (--port), and is "
            f"{file.name} a GGUF model?"
        ) from None
    address = f"{server.listening_address}/v1"
    there = f" --base-url {address}" if port != 8080 else ""
    err.print(f"serving {name} at {address}, Ctrl-C ends it")
    err.print(f'try: evenhand answer "Describe a typical nurse." --show-trace{there}')
    err.print(f"what it is good for: evenhand doctor --probe{there}")
    wait_for_signal()


def _chosen(model: str | None, weights: Path | None) -> tuple[str, Path]:
    """Give the name to serve under, and the file. A file alone is served by its own name; if that
    is one of the list, the file has to be the listed one."""
    if model is None and weights is not None:
        if not local_models.is_listed(weights.stem):
            return weights.stem, local_models.existing(weights)
        model = weights.stem
    entry = local_models.named(model or local_models.DEFAULT)
    if model is not None:
        err.print(f"{entry.title}, {entry.licence}: {entry.good_for}")
        err.print(f"{entry.bytes / 1e6:,.0f} MB, looked for and checked …")
    return entry.name, local_models.weights_of(entry, weights)


def _show_list(*, json: bool) -> None:
    models = local_models.listed()
    if json:
        print_json({"models": [model.model_dump() for model in models]})
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "file", "memory", "licence", "good for"):
        table.add_column(heading, no_wrap=heading == "name")
    for model in models:
        size, memory = f"{model.bytes / 1e6:,.0f} MB", f"{model.memory_mb:,} MB"
        table.add_row(model.name, size, memory, model.licence, model.good_for)
    out.print(table)
    out.print("What was measured with each: evenhand serve-local --list --json")


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
