"""The options that every command shares which sends items through a method."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.api.configured import ConfigServices, alone, request_of
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    MethodName,
    ModelName,
    Settings,
    WordingName,
    further_params,
    system_prompt,
)
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.request import Request
from evenhand.experiments.settings import RunSettings, Setting, declared_in
from evenhand.findings.audit import is_audit
from evenhand.instruments import Instrument
from evenhand.methods import Method
from evenhand.methods.build import build_method
from evenhand.runs.runners import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """What was typed: the settings of the run, the method, and where the models are."""

    settings: RunSettings  # prices and a system prompt are read from files when they are needed
    prices: Path | None = None
    method: MethodName = "default"
    wording: WordingName = None
    set_: Settings = None
    base_url: BaseUrl = None
    model: ModelName = None
    config: ConfigFile = None
    json: Json = False

    @property
    def out(self) -> str:
        return self.settings.out

    def into(self, folder: str) -> "RunCommand":
        """Return the same command with another run folder."""
        return replace(self, settings=replace(self.settings, out=folder))

    def load(self) -> Config:
        """Load the config, with what was typed in place of what it says."""
        return configuration.load(
            self.config,
            self.base_url,
            self.model,
            prices=self.prices,
            system=system_prompt(self.settings.system),
            params=further_params(self.settings.params or ()),
        )

    def request(
        self,
        source: Source,
        method: Method | None = None,
        config: Config | None = None,
        *,
        is_audit: bool = False,
    ) -> Request:
        """Make the request for these items.

        Args:
            source: The items.
            method: The method. Default: the one that was named.
            config: The config. Default: the one that `load` gives.
            is_audit: Whether a judge is audited.

        Returns:
            The request.
        """
        settings = replace(self.settings, system=system_prompt(self.settings.system))
        return request_of(
            config or self.load(),
            source,
            method or build_method(self.method, self.set_ or (), self.wording),
            settings,
            is_audit=is_audit,
        )


def prepared(
    instrument: Instrument, options: RunCommand, values: Mapping[str, Any]
) -> tuple[Measurement, Request]:
    """Make the measurement of an instrument with its own options, and the request for its items."""
    config = options.load()
    measurement = Measurement(
        instrument=instrument,
        options=instrument.options_from(values),
        services=ConfigServices(config),
    )
    requested = build_method(options.method, options.set_ or (), options.wording)
    method = measurement.method(requested)
    players = instrument.players(measurement.options, method)
    source = measurement.items(configuration.data_folder())
    request = options.request(
        source, method, alone(config, players) if players else config,
        is_audit=is_audit(instrument),
    )  # fmt: skip
    return measurement, replace(request, settings=measurement.limited(request.settings))


_BEFORE = ("method", "wording", "set_")  # in the help, the others come after the settings
_AFTER = ("base_url", "model", "config", "json")


def with_run_options(
    command: Callable[..., None],
    *,
    without: Collection[str] = (),
    only: Collection[str] | None = None,
    kind: type[RunSettings] = RunSettings,
    **defaults: str,
) -> Callable[..., None]:
    """Make a command that takes the settings of a run as options, behind its own.

    Args:
        command: A function whose first argument is a `RunCommand`.
        without: The options that this command does not have. They keep their defaults.
        only: The options that this command has. Default: all.
        kind: The settings.
        defaults: Other defaults of this command by name, such as of `out` or `method`.

    Returns:
        The command, for typer.
    """
    own = list(inspect.signature(command).parameters.values())[1:]
    taken = {*without, *(parameter.name for parameter in own)}
    shared = [
        entry.replace(default=defaults[entry.name]) if entry.name in defaults else entry
        for entry in _in_order(kind)
        if entry.name not in taken and (only is None or entry.name in only)
    ]

    @functools.wraps(command)
    def whole(**values: Any) -> None:
        typed = {entry.name: values.pop(entry.name) for entry in shared}
        command(_typed(typed, kind), **values)

    keyword_only = [entry.replace(kind=inspect.Parameter.KEYWORD_ONLY) for entry in own]
    whole.__signature__ = inspect.Signature([*keyword_only, *shared])  # type: ignore[attr-defined]
    return whole


def _typed(typed: dict[str, Any], kind: type[RunSettings]) -> RunCommand:
    prices = typed.pop("prices", None)
    names = [entry.name for entry, _ in declared_in(kind)]
    settings = {name: typed.pop(name) for name in names if name in typed}
    return RunCommand(settings=kind(**{"out": "", **settings}), prices=prices, **typed)


def _in_order(kind: type[RunSettings]) -> list[inspect.Parameter]:
    """All options as the help lists them: the folder and the method first, the model last."""
    first, *settings = [option_of(entry, declared) for entry, declared in declared_in(kind)
                        if declared.flags is not None]  # fmt: skip
    others = {entry.name: _plain_option(entry) for entry in fields(RunCommand)}
    before, after = ([others[name] for name in names] for names in (_BEFORE, _AFTER))
    return [first, *before, *settings, *after]


def option_of(entry: "Field[Any]", declared: Setting) -> inspect.Parameter:
    """Make the option of a command from a field of the settings."""
    flags = declared.flags or (f"--{entry.name.replace('_', '-')}",)
    option = typer.Option(*flags, help=declared.help, min=declared.least, metavar=declared.metavar)
    return inspect.Parameter(
        entry.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if entry.default is MISSING else entry.default,
        annotation=Annotated[declared.typed_as or entry.type, option],
    )


def _plain_option(entry: "Field[Any]") -> inspect.Parameter:
    return inspect.Parameter(
        entry.name, inspect.Parameter.KEYWORD_ONLY, default=entry.default, annotation=entry.type
    )
