"""`evenhand doctor`: check the installation, the endpoint and a LiteLLM proxy."""

import asyncio
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
from evenhand.experiments import config as configuration
from evenhand.experiments.installation import KEY, DoctorCheck, Prober, checks_of
from evenhand.gateway.litellm_check import Passage, passages_of, way_through
from evenhand.views import catalog

_CONFIGURE = "docs/deploy-gateway.md shows the configuration that repairs streams, and its limits."


def litellm(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="Check the proxy at this address, such as http://host:4000."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="Ask this model of the proxy. Default: the first that it lists."),
    ] = None,
    key_env: Annotated[
        str | None, typer.Option(help="Read the key of the proxy from this environment variable.")
    ] = None,
    json: Json = False,
) -> None:
    """Look whether a LiteLLM proxy with our guardrail lets unrepaired words through.

    The command asks the model to repeat a phrase that the guardrail replaces: plain and streamed,
    on two routes. It makes four short calls. Exits with code 1 if the phrase comes through
    anywhere. Exits with code 4 if a check is inconclusive because the model did not repeat it.

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


_WIDEST = len("log-probabilities")  # the longest label of a line


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
        typer.Option(
            help="Check the model with this name in the config. Default: the default model."
        ),
    ] = None,
    config: ConfigFile = None,
    param: Params = None,
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Also test what the model can do, with 48 short calls."),
    ] = False,
    probe_judges: Annotated[
        bool,
        typer.Option(
            "--probe-judges",
            help="Also test the judges of mabrf, debates and statements on texts with planted "
            "bias, as JSON and by log-probability. Includes --probe; 180 calls in all.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Look at what is installed and at what the endpoint can do.

    The command prints each result as soon as it is available. A line with NO says what to do next.
    --probe tests whether the model reads, follows a schema and detects blunt bias, and how fast it
    is. The probe makes 48 short calls, one after the other, and stores its result. You can omit the
    word "endpoint".

    Example: evenhand doctor endpoint --probe --base-url http://127.0.0.1:8080/v1
    """
    settings = configuration.load(config, base_url, model, params=further_params(param or ()))
    settings = settings.with_default(judge) if judge else settings
    prober = Prober.of(configuration.probe_folder(), waiting, probe=probe, judges=probe_judges)

    async def examine() -> list[DoctorCheck]:
        findings = []
        async for finding in checks_of(settings, waiting, prober):
            findings.append(finding)
            if not json or finding.what == KEY:  # where keys go, before any request
                (err if json else out).print(_line(finding))
        return findings

    findings = asyncio.run(examine())
    healthy = all(finding.good is not False for finding in findings)
    if json:
        extra = {"probe": prober.result and prober.result.model_dump()} if prober else {}
        print_json({"healthy": healthy, "findings": findings, **extra})
    if not healthy:
        raise typer.Exit(1)


def _line(finding: DoctorCheck) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=2)
    table.add_column(width=_WIDEST)
    mark = Text("ok", style="green") if finding.good else Text("NO", style="bold red")
    if finding.good is None:
        mark = Text("")
    table.add_row(mark, finding.what, Text(catalog.text(finding.said)))  # the server may say "[/]"
    return table
