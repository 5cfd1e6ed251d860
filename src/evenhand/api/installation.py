"""Check this installation and an endpoint, list methods, and begin a package of your own."""

import asyncio
from functools import partial
from pathlib import Path

from evenhand.api.scaffold import Kind, write
from evenhand.experiments import config as configuration
from evenhand.experiments import demo as demonstration
from evenhand.experiments.demo import PlayedPart
from evenhand.experiments.installation import (
    DoctorCheck,
    EndpointCheck,
    MethodDescription,
    Prober,
    described_methods,
    installed,
    silent,
)
from evenhand.models import Endpoint


async def demo(out: str | Path = "evenhand-demo") -> tuple[PlayedPart, ...]:
    """Play recorded runs back, without a model, and write a page of them.

    Args:
        out: The folder to write.

    Returns:
        Each part with its runs and its finding.

    Raises:
        UserError: If the folder holds something else.
    """
    return await asyncio.to_thread(demonstration.play, Path(out))


async def doctor_endpoint(
    base_url: str,
    *,
    model: str | None = None,
    api_key: str | None = None,
    probe: bool = False,
) -> tuple[DoctorCheck, ...]:
    """Check what is installed, whether an endpoint answers, and what its model can do.

    Args:
        base_url: An OpenAI-compatible endpoint.
        model: The model. Not needed if the endpoint has one.
        api_key: The key of the endpoint.
        probe: Also make 48 short calls to find out what the model is good for.

    Returns:
        One check per line. `good` is False where something is wrong.
    """

    def chosen(models: tuple[str, ...] | None) -> str:
        config = configuration.ModelConfig(base_url=base_url, model=model)
        return configuration.choose_model(config, models)

    check = EndpointCheck(
        address=base_url,
        client=lambda name: Endpoint(base_url, model=name, api_key=api_key),
        choose=chosen,
        prober=Prober(configuration.probe_folder(), silent) if probe else None,
    )
    return (*installed(), *[line async for line in check.run()])


async def list_methods(name: str | None = None) -> dict[str, MethodDescription]:
    """Describe the methods that are installed, or one of them.

    Args:
        name: The name of a method. Defaults to all.

    Returns:
        What each does, its calls per item and its settings, by name.

    Raises:
        UserError: If there is no method of this name.
    """
    return await asyncio.to_thread(described_methods, name)


async def new(kind: Kind, name: str, *, into: str | Path = ".") -> Path:
    """Write a package for an instrument, a method or a scorer of your own.

    Args:
        kind: What to write.
        name: Its name: lowercase letters, digits and underscores.
        into: The folder to write the package into.

    Returns:
        The folder of the package.

    Raises:
        UserError: If the name is taken or not a name.
    """
    return await asyncio.to_thread(partial(write, kind, name, Path(into)))
