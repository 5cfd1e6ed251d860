"""`evenhand view`: the items of a run, to look through in a browser on this machine."""

import webbrowser
from typing import Annotated

import typer

from evenhand.cli.screen import err, out
from evenhand.cli.waiting import wait_for_signal
from evenhand.views.viewer import opened


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
    """Look through the items of a run in a browser.

    It lists the items, filters them by words, by how they ended, by score and by tag, and opens
    each with its whole conversation. With --against it shows what became of each item, what
    changed first. It runs until Ctrl-C, on this machine alone, and only who has the address that
    it prints can read it.

    Example: evenhand view runs/now
    """
    with opened(run, against, port) as served:
        out.print(served.link, soft_wrap=True)
        err.print("Ctrl-C ends it")
        if not no_open:
            webbrowser.open(served.link_once)
        wait_for_signal()
