"""A command's options and config become a request here; and a command ends here with its code."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from evenhand import config as configuration
from evenhand import environment
from evenhand.agents import Cast
from evenhand.cli.codes import BELOW_FLOOR, CAPPED, STOPPED
from evenhand.cli.screen import err, out, print_json
from evenhand.cli.watching import Terminal
from evenhand.config import Config
from evenhand.domain.prices import Prices
from evenhand.experiments import running
from evenhand.experiments.dry_run import dry_run
from evenhand.experiments.request import Request
from evenhand.experiments.running import Ended
from evenhand.methods import Method
from evenhand.runners import Source
from evenhand.views import terminal_of
from evenhand.views.files import plain

__all__ = ["Ended"]


class Engine(StrEnum):
    LOCAL = "local"
    RAY = "ray"


Seed = Annotated[
    int | None,
    typer.Option(
        help="Base seed: every call gets its own seed derived from it, so the same value repeats "
        "the run."
    ),
]
Concurrency = Annotated[int, typer.Option(min=1, help="How many items are at work at once.")]
Replay = Annotated[
    str | None, typer.Option(help="Answer every call from this run's turns, offline.")
]
StealLock = Annotated[
    bool, typer.Option("--steal-lock", help="Take the folder from a process that is stuck.")
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
    typer.Option("--dry-run", help="Ask nothing: print items, declared calls, tokens and cost."),
]
Pilot = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Ask up to N items, real calls, and forecast calls, tokens, cost and time from them.",
    ),
]
Dedupe = Annotated[
    bool, typer.Option("--dedupe", help="Ask once what several items ask in the same words.")
]
RequireCertified = Annotated[
    bool,
    typer.Option(
        "--require-certified-judges",
        help="Refuse to begin unless every judge has a certificate that says pass.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order is what the user asked for on the command line, with the config that it is asked
    under."""

    source: Source
    method: Method
    settings: Config
    out: str
    seed: int | None
    concurrency: int
    steal_lock: bool
    max_cost: float | None
    max_calls: int | None
    replay: str | None = None
    engine: Engine = Engine.LOCAL
    actors: int | None = None
    dry_run: bool = False  # ask nothing
    pilot: int | None = None  # ask so many items and no more
    json: bool = False  # how a dry run is shown
    dedupe: bool = False
    require_certified: bool = False
    is_audit: bool = False  # of a judge, who cannot be certified yet
    system: str | None = None  # of the default model, as the command line says

    @property
    def prices(self) -> Prices | None:
        return self.settings.prices.prices() if self.settings.prices else None

    @property
    def asks_nobody(self) -> bool:
        """The order needs no model: it is a replay, a dummy, or stored answers."""
        return self.request().asks_nobody

    def request(self) -> Request:
        """Give the same order for whoever runs it: models in place of their config."""
        on_ray = self.engine is Engine.RAY
        systems = {} if self.is_audit else self.settings.systems()  # a judge is audited as a judge

        async def opened(method: Method) -> Cast:
            cast = await configuration.open_cast(self.settings, method.agents())
            return replace(cast, system=systems)

        return Request(
            source=self.source,
            method=self.method,
            open_cast=opened,
            out=self.out,
            limits=self.settings.limits,
            named=_named_models(self.settings),
            system=self.system,
            systems=systems,
            seed=self.seed,
            concurrency=self.concurrency,
            steal_lock=self.steal_lock,
            prices=self.prices,
            max_cost=self.max_cost,
            max_calls=self.max_calls,
            replay=self.replay,
            engine="ray" if on_ray else "local",
            actors=self.actors,
            ray_address=environment.ray_cluster() if on_ray else None,
            pilot=self.pilot,
            dedupe=self.dedupe,
            certificates=self.settings.certificates,
            require_certified=self.require_certified,
            is_audit=self.is_audit,
        )


def _named_models(settings: Config) -> dict[str, str]:
    """The models that the config or the command names; a role without a name has the only model of
    its endpoint."""
    names = {role: name for role, name in settings.cast.items() if name in settings.models}
    models = {role: settings.models[name].model for role, name in names.items()}
    models["default"] = settings.default_model().model
    return {role: model for role, model in models.items() if model is not None}


def show_dry_run(
    requests: Mapping[str, Request], *, json: bool, code: int = 0, **more: Any
) -> NoReturn:
    """Print what these runs will ask, and leave: nobody is asked.

    Args:
        requests: The runs by name.
        json: As JSON.
        code: The exit code.
        more: Of `experiments.dry_run`.
    """
    preview = asyncio.run(dry_run(requests, **more))
    if json:
        print_json(plain(preview.to_dict()))
    else:
        out.print(terminal_of(preview))
    raise typer.Exit(code)


def execute(order: Order) -> Ended:
    """Run an order, with progress on the terminal; of a dry run, print what it will ask."""
    if order.dry_run:
        show_dry_run({order.out: order.request()}, json=order.json)
    return asyncio.run(running.execute(order.request(), Terminal(order.settings)))


def require_certified(order: Order, methods: Sequence[Method]) -> None:
    """Check the judges before the first of several runs begins: a later one must not be refused
    half-way."""
    watch = Terminal(order.settings)
    asyncio.run(running.require_certified(order.request(), methods, watch))


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
