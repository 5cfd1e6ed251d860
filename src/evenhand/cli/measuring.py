"""The options that every command shares which sends items through a method."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from evenhand import config as configuration
from evenhand.cli.execution import (
    Actors,
    Concurrency,
    Dedupe,
    DryRun,
    Engine,
    EngineName,
    MaxCalls,
    MaxCost,
    Order,
    Out,
    Pilot,
    PriceFile,
    Replay,
    RequireCertified,
    Seed,
    StealLock,
)
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    MaxTokens,
    MethodName,
    ModelName,
    Settings,
    SystemPrompt,
    WordingName,
    system_prompt,
)
from evenhand.cli.services import ConfigServices
from evenhand.config import Config
from evenhand.experiments.measuring import Measurement
from evenhand.instruments import Instrument
from evenhand.methods import Method
from evenhand.methods.build import build_method
from evenhand.runners import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options that send items through a method, in the order of the help text."""

    out_: Out
    method: MethodName = "default"
    dry_run: DryRun = False
    pilot: Pilot = None
    prices: PriceFile = None
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
    wording: WordingName = None
    set_: Settings = None
    seed: Seed = None
    concurrency: Concurrency = 64
    dedupe: Dedupe = False
    engine: EngineName = Engine.LOCAL
    actors: Actors = None
    replay: Replay = None
    steal_lock: StealLock = False
    require_certified_judges: RequireCertified = False
    max_tokens: MaxTokens = None
    system: SystemPrompt = None
    base_url: BaseUrl = None
    model: ModelName = None
    config: ConfigFile = None
    json: Json = False

    def settings(self, answer_tokens: int | None = None) -> Config:
        """The config, with what was said on the command line."""
        return configuration.load(
            self.config,
            self.base_url,
            self.model,
            max_tokens=self.max_tokens,
            answer_tokens=answer_tokens,
            prices=self.prices,
            system=system_prompt(self.system),
        )

    def order(
        self, source: Source, method: Method | None = None, settings: Config | None = None
    ) -> Order:
        """The order for these items; `method` is in the place of the one that was named."""
        return Order(
            source=source,
            method=method or build_method(self.method, self.set_ or (), self.wording),
            settings=settings or self.settings(),
            out=self.out_,
            seed=self.seed,
            concurrency=self.concurrency,
            replay=self.replay,
            steal_lock=self.steal_lock,
            engine=self.engine,
            actors=self.actors,
            max_cost=self.max_cost,
            max_calls=self.max_calls,
            dry_run=self.dry_run,
            pilot=self.pilot,
            json=self.json,
            dedupe=self.dedupe,
            require_certified=self.require_certified_judges,
            system=system_prompt(self.system),
        )


def prepared(
    instrument: Instrument, options: RunOptions, values: Mapping[str, Any]
) -> tuple[Measurement, Order]:
    """The measurement of an instrument with its own options, and the order that asks its items."""
    chosen = instrument.options_from(values)
    settings = options.settings(answer_tokens=values.get(instrument.answer_tokens or ""))
    measurement = Measurement(
        instrument=instrument, options=chosen, services=ConfigServices(settings)
    )
    order = options.order(measurement.items(configuration.data_folder()), settings=settings)
    method = measurement.method(order.method)
    if method is not order.method:
        order = options.order(order.source, method, settings)
    return measurement, order


def with_run_options(
    command: Callable[..., None], *, without: Collection[str] = (), out: str | None = None
) -> Callable[..., None]:
    """A command whose first argument is `RunOptions` takes each of them as an option of its own,
    behind its own ones: written once, they are the same for every benchmark. Those in `without`
    keep their default; `out` is the folder of a command that can do without being told one."""
    own_parameters = list(inspect.signature(command).parameters.values())[1:]
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=(out or inspect.Parameter.empty) if field.default is MISSING else field.default,
            annotation=field.type,
        )
        for field in fields(RunOptions)
        if field.name not in without
    ]

    @functools.wraps(command)
    def whole(**values: Any) -> None:
        options = RunOptions(**{parameter.name: values.pop(parameter.name) for parameter in shared})
        command(options, **values)

    keyword_only = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own_parameters
    ]
    whole.__signature__ = inspect.Signature([*keyword_only, *shared])  # type: ignore[attr-defined]
    return whole
