"""These options are shared by several commands, as is the opening of the models that they name."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand import config as configuration
from evenhand.agents import Agent, Cast
from evenhand.config import Config, ModelConfig
from evenhand.errors import UserError
from evenhand.models.base import ChatModel

BaseUrl = Annotated[
    str | None,
    typer.Option(help="An OpenAI-compatible endpoint.  [env: EVENHAND_BASE_URL]"),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model", help="The model there; not needed if it has one.  [env: EVENHAND_MODEL]"
    ),
]
SystemPrompt = Annotated[
    str | None,
    typer.Option(
        "--system",
        metavar="TEXT|@FILE",
        help="The system prompt of the model under test. Agents that write get it, judges do not.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="A config file. Default: evenhand.toml, if there is one."),
]
PriceFile = Annotated[
    Path | None,
    typer.Option("--prices", help="A TOML file of prices. Default: the prices in the config."),
]
CertificateFolder = Annotated[
    Path | None,
    typer.Option(
        "--certificates", help="A folder of judges' certificates. Default: the one in the config."
    ),
]
MethodName = Annotated[str, typer.Option("--method", help="One of those `evenhand methods` lists.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method, as name=value. May be repeated."),
]
WordingName = Annotated[
    str | None,
    typer.Option(
        "--wording",
        help="paper: the intent of its paper's prompts (mabrf, stardtox). 1 to 3: the same task in "
        "other words (default). Default: ours.",
    ),
]
MaxTokens = Annotated[
    int | None, typer.Option(min=16, help="The longest reply, in tokens. Default: 1024.")
]
Full = Annotated[bool, typer.Option("--full", help="Show every estimate, group and table.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def system_prompt(text: str | None) -> str | None:
    """The system prompt that --system gives: its words, or those of the file behind the @."""
    if text is None:
        return None
    words = text
    if text.startswith("@"):
        try:
            words = Path(text[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"--system {text}: the file cannot be read: {error}") from None
    if not words.strip():
        raise UserError(f"--system {text}: there are no words in it".replace("  ", " "))
    return words.strip()


async def open_model(config: ModelConfig) -> ChatModel:
    """Open the endpoint of a config, checked: it answers, and it has the model."""
    endpoint = configuration.endpoint(config, config.model or "")
    try:
        models = await endpoint.list_models()
    finally:
        await endpoint.close()
    return configuration.endpoint(config, pick(config, models))


def pick(config: ModelConfig, models: tuple[str, ...] | None) -> str:
    if config.model is None:
        if models and len(models) == 1:
            return models[0]
        raise UserError(
            f"say which model of {config.address} to use, with --model or EVENHAND_MODEL; "
            f"it has: {', '.join(models) if models else 'no list of them'}"
        )
    if models and config.model not in models:
        raise UserError(
            f"{config.address} has no model {config.model!r}; it has: {', '.join(models)}"
        )
    return config.model


async def open_cast(config: Config, agents: Iterable[Agent[Any]]) -> Cast:
    """Open the cast for the agents of a method, with every model that a role or the default
    uses."""
    used = {"default", *(name for name in config.cast.values() if name in config.models)}
    opened = await asyncio.gather(*(open_model(config.models[name]) for name in sorted(used)))
    models = dict(zip(sorted(used), opened, strict=True))
    return configuration.build_cast(config, models, agents)
