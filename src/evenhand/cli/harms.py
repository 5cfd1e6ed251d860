"""`evenhand harms …`: harms of the user's own, and the check that lets them be used."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.table import Table

from evenhand import config as configuration
from evenhand.cli.execution import end
from evenhand.cli.forecast import show_forecast
from evenhand.cli.options import ConfigFile, Json
from evenhand.cli.run_options import RunCommand, with_run_options
from evenhand.cli.scorer_texts import gathered
from evenhand.cli.screen import err, out, print_json
from evenhand.cli.watching import Terminal
from evenhand.config import Config, ModelConfig
from evenhand.errors import UserError
from evenhand.experiments import running
from evenhand.experiments.request import Request, with_player
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.instruments.harm.audit import audit
from evenhand.instruments.harm.certificate import FILE, holding, refuse_unreadable
from evenhand.instruments.harm.settings import OwnHarm
from evenhand.instruments.harm.source import HarmSource, benign
from evenhand.instruments.judge.certificate import keep
from evenhand.instruments.scorer import ToxicitySets
from evenhand.methods.harm_check import AS_WRITTEN, SWAPPED, HarmCheck
from evenhand.models.base import ChatModel
from evenhand.scorers import ScorerModel
from evenhand.scorers.harm import HarmJudge
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.views import files, terminal_of

harms = typer.Typer(
    help="Harms of your own: a policy in words, and the check that lets it be used.",
    no_args_is_help=True,
)


_KINDS = ("harmful", "benign")


@harms.command("list")
def list_(config: ConfigFile = None, json: Json = False) -> None:
    """The harms of the config file, and whether each may be used.

    Example: evenhand harms list
    """
    settings = configuration.load(config, None, None)
    rows = [_row(settings, name) for name in settings.harms]
    if json:
        print_json(rows)
        return
    if not rows:
        out.print("the config has no [harms.NAME]; docs/harms.md says how one is written")
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
    full: Annotated[bool, typer.Option("--full", help="Show every table.")] = False,
) -> None:
    """Check a harm of your own and write its certificate.

    How often does its judge miss the harm, and flag what is none? By which group, and does its
    verdict turn with other words or with yes and no swapped?

    Asks about every labelled example in three forms. Writes report.json and harm-certificate.json
    into the run folder, and the certificate into the folder that [judges] in the config names. Ends
    with code 2 if fewer than 95 % of the verdicts could be read, with 3 at a cap. That a harm fails
    its check is a result, and code 0.

    Example: evenhand harms check tenants --out runs/harm-tenants
    """
    settings = options.load()
    harm = configuration.harm_by_name(settings, name)
    if options.config is None:
        harm.refuse_outside(Path.cwd())
    model = settings.models[harm.config.judge]
    folder = refuse_unreadable(settings.certificates)
    source = HarmSource(harm, _sets(sets, sample))
    alone = _alone(settings, model)
    request = options.request(source, HarmCheck(), alone, is_audit=True)
    for agent, swapped in ((AS_WRITTEN, False), (SWAPPED, True)):
        request = with_player(request, agent.role, partial(_player, harm, model, swapped))
    ended = asyncio.run(running.execute(request, Terminal(alone)))
    if ended.pilot is not None:
        show_forecast(request.settings, ended, json=options.json)
        return
    if ended.early:
        end(ended, below_floor=False)
    covered = _conclude(request, folder, json=options.json, full=full)
    end(ended, below_floor=covered < COVERAGE_FLOOR)


harms.command("check")(
    with_run_options(
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
)


def _alone(settings: Config, model: ModelConfig) -> Config:
    """The config with the judge as its only model: no further one is needed, so none is looked
    at."""
    return settings.model_copy(update={"models": {"default": model}, "cast": {}, "search": None})


def _player(harm: OwnHarm, model: ModelConfig, swapped: bool) -> ChatModel:
    endpoint = configuration.endpoint(model, harm.model)
    return ScorerModel(HarmJudge(harm.asked, endpoint, swapped=swapped))


def _sets(text: str | None, sample: int) -> dict[str, pl.DataFrame]:
    if text is None:
        return {}
    names = [name.strip() for name in text.split(",") if name.strip()]
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


def _conclude(request: Request, folder: Path, *, json: bool, full: bool) -> float:
    """Write and show what was found; gives the share of verdicts that could be read."""
    report, certificate = audit(RunReader(request.settings.out), folder)
    files.write_report(report, request.settings.out)
    open_folder(request.settings.out).replace(FILE, certificate.to_bytes())
    if json:
        print_json(files.plain(report.to_dict()))
    else:
        out.print(terminal_of(report, full=full))
        out.print(f"{request.settings.out}/report.json, {FILE}", style="dim")
    err.print(f"certificate kept as {keep(certificate, folder)}", soft_wrap=True)
    return 1 - int(report.more["missing"]) / len(request.source)
