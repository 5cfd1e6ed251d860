"""`evenhand harms …`: harms of the user's own, and the check that lets them be used."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.table import Table

from evenhand.api.configured import ConfigServices
from evenhand.cli.execution import Terminal, end, show_dry_run, show_forecast
from evenhand.cli.options import ConfigFile, Full, Json, RunCommand, names_in, with_run_options
from evenhand.cli.screen import err, out, print_finding, print_json
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config, ModelConfig
from evenhand.experiments.measuring import Measurement, concluded
from evenhand.experiments.measuring import measure as measured
from evenhand.experiments.request import with_player
from evenhand.instruments.harm.certificate import FILE, holding, refuse_unreadable
from evenhand.instruments.harm.instrument import HarmAudit
from evenhand.instruments.harm.policy import OwnHarm, benign
from evenhand.instruments.scorer.sets import ToxicitySets, gathered
from evenhand.methods.judge_text import AS_WRITTEN, SWAPPED, HarmCheck
from evenhand.models.base import ChatModel
from evenhand.scorers import ScorerModel
from evenhand.scorers.harm import HarmJudge

_KINDS = ("harmful", "benign")


def harms(config: ConfigFile = None, json: Json = False) -> None:
    """List the harm policies of the config and their certificates.

    Example: evenhand dev harms
    """
    settings = configuration.load(config, None, None)
    rows = [_row(settings, name) for name in settings.harms]
    if json:
        print_json(rows)
        return
    if not rows:
        out.print("the config has no [harms.NAME]; docs/harm-policies.md says how one is written")
        return
    table = Table("harm", "judge", "harmful", "benign", "certificate", box=None)
    for row in rows:
        table.add_row(*map(str, row.values()))
    out.print(table)


def _row(settings: Config, name: str) -> dict[str, str | int]:
    row: dict[str, str | int] = {"harm": name, "judge": settings.harms[name].judge}
    try:
        harm = configuration.harm_by_name(settings, name)
        certificate = holding(harm, settings.certificates)
        counts = {kind: harm.examples.count(harm=kind == "harmful") for kind in _KINDS}
    except UserError as problem:
        return {**row, **dict.fromkeys(_KINDS, ""), "certificate": str(problem)}
    return {**row, **counts, "certificate": certificate if isinstance(certificate, str) else "pass"}


def _check(
    options: RunCommand,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A harm that `list` shows.")],
    sets: Annotated[
        str | None,
        typer.Option(
            help="Benign texts of these sets too, with commas, such as hatecheck: docs/scorers.md."
        ),
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Texts of each set.")] = 100,
    full: Full = False,
) -> None:
    """Check a harm of your own and write its certificate.

    How often does its judge miss the harm, and flag what is none? By which group, and does its
    verdict turn with other words or with yes and no swapped?

    Asks about every labelled example in three forms. Writes report.json and harm-certificate.json
    into the run folder, and the certificate into the folder that [judges] in the config names. Ends
    with code 2 if fewer than 95 % of the verdicts could be read, with 3 at a cap. That a harm fails
    its check is a result, and code 0.

    Example: evenhand audit harm tenants --out runs/harm-tenants
    """
    settings = options.load()
    harm = configuration.harm_by_name(settings, name)
    if options.config is None:
        harm.refuse_outside(Path.cwd())
    model = settings.models[harm.config.judge]
    audit = HarmAudit(harm, _sets(sets, sample), refuse_unreadable(settings.certificates))
    measurement = Measurement(
        instrument=audit, options=audit.options(), services=ConfigServices(settings)
    )
    items = measurement.items(configuration.data_folder())
    alone = settings.model_copy(update={"models": {"default": model}, "cast": {}, "search": None})
    request = options.request(items, HarmCheck(), alone, is_audit=True)
    for agent, swapped in ((AS_WRITTEN, False), (SWAPPED, True)):
        request = with_player(request, agent.role, partial(_player, harm, model, swapped))
    if request.settings.dry_run:
        show_dry_run({options.out: request}, json=options.json)
    result = asyncio.run(measured(measurement, request, Terminal(alone)))
    if result.ended.pilot is not None:
        show_forecast(request.settings, result.ended, json=options.json)
        return
    if result.ended.early or result.report is None:
        end(result.ended, below_floor=True)
        return
    finding = concluded(audit, measurement.options, result.report)
    print_finding(
        finding, json=options.json, full=full, written=f"{options.out}/report.json, {FILE}"
    )
    err.print(f"certificate kept in {settings.certificates}", soft_wrap=True)
    end(result.ended, below_floor=result.report.coverage.below_floor)


def _player(harm: OwnHarm, model: ModelConfig, swapped: bool) -> ChatModel:
    endpoint = configuration.endpoint(model, harm.model)
    return ScorerModel(HarmJudge(harm.asked, endpoint, swapped=swapped))


def _sets(text: str | None, sample: int) -> dict[str, pl.DataFrame]:
    if text is None:
        return {}
    names = names_in(text)
    data = configuration.data_folder()
    tables, left_out = gathered(ToxicitySets(local=data.local, cache=data.cache), names)
    texts = benign(tables, sample)
    empty = [name for name, table in texts.items() if table.is_empty()]
    if empty or left_out:
        raise UserError(
            f"--sets: {(empty or list(left_out))[0]} has no benign texts that name a group, or is "
            "not at hand; sets that do: hatecheck, identity_templates, toxigen"
        )
    return texts


check = with_run_options(
    _check,
    without=(
        "method",
        "wording",
        "set_",
        "engine",
        "actors",
        "require_certified_judges",
        "system",
    ),
)
