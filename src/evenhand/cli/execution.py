"""Running a plan from the command line: models opened, caps set, progress shown, signals heard."""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.agents import Cast
from evenhand.cli.certified import look_at_judges
from evenhand.cli.options import open_cast
from evenhand.cli.screen import err, run_progress
from evenhand.config import Config
from evenhand.domain.prices import Prices
from evenhand.errors import ModelRefused, UserError
from evenhand.methods import Method
from evenhand.models import ScriptedModel
from evenhand.models.ask_once import AskOnce
from evenhand.runners import Plan, Progress, Purse, Source, StopSignal, replay_of, run
from evenhand.runners.pilot import pilot_positions, run_pilot
from evenhand.store.spending import spent_on


class Engine(StrEnum):
    LOCAL = "local"
    RAY = "ray"


Seed = Annotated[int | None, typer.Option(help="Seeds every call, each differently.")]
InFlight = Annotated[int, typer.Option(min=1, help="Items at work at once.")]
Replay = Annotated[
    str | None, typer.Option(help="Answer every call from this run's turns, offline.")
]
TakeOver = Annotated[
    bool, typer.Option("--take-over", help="Take the folder from a process that is stuck.")
]
Out = Annotated[
    str, typer.Option("--out", "-o", help="The run folder, new or to be resumed: a path or a URL.")
]
EngineName = Annotated[Engine, typer.Option("--engine", help="This process, or a Ray cluster.")]
Actors = Annotated[
    int | None,
    typer.Option(min=1, help="Processes of the Ray engine. Default: one per core."),
]
PriceFile = Annotated[
    Path | None,
    typer.Option(
        "--prices", help="A TOML file of prices per model. Default: the prices in the config."
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, help="Stop before the run costs more than this. Needs prices."),
]
MaxCalls = Annotated[
    int | None, typer.Option(min=0, help="Stop before the run makes more calls than this.")
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Answer 50 items of it and forecast calls, tokens, cost and time."
    ),
]
ShareEqual = Annotated[
    bool, typer.Option("--share-equal", help="Ask once what several items ask in the same words.")
]
RequireCertified = Annotated[
    bool,
    typer.Option(
        "--require-certified-judges",
        help="Refuse to begin unless every judge has a certificate that says pass.",
    ),
]

STOPPED = 130
BELOW_FLOOR = 2
CAPPED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the user asked for, whatever the source of the items."""

    source: Source
    method: Method
    settings: Config
    out: str
    seed: int | None
    in_flight: int
    take_over: bool
    max_cost: float | None
    max_calls: int | None
    replay: str | None = None
    engine: Engine = Engine.LOCAL
    actors: int | None = None
    dry_run: bool = False
    share_equal: bool = False
    require_certified: bool = False
    is_audit: bool = False  # of a judge, who cannot be certified yet

    @property
    def prices(self) -> Prices | None:
        return self.settings.prices.prices() if self.settings.prices else None

    @property
    def asks_nobody(self) -> bool:
        """A replay, a dummy, or stored answers."""
        return self.replay is not None or not self.method.agents()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run left off."""

    stopped: bool = False  # by a signal
    capped_by: str | None = None  # the option whose cap was reached
    calls: int = 0  # made by the whole run, if it has a cap
    pilot: tuple[int, ...] | None = None  # the positions of a dry run
    limits: dict[str, int] = field(default_factory=dict)  # calls at once that endpoints took


def execute(order: Order) -> Ended:
    return asyncio.run(_execute(order))


def require_certified(order: Order, methods: Sequence[Method]) -> None:
    """Before the first of several runs begins: a later one must not be refused half-way."""
    asyncio.run(_require_certified(order, methods))


async def _require_certified(order: Order, methods: Sequence[Method]) -> None:
    cast = await open_cast(order.settings)
    try:
        for method in methods:
            look_at_judges(method, cast, order.settings, require=True)
    finally:
        await cast.close()


async def _execute(order: Order) -> Ended:
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
        if not (order.asks_nobody or order.is_audit):
            look_at_judges(order.method, cast, order.settings, require=order.require_certified)
        purse = _purse(order, cast)
        async with run_progress(progress):
            pilot = await _run(order, plan, progress, stop, purse)
    finally:
        await cast.close()
    capped_by = purse.exhausted if purse else None
    called = progress.endpoints.items() if progress.calls else ()
    limits = {name: limit for name, (_, limit) in called}
    return Ended(
        stopped=stop.soft and capped_by is None,
        capped_by=capped_by,
        calls=purse.calls if purse else 0,
        pilot=pilot,
        limits=limits,
    )


async def _run(
    order: Order, plan: Plan, progress: Progress, stop: StopSignal, purse: Purse | None
) -> tuple[int, ...] | None:
    if order.dry_run:  # fifty items are not worth a cluster
        items = len(plan.source)
        err.print(f"dry run: {len(pilot_positions(items))} of {items:,} items, spread evenly")
        return await run_pilot(
            plan, order.out, progress=progress, stop=stop, take_over=order.take_over, purse=purse
        )
    if order.engine is Engine.LOCAL:
        await run(
            plan, order.out, progress=progress, stop=stop, take_over=order.take_over, purse=purse
        )
        return None
    if order.replay:
        raise UserError("a replay is read from one process: leave out --engine ray")
    try:
        from evenhand.runners.ray import run_on_ray  # noqa: PLC0415 - Ray is an extra
    except ImportError as error:
        if str(error.name).startswith("evenhand"):  # our own mistake, not a missing extra
            raise
        raise UserError("Ray is not installed: pip install 'evenhand[cluster]'") from None
    await run_on_ray(
        plan,
        order.out,
        actors=order.actors,
        progress=progress,
        stop=stop,
        take_over=order.take_over,
        purse=purse,
        address=configuration.ray_cluster(),
    )
    return None


async def _cast(order: Order) -> Cast:
    if order.replay:
        return replay_of(order.replay)
    if order.asks_nobody:  # no endpoint is needed
        return Cast(ScriptedModel(lambda _: ModelRefused("this method asks nobody"), name="none"))
    cast = await open_cast(order.settings)
    return cast.through(AskOnce) if order.share_equal else cast


def _purse(order: Order, cast: Cast) -> Purse | None:
    """The caps of the whole run, less what earlier processes of it spent."""
    if order.asks_nobody or (order.prices, order.max_cost, order.max_calls) == (None, None, None):
        return None
    purse = Purse(max_calls=order.max_calls, max_cost=order.max_cost, prices=order.prices)
    cast.through(purse.guard)  # refuses a model without a price before anything is written
    spent = spent_on(order.out, order.prices)
    purse.calls, purse.cost = spent.calls, spent.cost
    return purse


def end(ended: Ended, *, below_floor: bool) -> None:
    """Leave with the code that says how it went."""
    if ended.capped_by:
        err.print(
            f"stopped at {ended.capped_by}; run again with a higher one to go on. The run has made "
            f"{ended.calls:,} calls; those for items that are not finished are kept and not paid "
            "twice."
        )
        raise typer.Exit(CAPPED)
    if ended.stopped:
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
