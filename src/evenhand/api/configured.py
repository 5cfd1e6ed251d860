"""What a config file names, as experiments need it: opened models, scorers, and the request of a
command."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evenhand.agents import Cast
from evenhand.agents.tools.search.base import ROLE as SEARCH
from evenhand.core import environment
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.experiments.measuring import Measurement, RunModels
from evenhand.experiments.request import Request
from evenhand.experiments.settings import RunSettings
from evenhand.findings.audit import is_audit
from evenhand.methods import Method
from evenhand.methods.judging import OTHER
from evenhand.models.endpoint import sendable_params
from evenhand.runs.runners import Source
from evenhand.scorers import Scorer


def request_of(
    config: Config, source: Source, method: Method, settings: RunSettings, *, is_audit: bool = False
) -> Request:
    """Make the request of a command, whose models the config names and the run opens.

    Args:
        config: The config.
        source: The items.
        method: What is done with each.
        settings: How it is run. Prices, limits and certificates are those of the config where
            none are given.
        is_audit: Whether a judge is audited, who has no certificate yet and no system prompt.

    Returns:
        The request.
    """
    systems = {} if is_audit else config.systems()  # a judge is audited as a judge

    async def opened(method: Method) -> Cast:
        cast = await configuration.open_cast(config, method.agents())
        return replace(cast, system=systems)

    return Request(
        source=source,
        method=method,
        open_cast=opened,
        settings=in_config(config, settings),
        named=_named_models(config),
        systems=systems,
        files_alone=frozenset(
            model.model for model in config.models.values() if model.model and model.batch == "vllm"
        ),
        params=_params(config),
        ray_address=environment.ray_cluster() if settings.engine == "ray" else None,
        is_audit=is_audit,
    )


def alone(config: Config, players: Mapping[str, str | None]) -> Config:
    """Return the config with the models that are audited as its only ones: no further one is
    needed, so none is looked at.

    Args:
        config: The config.
        players: The name of the model of each role; None for the one of the cast. The first role
            is the one that every other agent is played by.
    """
    models = {role: config.model_named(name or config.roles.get(role, "default"))
              for role, name in players.items()}  # fmt: skip
    first = models.pop(next(iter(players)))
    if models.get(OTHER) == first:
        raise UserError(
            f"--other: {players[OTHER]!r} is the judge itself; name a model of another family"
        )
    roles = {role: role for role in models}
    update = {"models": {**models, "default": first}, "roles": roles, "search": None}
    return config.model_copy(update=update)


def in_config(config: Config, settings: RunSettings) -> RunSettings:
    """Fill in what the config has and nobody gave: prices, limits, and where certificates are."""
    return replace(
        settings,
        limits=config.limits,
        prices=settings.prices or config.price_table,
        certificates=settings.certificates or config.certificates,
    )


def _named_models(config: Config) -> dict[str, str]:
    """The models that the config or the command names; a role without a name has the only model of
    its endpoint."""
    names = {role: name for role, name in config.roles.items() if name in config.models}
    models = {role: config.models[name].model for role, name in names.items()}
    models["default"] = config.default_model().model
    return {role: model for role, model in models.items() if model is not None}


def _params(config: Config) -> dict[str, dict[str, Any]]:
    """The further fields of each request, by the role whose model is asked."""
    played = {role: config.models[name] for role, name in config.roles.items()
              if name in config.models}  # fmt: skip
    models = {**played, "default": config.default_model()}
    return {role: sendable_params(model.params) for role, model in models.items()}


class ConfigServices:
    """Scorers of the config and those that are built in, each opened once."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._opened: dict[str, Scorer] = {}

    def scorer(self, name: str) -> Scorer:
        if name not in self._opened:
            self._opened[name] = configuration.scorer_by_name(self._config, name)
        return self._opened[name]

    async def close(self) -> None:
        for scorer in self._opened.values():
            await scorer.close()
        self._opened.clear()


def run_models(config: Config) -> RunModels:
    """Give measurements the models and scorers of a config."""

    def request(
        source: Source, method: Method, settings: RunSettings, measurement: Measurement | None
    ) -> Request:
        if measurement is None:
            return request_of(config, source, method, settings)
        players = measurement.instrument.players(measurement.options, method)
        asked = alone(config, players) if players else config
        audits = is_audit(measurement.instrument)
        return request_of(asked, source, method, settings, is_audit=audits)

    return RunModels(
        request=request, services=ConfigServices(config), data=configuration.data_folder()
    )


class ConfigModels:
    """The models that a config names, and those of its default endpoint, for a recipe."""

    def __init__(self, config: Config, *, asks: bool) -> None:
        """Take a config; `asks`: the endpoint may be asked which model it has."""
        self._config, self._asks = config, asks
        self.searches = config.search is not None or SEARCH in config.roles

    def usual(self) -> list[str]:
        name = self._config.default_model().model
        if not self._asks:
            return [name or "model"]
        return [name or asyncio.run(_only_model(self._config))]

    def services(self, model: str) -> ConfigServices:
        return ConfigServices(self._with(model))

    def request(
        self, model: str, source: Source, method: Method, settings: RunSettings, *, is_audit: bool
    ) -> Request:
        config = self._with(model)
        if is_audit:
            config = config.only(config.default_model())
        return request_of(config, source, method, settings, is_audit=is_audit)

    def _with(self, model: str) -> Config:
        """The config in which this model plays by default: one that the config names, or a model
        of the default endpoint."""
        config = self._config
        configured = config.models.get(model)
        default = configured or config.default_model().with_model(model)
        return config.model_copy(update={"models": {**config.models, "default": default}})


async def _only_model(config: Config) -> str:
    model = await configuration.open_model(config.default_model())
    try:
        return model.name
    finally:
        await model.close()
