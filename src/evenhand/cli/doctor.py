"""`evenhand doctor`: what is installed, which endpoint answers, what it supports, and whether a
proxy of LiteLLM lets unrepaired words through."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from evenhand.cli.codes import ERROR, INCONCLUSIVE
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    ModelName,
    Params,
    further_params,
    group_for,
    key_in,
)
from evenhand.cli.screen import err, out, print_json, waiting
from evenhand.core.errors import UserError, choices_for
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.experiments.installation import DoctorCheck, EndpointCheck, Prober, installed
from evenhand.gateway.litellm_check import Passage, passages_of, way_through
from evenhand.views import catalog

_CONFIGURE = (
    "docs/deploy-gateway.md has the one configuration that repairs streams, and its limits."
)


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
    passages = asyncio.run(_passages(url, model, key_in(key_env)))
    if json:
        print_json({"passages": passages})
    else:
        _show(passages)
    outcomes = {passage.found for passage in passages}
    if outcomes != {"repaired"}:
        raise typer.Exit(ERROR if "leaks" in outcomes else INCONCLUSIVE)


async def _passages(url: str, model: str | None, key: str | None) -> list[Passage]:
    return await passages_of(
        url, model=model, key=key, trying=lambda way: waiting(f"trying {way} …")
    )


def _show(passages: list[Passage]) -> None:
    styles = {"repaired": "green", "leaks": "bold red", "inconclusive": "yellow"}
    table = Table.grid(padding=(0, 2, 0, 0))
    for passage in passages:
        mark = Text(passage.found, style=styles[passage.found])
        table.add_row(mark, way_through(passage.route, passage.stream), Text(passage.said))
    out.print(table)
    if any(passage.found == "leaks" for passage in passages):
        out.print(_CONFIGURE, highlight=False)


_KEY = "key"
_WIDEST = len("log-probabilities")  # of what a line is about


doctor = typer.Typer(
    cls=group_for("endpoint", bare=True),
    help="Check the installation and the endpoint.",
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
    param: Params = None,
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
    params = further_params(param or ())
    settings = _of_judge(configuration.load(config, base_url, model, params=params), judge)
    prober = Prober(configuration.probe_folder(), waiting) if probe else None

    async def examine() -> list[DoctorCheck]:
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
        raise UserError(
            f"--judge: the config has no model {judge!r}. "
            f"{choices_for(judge, sorted(config.models))}"
        )
    return config.model_copy(update={"models": {"default": config.models[judge]}})


async def _all(config: Config, prober: Prober | None = None) -> AsyncIterator[DoctorCheck]:
    """What is installed, which keys go where, then what the endpoint is and can do and, if asked
    for, what its model is good for; each when it is known."""
    for finding in (*installed(), *_keys(config)):
        yield finding
    model = config.default_model()
    check = EndpointCheck(
        address=model.address,
        client=partial(configuration.endpoint, model),
        choose=partial(configuration.choose_model, model),
        waiting=waiting,
        prober=prober,
    )
    async for finding in check.run():
        yield finding


def _keys(config: Config) -> Iterator[DoctorCheck]:
    """Which variable goes to which host, said before anything is sent."""
    for what, destination in config.key_places().items():
        state = configuration.state_of_key(destination.variable)
        yield DoctorCheck(
            _KEY, True, f"{destination.variable}{state} goes to {destination.origin} for {what}"
        )


def _line(finding: DoctorCheck) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=2)
    table.add_column(width=_WIDEST)
    mark = Text("ok", style="green") if finding.good else Text("NO", style="bold red")
    if finding.good is None:
        mark = Text("")
    table.add_row(mark, finding.what, Text(catalog.text(finding.said)))  # the server may say "[/]"
    return table
