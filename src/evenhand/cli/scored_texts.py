"""A progress bar for texts that one scorer scores."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.markup import escape
from rich.progress import Progress

from evenhand.cli.screen import err


@contextmanager
def scoring_bar(name: str) -> Iterator[Callable[[int], None]]:
    """Show how many texts are scored, while the context is open."""
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task(escape(name), total=None)
        yield lambda count: progress.advance(bar, count)
