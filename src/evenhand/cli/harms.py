"""`evenhand dev harms` and `audit harm`: custom harm policies and the audit of their judge."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from evenhand.api.judging import harm_check
from evenhand.cli.execution import show_measured
from evenhand.cli.options import ConfigFile, Full, Json, RunCommand, names_in, with_run_options
from evenhand.cli.screen import out, print_json
from evenhand.experiments import config as configuration
from evenhand.experiments.harms import list_harms
from evenhand.experiments.measuring import concluded
from evenhand.instruments.harm.certificate import FILE


def harms(config: ConfigFile = None, json: Json = False) -> None:
    """List the harm policies of the config and their certificates.

    Example: evenhand dev harms
    """
    settings = configuration.load(config, None, None)
    rows = [
        {name: "" if value is None else value for name, value in asdict(line).items()}
        for line in list_harms(settings)
    ]
    if json:
        print_json(rows)
        return
    if not rows:
        out.print(
            "the config has no [harms.NAME]; docs/harm-policies.md explains how to write a "
            "harm policy"
        )
        return
    table = Table("harm", "judge", "harmful", "benign", "certificate", box=None)
    for row in rows:
        table.add_row(*map(str, row.values()))
    out.print(table)


def _check(
    options: RunCommand,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Check this harm policy, which `evenhand dev harms` lists."
        ),
    ],
    sets: Annotated[
        str | None,
        typer.Option(
            help="Also check benign texts of these datasets, separated by commas, such as "
            "hatecheck: docs/scorers.md."
        ),
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Set the sample size per dataset.")] = 100,
    full: Full = False,
) -> None:
    """Check a custom harm policy and write its certificate.

    The check estimates the false-negative and false-positive rates of the judge, also by group. It
    also counts verdicts that flip if the words change or yes and no swap places.

    The judge reads every labeled example in three forms. Writes report.json and
    harm-certificate.json into the run folder, and the certificate into the folder that [judges] in
    the config names. Exits with code 2 if fewer than 95% of the verdicts are parseable, with 3 at a
    cap. A failed check is a result, with code 0.

    Example: evenhand audit harm tenants --out runs/harm-tenants
    """
    settings = options.load()
    if options.config is None:
        configuration.harm_by_name(settings, name).refuse_outside(Path.cwd())
    measurement, request = harm_check(
        settings,
        name,
        options.settings,
        configuration.data_folder(),
        sets=names_in(sets or ""),
        sample=sample,
    )
    written = f"{options.out}/report.json, {FILE}; a copy of {FILE} is in {settings.certificates}"
    show_measured(
        measurement, request, settings, concluded, json=options.json, full=full, written=written
    )


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
