"""`evenhand mitigate`: a file of prompts through a method into a run folder."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    MethodName,
    ModelName,
    ReplyTokens,
    Settings,
    open_cast,
)
from evenhand.cli.screen import err, out, print_json, run_progress
from evenhand.report.summary import below_floor, render, summary
from evenhand.runners import JsonlFile, Plan, Progress, StopSignal, replay_of, run
from evenhand.store import RunReader


def mitigate(
    prompts: Annotated[Path, typer.Argument(help='A file of lines like {"prompt": "…"}.')],
    out_: Annotated[Path, typer.Option("--out", help="The run folder, new or to be resumed.")],
    method: MethodName = "stardtox",
    set_: Settings = None,
    seed: Annotated[int | None, typer.Option(help="Seeds every call, differently.")] = None,
    in_flight: Annotated[int, typer.Option(min=1, help="Items at work at once.")] = 64,
    replay: Annotated[
        Path | None, typer.Option(help="Answer every call from this run's turns, offline.")
    ] = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the folder from a process that is stuck.")
    ] = False,
    reply_tokens: ReplyTokens = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Answer every prompt of a file with a method. Run it again to resume.

    Example: evenhand mitigate prompts.jsonl --method stardtox --out runs/first
    """
    source = JsonlFile(prompts)
    chosen = configuration.build_method(method, set_ or ())
    settings = configuration.load(config, base_url, model, reply_tokens=reply_tokens)
    progress = Progress()

    async def work() -> bool:
        cast = replay_of(replay) if replay else await open_cast(settings)
        plan = Plan(
            method=chosen,
            cast=cast,
            source=source,
            limits=settings.limits,
            seed=seed,
            in_flight=in_flight,
        )
        stop = _stop_on_signals()
        try:
            async with run_progress(progress):
                await run(plan, out_, progress=progress, stop=stop, take_over=take_over)
        finally:
            await cast.close()
        return stop.soft

    stopped = asyncio.run(work())
    numbers = summary(RunReader(out_))
    if json:
        print_json(numbers)
    else:
        out.print(render(numbers))
    if stopped:
        err.print("stopped; nothing is lost. Run the same command again to go on.")
        raise typer.Exit(130)
    if below_floor(numbers):
        raise typer.Exit(2)


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
