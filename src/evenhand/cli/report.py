"""`evenhand report`: one page of what runs showed, to look at and to hand over."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evenhand.cli.codes import UNFINISHED
from evenhand.cli.options import CertificateFolder, ConfigFile, Json, PriceFile
from evenhand.cli.screen import err, print_json
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.dossiers import dossier_of, runs_in
from evenhand.views import save
from evenhand.views.files import plain


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…",
            help="Run folders; the first is what the others are "
            "compared with, where they asked the same items.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page to write: a name.html.")
    ] = None,
    pdf: Annotated[
        Path | None, typer.Option(help="The same page as a PDF, printed by Chromium: a name.pdf.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="The same as Markdown, without pictures: a name.md.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    certificates: CertificateFolder = None,
    prices: PriceFile = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Write a page of what runs showed, to look at and hand over.

    It is one file that needs no network and runs no script. It says the answer in words, what got
    worse, who is affected, before and after, cost, over-correction, whether the judges were
    checked, shows answers chosen by a rule, and ends with what all of it rests on. Ends with code
    2 if a run is not finished.

    Example: evenhand report runs/now runs/after --out report.html
    """
    files = {".html": out, ".pdf": pdf, ".md": markdown}
    if not any(files.values()) and not json:
        raise UserError("say what to write: --out report.html, --pdf report.pdf, or --json")
    for ending, path in files.items():
        if path is not None and path.suffix != ending:
            raise UserError(f"{path}: the name must end in {ending}")
    settings = configuration.load(config, None, None, prices=prices)
    folder = certificates or settings.certificates
    dossier = dossier_of(
        [(run, None) for location in runs for run in runs_in(location)],
        title=title,
        prices=settings.prices.prices() if settings.prices else None,
        certificates=folder,
    )
    written = [str(path) for path in files.values() if path is not None]
    save(dossier, *written)
    for name in written:
        err.print(Text(f"wrote {name}"))
    if json:
        print_json(plain(dossier.to_dict()))
    if dossier.unfinished:
        raise typer.Exit(UNFINISHED)
