"""`evenhand doctor litellm`: does a proxy of LiteLLM let unrepaired words through?"""

import asyncio
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from evenhand.cli.codes import ERROR, OPEN
from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json, waiting
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.gateway.litellm_check import Passage, passages_of, way_through

_CONFIGURE = "docs/gateway.md has the one configuration that repairs streams, and its limits."


def litellm(
    url: Annotated[str, typer.Argument(metavar="URL", help="The proxy, such as http://host:4000.")],
    model: Annotated[
        str | None, typer.Option(help="A model of the proxy. Default: the first that it lists.")
    ] = None,
    key_env: Annotated[
        str | None, typer.Option(help="The environment variable with a key of the proxy.")
    ] = None,
    json: Json = False,
) -> None:
    """Look whether a LiteLLM proxy with our guardrail lets unrepaired words through.

    Its model is asked to repeat a phrase that the guardrail replaces: plain and streamed, on two
    routes. Costs four short calls. Ends with 1 if the phrase comes through anywhere, and with 4 if
    one cannot be told because the model did not repeat it.

    Example: evenhand doctor litellm http://127.0.0.1:4000 --key-env LITELLM_KEY
    """
    key = configuration.secret(key_env)
    if key_env and not key:
        raise UserError(f"--key-env {key_env}: this variable is not set, or is empty")
    passages = asyncio.run(_passages(url, model, key))
    if json:
        print_json({"passages": passages})
    else:
        _show(passages)
    outcomes = {passage.found for passage in passages}
    if outcomes != {"repaired"}:
        raise typer.Exit(ERROR if "leaks" in outcomes else OPEN)


async def _passages(url: str, model: str | None, key: str | None) -> list[Passage]:
    return await passages_of(
        url, model=model, key=key, trying=lambda way: waiting(f"trying {way} …")
    )


def _show(passages: list[Passage]) -> None:
    styles = {"repaired": "green", "leaks": "bold red", "open": "yellow"}
    table = Table.grid(padding=(0, 2, 0, 0))
    for passage in passages:
        mark = Text(passage.found, style=styles[passage.found])
        table.add_row(mark, way_through(passage.route, passage.stream), Text(passage.said))
    out.print(table)
    if any(passage.found == "leaks" for passage in passages):
        out.print(_CONFIGURE, highlight=False)
