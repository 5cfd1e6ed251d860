"""What all commands share: the two consoles, JSON output, and progress."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import orjson
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from evenhand.runners import Progress as RunProgress

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

_PLAIN_LINE_SECONDS = 5.0


def problem(message: str) -> None:
    err.print(Text("error: ", style="bold red").append(message, style="not bold default"))


def print_json(value: Any) -> None:
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


@contextlib.asynccontextmanager
async def waiting(what: str) -> AsyncIterator[None]:
    """Something is going on: a spinner on a terminal, one line after a second elsewhere."""
    if err.is_terminal:
        with err.status(what):
            yield
        return
    said = asyncio.get_running_loop().call_later(1.0, err.print, what)
    try:
        yield
    finally:
        said.cancel()


@contextlib.asynccontextmanager
async def run_progress(progress: RunProgress) -> AsyncIterator[None]:
    """A bar that follows a run's counters; a plain line every few seconds without a terminal."""
    show = _bar if err.is_terminal else _lines
    task = asyncio.create_task(show(progress))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _bar(progress: RunProgress) -> None:
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[facts]}"),
        console=err,
    )
    task = bar.add_task("", total=None, facts="")
    with Live(bar, console=err, refresh_per_second=5):
        try:
            while True:
                _update(bar, task, progress)
                await asyncio.sleep(0.2)
        finally:
            _update(bar, task, progress)


def _update(bar: Progress, task: Any, progress: RunProgress) -> None:
    done = progress.resumed + progress.answered + progress.failed
    bar.update(task, total=progress.planned or None, completed=done, facts=_facts(progress))


async def _lines(progress: RunProgress) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(_PLAIN_LINE_SECONDS)
        done = progress.resumed + progress.answered + progress.failed
        spent = time.monotonic() - started
        err.print(f"{done} of {progress.planned} items, {spent:.0f} s, {_facts(progress)}")


def _facts(progress: RunProgress) -> str:
    facts = [f"{progress.changed} changed", f"{progress.calls} calls", f"{progress.tokens} tokens"]
    if progress.failed:
        facts.insert(0, f"{progress.failed} FAILED")
    return ", ".join(facts)
