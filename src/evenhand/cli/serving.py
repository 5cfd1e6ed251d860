"""`evenhand serve-local` and `runs view`: servers on this machine, until you stop them."""

import signal
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from evenhand.cli.screen import err, out, print_json
from evenhand.core.errors import UserError
from evenhand.experiments.dossiers import combined_report
from evenhand.models import local_models
from evenhand.models.local_server import ServerRequest, start
from evenhand.views.viewer import opened


def serve_local(
    model: Annotated[
        str | None, typer.Option("--model", help="Serve this model of the list. Default: smollm2.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            "--gguf",
            help="Serve this GGUF file: the weights of --model (checked), or any other file.",
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the models and their uses.")] = False,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Listen on this port of 127.0.0.1.")
    ] = 8080,
    slots: Annotated[int, typer.Option(min=1, help="Answer this many requests concurrently.")] = 4,
    context: Annotated[int, typer.Option(min=512, help="Set the context tokens per slot.")] = 4096,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Set the number of CPU threads. Default: all cores except 1."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="With --list: print JSON.")] = False,
) -> None:
    """Serve a small local model with llama.cpp.

    The server runs until Ctrl-C. Without --model and --weights, it serves SmolLM2-135M-Instruct.
    You can try every command with this model, but it judges at chance. Do not draw conclusions
    about a method from it; --list shows models for further uses.

    Example: evenhand serve-local --model qwen2.5-coder-1.5b --port 8080
    """
    if list_:
        _show_list(json=json)
        return
    if json:
        raise UserError("--json needs --list: evenhand serve-local --list --json")
    request = ServerRequest(
        model=model, weights=weights, port=port, slots=slots, context=context, threads=threads
    )
    server = start(request, err.print)
    there = f" --base-url {server.address}" if port != 8080 else ""
    err.print(f"serving {server.name} at {server.address}, press Ctrl-C to stop")
    err.print(f'try: evenhand answer "Describe a typical nurse." --show-trace{there}')
    err.print(f"test what the model can do: evenhand doctor --probe{there}")
    wait_for_signal()


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
    out.print("Measurements of each model: evenhand serve-local --list --json")


def view(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="Browse this run folder, or this folder of runs: a path or a URL."
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Show changes since this earlier run of the same items."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Listen on this port of 127.0.0.1. 0: any port.")
    ] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Only print the address, without opening a browser.")
    ] = False,
) -> None:
    """Browse a run, or all runs of a folder.

    A folder of runs opens as a list with instrument, model, method, outcome, cost and progress.
    Filter it, and select runs for a report that compares them. A run opens as a list of items,
    filtered by words, outcome, score and tag, each with its whole conversation. With --against, the
    list compares each item with the earlier run, and shows changed items first. The viewer runs
    until Ctrl-C, only on this machine. Only users with the printed address can read it.

    Example: evenhand runs view runs
    """
    with opened(run, against, port, combine=combined_report) as served:
        out.print(served.link, soft_wrap=True)
        err.print("press Ctrl-C to stop")
        if not no_open:
            webbrowser.open(served.link_once)
        wait_for_signal()


def wait_for_signal() -> None:
    """Wait for Ctrl-C or for SIGTERM."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    while not ended.wait(1.0):
        pass
