"""`evenhand mitigate`: a file of prompts through a method into a run folder."""

from pathlib import Path
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.cli.execution import (
    InFlight,
    Order,
    Out,
    Replay,
    Seed,
    TakeOver,
    end,
    execute,
)
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    MethodName,
    ModelName,
    ReplyTokens,
    Settings,
)
from evenhand.cli.screen import out, print_json
from evenhand.report.summary import below_floor, render, summary
from evenhand.runners import JsonlFile
from evenhand.store import RunReader


def mitigate(
    prompts: Annotated[Path, typer.Argument(help='A file of lines like {"prompt": "…"}.')],
    out_: Out,
    method: MethodName = "stardtox",
    set_: Settings = None,
    seed: Seed = None,
    in_flight: InFlight = 64,
    replay: Replay = None,
    take_over: TakeOver = False,
    reply_tokens: ReplyTokens = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Answer every prompt of a file with a method. Run it again to resume.

    Example: evenhand mitigate prompts.jsonl --method stardtox --out runs/first
    """
    order = Order(
        source=JsonlFile(prompts),
        method=configuration.build_method(method, set_ or ()),
        settings=configuration.load(config, base_url, model, reply_tokens=reply_tokens),
        out=out_,
        seed=seed,
        in_flight=in_flight,
        replay=replay,
        take_over=take_over,
    )
    stopped = execute(order)
    numbers = summary(RunReader(out_))
    if json:
        print_json(numbers)
    else:
        out.print(render(numbers))
    end(stopped=stopped, below_floor=below_floor(numbers))
