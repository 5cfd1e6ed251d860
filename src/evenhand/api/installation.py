"""Check this installation and an endpoint, list methods, start a plugin package, and serve a local
model or the viewer until the call is canceled."""

import asyncio
import re
from collections.abc import Callable
from functools import partial
from importlib import resources, util
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal, NoReturn

from evenhand.api import inputs
from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.core.new_files import write_new
from evenhand.experiments import config as configuration
from evenhand.experiments import demo as demonstration
from evenhand.experiments.demo import PlayedPart
from evenhand.experiments.dossiers import combined_report
from evenhand.experiments.installation import (
    DoctorCheck,
    EndpointCheck,
    MethodDescription,
    Prober,
    described_methods,
    installed,
)
from evenhand.instruments.actions.scenario import scenario_names
from evenhand.models import Endpoint
from evenhand.models.local_server import ServerRequest, start

Kind = Literal["instrument", "method", "scorer", "scenario"]
_GROUPS: dict[Kind, registry.Group] = {
    "instrument": "instruments",
    "method": "methods",
    "scorer": "scorers",
}
# Words of the command line and of the config that cannot be names of parts.
KEPT = {
    "instrument": ("likelihood",),
    "method": ("usual",),
    "scorer": ("offline", "staged", "wordlist", "regard"),
}
LONGEST = 40  # our choice: a name stands in commands, tables and lines of code


def write(kind: Kind, name: str, into: Path) -> Path:
    """Write the package of a plugin into a folder, or a scenario, which is one file.

    Args:
        kind: What to write: an instrument, a method, a scorer or a scenario.
        name: Its name; a package is called `evenhand_<name>`.
        into: The folder that the package's own folder goes into, or the file.

    Returns:
        The package's own folder, or the file.

    Raises:
        UserError: If the name is not valid or taken, or the folder cannot be made.
    """
    _check(kind, name)
    if kind == "scenario":
        text = (resources.files("evenhand.templates") / kind / "new_scenario.toml").read_text(
            "utf-8"
        )
        file = into / f"{name}.toml"
        write_new(file, _renamed(text, _words(kind, name)).encode())
        return file
    package = f"evenhand_{name}"
    if util.find_spec(package) is not None:
        raise UserError(f"The package {package} is already installed. Choose another name.")
    folder = into / package
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UserError(
            f"{folder} already exists. Choose another name, or another folder with --into."
        ) from None
    except NotADirectoryError:
        raise UserError(f"{into} is not a folder: name one with --into") from None
    _copy(resources.files("evenhand.templates") / kind, folder, _words(kind, name))
    return folder


def _check(kind: Kind, name: str) -> None:
    """Refuse a name that is taken or is not a valid module name."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or len(name) > LONGEST:
        raise UserError(
            f"{name!r} is not a valid name: use at most {LONGEST} small letters, digits and single "
            "underscores, with a letter first, such as job_titles"
        )
    taken = scenario_names() if kind == "scenario" else registry.names(_GROUPS[kind])
    if name in KEPT.get(kind, ()) or name in taken:
        raise UserError(f"The {kind} {name!r} already exists. Choose another name.")


def _words(kind: Kind, name: str) -> dict[str, str]:
    """What stands in the files, and what takes its place: a name as a word of code, of a class, of
    a package index and of a title."""
    words = name.split("_")
    return {
        f"new_{kind}": name,
        f"New{kind.capitalize()}": "".join(map(str.capitalize, (*words, kind))),
        f"new-{kind}": "-".join(words),
        f"New {kind}": " ".join(words).capitalize(),
    }


def _copy(template: Traversable, folder: Path, words: dict[str, str]) -> None:
    for source in template.iterdir():
        if source.name.startswith((".", "__pycache__")):  # left there by tools
            continue
        target = folder / _renamed(source.name, words)
        if source.is_dir():
            target.mkdir()
            _copy(source, target, words)
        else:
            target.write_text(_renamed(source.read_text("utf-8"), words), "utf-8")


def _renamed(text: str, words: dict[str, str]) -> str:
    for old, new in words.items():
        text = text.replace(old, new)
    return text


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
    probe_judges: bool = False,
) -> tuple[DoctorCheck, ...]:
    """Check what is installed, whether an endpoint answers, and what its model can do.

    Args:
        base_url: An OpenAI-compatible endpoint.
        model: The model. Not needed if the endpoint has one.
        api_key: The key of the endpoint.
        probe: Also make 48 short calls to find out what the model is good for.
        probe_judges: Also test the judges of mabrf, debates and statements on texts with planted
            bias, as JSON and by log-probability. Includes `probe`; 180 calls in all.

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
        prober=Prober.of(configuration.probe_folder(), probe=probe, judges=probe_judges),
    )
    return (*installed(), *[line async for line in check.run()])


async def list_methods(name: str | None = None) -> dict[str, MethodDescription]:
    """Describe the methods that are installed, or one of them.

    Args:
        name: The name of a method. Defaults to all.

    Returns:
        What each does, its calls per item and its settings, by name.

    Raises:
        UserError: If no method has this name.
    """
    return await asyncio.to_thread(described_methods, name)


async def new(kind: Kind, name: str, *, into: str | Path = ".") -> Path:
    """Write a package for your own instrument, method or scorer, or the file of a scenario.

    Args:
        kind: What to write.
        name: Its name: lowercase letters, digits and underscores.
        into: The folder to write it into.

    Returns:
        The folder of the package, or the file.

    Raises:
        UserError: If the name is taken or not a name.
    """
    return await asyncio.to_thread(partial(write, kind, name, Path(into)))


def _silent(address: str) -> None:
    del address


async def serve_local(
    model: str | None = None,
    *,
    weights: str | Path | None = None,
    port: int = 8080,
    slots: int = 4,
    context: int = 4096,
    threads: int | None = None,
    ready: Callable[[str], None] = _silent,
) -> NoReturn:
    """Serve a model on this machine with llama.cpp, until this call is cancelled.

    Args:
        model: A model that `evenhand serve-local --list` shows. Defaults to smollm2.
        weights: A GGUF file: the weights of `model`, or any other.
        port: Port at 127.0.0.1.
        slots: Number of requests that are answered at the same time.
        context: Tokens of context per slot.
        threads: CPU threads. Defaults to all cores but one.
        ready: Receives the address of the server.

    Raises:
        UserError: If llama.cpp is not installed or cannot start.
    """
    request = ServerRequest(
        model=model,
        weights=inputs.path_of(weights),
        port=port,
        slots=slots,
        context=context,
        threads=threads,
    )
    server = await asyncio.to_thread(start, request)
    ready(server.address)
    await _until_cancelled()


async def runs_view(
    run: str | Path,
    *,
    against: str | Path | None = None,
    port: int = 0,
    ready: Callable[[str], None],
) -> NoReturn:
    """Show a run, or a folder of runs, in a browser on this machine, until this call is cancelled.

    Args:
        run: A run folder or a folder of runs, as path or URL.
        against: An earlier run of the same items as a single run.
        port: Port at 127.0.0.1. 0 chooses a free one.
        ready: Receives the address. Whoever has it can read the run.

    Raises:
        UserError: If the viewer is not installed, or the run cannot be read.
    """
    from evenhand.views.viewer import opened  # noqa: PLC0415 - it needs the extra

    with await asyncio.to_thread(opened, run, against, port, combine=combined_report) as serving:
        ready(serving.link)
        await _until_cancelled()


async def _until_cancelled() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets this event")
