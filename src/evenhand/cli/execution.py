"""Running a plan from the command line: models opened, progress shown, signals heard."""

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from evenhand.agents import Cast
from evenhand.cli.options import open_cast
from evenhand.cli.screen import err, run_progress
from evenhand.config import Config
from evenhand.errors import ModelRefused
from evenhand.methods import Method
from evenhand.models import ScriptedModel
from evenhand.runners import Plan, Progress, Source, StopSignal, replay_of, run

Seed = Annotated[int | None, typer.Option(help="Seeds every call, each differently.")]
InFlight = Annotated[int, typer.Option(min=1, help="Items at work at once.")]
Replay = Annotated[
    Path | None, typer.Option(help="Answer every call from this run's turns, offline.")
]
TakeOver = Annotated[
    bool, typer.Option("--take-over", help="Take the folder from a process that is stuck.")
]
Out = Annotated[Path, typer.Option("--out", help="The run folder, new or to be resumed.")]

STOPPED = 130
BELOW_FLOOR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the user asked for, whatever the source of the items."""

    source: Source
    method: Method
    settings: Config
    out: Path
    seed: int | None
    in_flight: int
    replay: Path | None
    take_over: bool


def execute(order: Order) -> bool:
    """Run it. True if a signal ended it early."""
    return asyncio.run(_execute(order))


async def _execute(order: Order) -> bool:
    cast = await _cast(order)
    plan = Plan(
        method=order.method,
        cast=cast,
        source=order.source,
        limits=order.settings.limits,
        seed=order.seed,
        in_flight=order.in_flight,
    )
    stop, progress = _stop_on_signals(), Progress()
    try:
        async with run_progress(progress):
            await run(plan, order.out, progress=progress, stop=stop, take_over=order.take_over)
    finally:
        await cast.close()
    return stop.soft


async def _cast(order: Order) -> Cast:
    if order.replay:
        return replay_of(order.replay)
    if not order.method.agents():  # a dummy, or stored answers: no endpoint is needed
        return Cast(ScriptedModel(lambda _: ModelRefused("this method asks nobody"), name="none"))
    return await open_cast(order.settings)


def end(*, stopped: bool, below_floor: bool) -> None:
    """Leave with the code that says how it went."""
    if stopped:
        err.print("stopped; nothing is lost. Run the same command again to go on.")
        raise typer.Exit(STOPPED)
    if below_floor:
        raise typer.Exit(BELOW_FLOOR)


def _stop_on_signals() -> StopSignal:
    """Ctrl-C once finishes what is at work; twice stops at once."""
    stop = StopSignal()

    def heard() -> None:
        if not stop.soft:
            err.print("stopping: finishing the items at work (again to stop at once) …")
        stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heard)
    return stop
