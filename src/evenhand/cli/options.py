"""Options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import orjson
import typer
from pydantic import JsonValue

from evenhand.core.errors import UserError

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
Full = Annotated[bool, typer.Option("--full", help="Show every estimate, group and table.")]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="NAME=VALUE", help="A further field of every request. May be repeated."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def further_params(typed: Sequence[str]) -> dict[str, JsonValue]:
    """The fields that --param gives: numbers, true, false, null and JSON as such, all else as
    text."""
    params: dict[str, JsonValue] = {}
    for each in typed:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise UserError(f"--param {each}: write it as NAME=VALUE")
        try:
            params[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            params[name] = value
    return params


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
