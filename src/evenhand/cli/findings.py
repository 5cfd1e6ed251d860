"""`evenhand compare`, `stability` and `report`: results of existing runs."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evenhand.api.findings import stability as studied
from evenhand.api.inputs import compared_folders
from evenhand.cli.codes import UNFINISHED
from evenhand.cli.options import CertificateFolder, ConfigFile, Full, Json, PriceFile, names_in
from evenhand.cli.screen import err, out, print_finding, print_json
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments import run_folders
from evenhand.experiments.dossiers import dossier_of, is_measured, runs_in
from evenhand.views import save, terminal_of
from evenhand.views.files import plain


def compare(
    before: Annotated[
        str,
        typer.Argument(
            metavar="RUN_A", help="Compare with this run, or with several, separated by commas."
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(metavar="RUN_B", help="Evaluate this run, or several, separated by commas."),
    ],
    full: Full = False,
    json: Json = False,
) -> None:
    """Compare two runs item by item.

    The result of each metric is improved, regressed or inconclusive. With several runs of a system
    (A1,A2,A3 B1,B2,B3), each item counts with its mean over these runs. Exits with code 2 if a run
    is not finished.

    Example: evenhand compare runs/bbq-default runs/bbq-stardtox
    """
    comparisons = compared_folders(names_in(before), names_in(after))
    if json:
        several = [plain(comparison.to_dict()) for comparison in comparisons]
        print_json(several[0] if len(several) == 1 else {"sets": several})
    else:
        for comparison in comparisons:
            out.print(terminal_of(comparison, full=full))
    if any(left for comparison in comparisons for left in comparison.not_run):
        raise typer.Exit(UNFINISHED)


def stability(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…", help="Read these runs over the same items, of one system or several."
        ),
    ],
    full: Full = False,
    json: Json = False,
) -> None:
    """Estimate how much a score depends on order, wording and seed.

    The command reads runs over the same items that differ in --order-seed, --wording N or --seed,
    ideally in every combination. For several systems, it tests each pair for a difference, and only
    if the dependability is at least 0.5 with statistical significance.

    Example: evenhand stability runs/order0 runs/order1 runs/order2
    """
    print_finding(asyncio.run(studied(runs)), json=json, full=full)


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…",
            help="Read these run folders, and compare the others with the first where they share "
            "items.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the report to this .html file.")
    ] = None,
    pdf: Annotated[
        Path | None, typer.Option(help="Also print the page to this .pdf file, with Chromium.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the report to this .md file, without images.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Set the title of the page.")] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Write the first screen alone, as one sheet.")
    ] = False,
    certificates: CertificateFolder = None,
    prices: PriceFile = None,
    config: ConfigFile = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Print or write the report of runs: terminal, HTML, PDF.

    Without a file, the command prints the report of one run. With a file, it writes a page that
    needs no network and runs no script. The page begins with the answer, three numbers, a chart and
    the next step. Changes, guardrails, groups, examples, judges, cost and methods follow. --json
    prints the report of one measured run, or that of all runs, with or without a file. Exits with
    code 2 if a run is not finished.

    Example: evenhand report runs/now runs/after --out report.html
    """
    files = {".html": out, ".pdf": pdf, ".md": markdown}
    alone = len(runs) == 1 and (not json or is_measured(runs[0]))
    if alone and not any(files.values()):
        _print_report(runs[0], prices=prices, config=config, full=full, json=json)
        return
    _refuse_files(files, json=json)
    settings = configuration.load(config, None, None, prices=prices)
    dossier = dossier_of(
        [(run, None) for location in runs for run in runs_in(location)],
        title=title,
        prices=settings.price_table,
        certificates=certificates or settings.certificates,
    )
    written = [str(path) for path in files.values() if path is not None]
    save(dossier, *written, full=not summary)
    for name in written:
        err.print(Text(f"wrote {name}"))
    if json and alone:
        _print_report(runs[0], prices=prices, config=config, full=full, json=True)
    elif json:
        print_json(dossier.to_dict())
    if dossier.unfinished:
        raise typer.Exit(UNFINISHED)


def _refuse_files(files: Mapping[str, Path | None], *, json: bool) -> None:
    """Refuse a report of several runs that goes nowhere, and a file with another ending."""
    if not any(files.values()) and not json:
        raise UserError(
            "A report of several runs needs a file: add --out report.html, --pdf report.pdf, or "
            "--json"
        )
    for ending, path in files.items():
        if path is not None and path.suffix != ending:
            raise UserError(f"{path}: the name must end in {ending}")


def _print_report(
    run: str, *, prices: Path | None, config: Path | None, full: bool, json: bool
) -> None:
    settings = configuration.load(config, None, None, prices=prices)
    result, not_run = run_folders.result_again(run, settings.price_table)
    print_finding(result, json=json, full=full)
    if not_run:
        raise typer.Exit(UNFINISHED)
