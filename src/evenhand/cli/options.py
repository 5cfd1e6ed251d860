"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

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
