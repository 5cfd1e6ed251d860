"""What all commands share: the two consoles, JSON output, and progress."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from rich import progress as bars
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from evenhand.runs.runners import Progress
from evenhand.views import terminal_of
from evenhand.views.files import printed
from evenhand.views.numbers import duration, money
from evenhand.views.visible import visible


class _PlainConsole(Console):
    """A console for plain text: it never treats text of models, servers or file names as markup
    or as a terminal command."""

    def __init__(self, *, stderr: bool) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for part in super().render(renderable, options):  # all output passes through here
            yield part if part.control else Segment(visible(part.text), part.style)


out = _PlainConsole(stderr=False)
err = _PlainConsole(stderr=True)

_MOST_BATCHES = 4  # our choice: batches with their own line
_PLAIN_LINE_SECONDS = 5.0


def problem(message: str) -> None:
    err.print(Text("error: ", style="bold red").append(message, style="not bold default"))


def print_json(value: Any) -> None:
    sys.stdout.write(printed(value))


class Finding(Protocol):
    """A result that has a page in `evenhand.views`."""

    def to_dict(self) -> dict[str, Any]: ...


def print_finding(finding: Finding, *, json: bool, full: bool = False, written: str = "") -> None:
    """Print the page of a finding, or the finding as JSON.

    Args:
        finding: The result.
        json: Print JSON.
        full: Print the long page.
        written: The files with the result, listed below the page.
    """
    if json:
        print_json(finding.to_dict())
        return
    out.print(terminal_of(finding, full=full))
    if written:
        out.print(written, style="dim", soft_wrap=True)


@dataclass(slots=True)
class WaitingLine:
    """A line with the current activity and its duration; `what` may change meanwhile."""

    what: str
    began: float = field(default_factory=time.monotonic)

    def __rich__(self) -> Text:
        return Text(f"{self.what} · {duration(time.monotonic() - self.began)}")


@contextlib.asynccontextmanager
async def waiting(what: str) -> AsyncIterator[WaitingLine]:
    """Show a spinner on a terminal, or elsewhere a line after a second."""
    line = WaitingLine(what)
    if err.is_terminal:
        with err.status(line):
            yield line
        return
    timer = asyncio.get_running_loop().call_later(1.0, err.print, Text(what))
    try:
        yield line
    finally:
        timer.cancel()


@contextlib.asynccontextmanager
async def run_progress(progress: Progress) -> AsyncIterator[None]:
    """Show the counters of a run: a bar on a terminal, elsewhere a line every few seconds."""
    show = _bar if err.is_terminal else _lines
    task = asyncio.create_task(show(progress))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _bar(progress: Progress) -> None:
    with Live(console=err, auto_refresh=False) as live:
        try:
            while True:
                live.update(status_view(progress.snapshot()), refresh=True)
                await asyncio.sleep(0.5)
        finally:
            live.update(status_view(progress.snapshot()), refresh=True)


async def _lines(progress: Progress) -> None:
    while True:
        await asyncio.sleep(_PLAIN_LINE_SECONDS)
        err.print(status_line(progress.snapshot()), soft_wrap=True)


def status_view(status: dict[str, Any]) -> RenderableType:
    """Show failures, progress and speed in three lines of at most 100 columns."""
    bar = Table.grid(padding=(0, 1))
    bar.add_column(no_wrap=True)
    bar.add_column(ratio=1)
    bar.add_column(no_wrap=True)
    bar.expand = True
    filled = ProgressBar(total=status["planned"] or None, completed=status["done"], width=None)
    bar.add_row(_how_far(status), filled, _when_done(status))
    facts = Text(" · ").join(map(Text, _facts(status)))
    if status["failed"]:
        facts = Text(f"{status['failed']:,} FAILED", style="bold red").append(" · ").append(facts)
    lines = [*_endpoints(status), *_batches(status)]
    places = [Text(line, style="dim") for line in lines]
    return Group(bar, facts, *places)


def status_line(status: dict[str, Any]) -> str:
    """Format the status as a line, for a log."""
    failed = [f"{status['failed']:,} FAILED"] if status["failed"] else []
    parts = [_how_far(status), *failed, _when_done(status), *_facts(status)]
    parts += [*_endpoints(status), *_batches(status)]
    return ", ".join(parts)


def _how_far(status: dict[str, Any]) -> str:
    if not status["planned"]:
        return "starting"
    return f"{status['done']:,} of {status['planned']:,} items"


def _when_done(status: dict[str, Any]) -> str:
    share = f"{status['done'] / status['planned']:.1%}" if status["planned"] else "0.0%"
    if status["state"] != "running" or status["done"] >= status["planned"] > 0:
        return f"{share} in {duration(status['seconds'])}"
    eta = status["eta_seconds"]
    return f"{share}, {'?' if eta is None else duration(eta)} left"


def _facts(status: dict[str, Any]) -> list[str]:
    facts = [
        f"{status['in_flight']:,} in flight",
        f"{status['calls_per_second']:,.1f} calls/s",
        f"{_short(status['calls'])} calls",
        f"{_short(status['tokens'])} tokens",
    ]
    if status["cost"] is not None:
        facts.append(money(status["cost"], status["currency"]))
    return [*facts, f"{_short(status['changed'])} changed"]


def _short(count: int) -> str:
    """Shorten a count: 12,345 · 1.23 M · 1.23 G."""
    for unit, size in ((" G", 10**9), (" M", 10**6)):
        if count >= size:
            return f"{count / size:.2f}{unit}"
    return f"{count:,}"


def _endpoints(status: dict[str, Any]) -> list[str]:
    return [
        f"{name}: {endpoint['in_flight']} of {endpoint['limit']} calls at once"
        for name, endpoint in status["endpoints"].items()
        if not status.get("batches")
    ]


def _batches(status: dict[str, Any]) -> list[str]:
    """Format the progress of batches, from the counts of the provider."""
    under_way = status.get("batches") or []
    lines = [_batch(batch) for batch in under_way[:_MOST_BATCHES]]
    if len(under_way) > _MOST_BATCHES:
        lines.append(f"and {len(under_way) - _MOST_BATCHES} more batches")
    if ended := status.get("batches_ended"):
        lines.append(f"{ended:,} batch{'es' * (ended > 1)} ended")
    return lines


def _batch(batch: dict[str, Any]) -> str:
    failed = f", {batch['failed']:,} failed" if batch["failed"] else ""
    counts = f"{batch['completed']:,} of {batch['total']:,}{failed}"
    words = f"batch {batch['id'] or 'new'} ({batch['status']}): {counts}"
    return f"{words}, {batch['note']}" if batch["note"] else words


@contextmanager
def scoring_bar(name: str) -> Iterator[Callable[[int], None]]:
    """Show the number of scored texts while the context is open."""
    with bars.Progress(console=err, transient=True, disable=not err.is_terminal) as shown:
        bar = shown.add_task(escape(name), total=None)
        yield lambda count: shown.advance(bar, count)
