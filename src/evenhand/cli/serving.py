"""`evenhand serve-local` and `runs view`: servers on this machine, until somebody ends them."""

import signal
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from evenhand.cli.screen import err, out, print_json
from evenhand.core.errors import UserError
from evenhand.models import local_models
from evenhand.models.local_server import ServerRequest, start
from evenhand.views.viewer import opened


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
    """Serve a small local model with llama.cpp.

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
    request = ServerRequest(
        model=model, weights=weights, port=port, slots=slots, context=context, threads=threads
    )
    server = start(request, err.print)
    there = f" --base-url {server.address}" if port != 8080 else ""
    err.print(f"serving {server.name} at {server.address}, Ctrl-C ends it")
    err.print(f'try: evenhand answer "Describe a typical nurse." --show-trace{there}')
    err.print(f"what it is good for: evenhand doctor --probe{there}")
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
    out.print("What was measured with each: evenhand serve-local --list --json")


def view(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder: a path or a URL.")],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="An earlier run of the same items: what changed since it?"
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen, on 127.0.0.1 alone. 0: any.")
    ] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Only print the address; open no browser.")
    ] = False,
) -> None:
    """Browse the items of a run.

    It lists the items, filters them by words, by how they ended, by score and by tag, and opens
    each with its whole conversation. With --against it shows what became of each item, what
    changed first. It runs until Ctrl-C, on this machine alone, and only who has the address that
    it prints can read it.

    Example: evenhand runs view runs/now
    """
    with opened(run, against, port) as served:
        out.print(served.link, soft_wrap=True)
        err.print("Ctrl-C ends it")
        if not no_open:
            webbrowser.open(served.link_once)
        wait_for_signal()


def wait_for_signal() -> None:
    """Wait for Ctrl-C, or for whoever asks the process to end."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    while not ended.wait(1.0):
        pass
