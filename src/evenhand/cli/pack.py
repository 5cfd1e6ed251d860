"""`evenhand runs pack`: one file with all that somebody needs to check what runs showed;
`evenhand runs export`: a run in the form of another tool."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evenhand.cli.codes import ERROR, UNFINISHED
from evenhand.cli.options import CertificateFolder, ConfigFile, Json, PriceFile, group_for
from evenhand.cli.screen import err, print_finding, print_json
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.dossiers import runs_in
from evenhand.experiments.exchange import export as exported
from evenhand.experiments.pack_checks import verify as verified
from evenhand.experiments.packs import FRAMEWORKS, PackOptions
from evenhand.experiments.packs import make as made
from evenhand.views.export import FORMS

pack = typer.Typer(
    cls=group_for("make"),  # a pack is what the command is for
    help="Create or verify a signed evidence bundle.",
    no_args_is_help=True,
)


@pack.command()
def make(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…",
            help="Run folders on this disk; the first is what the others are compared with, where "
            "they asked the same items.",
        ),
    ],
    to: Annotated[Path, typer.Option("--out", "-o", help="The pack to write: a name.zip.")],
    title: Annotated[str | None, typer.Option(help="The title of the pack and its page.")] = None,
    light: Annotated[
        bool,
        typer.Option("--light", help="Leave the run folders out, and keep their hashes alone."),
    ] = False,
    framework: Annotated[
        list[str] | None,
        typer.Option(
            help="A framework to write a page for. May be repeated. Default: all of them, "
            f"{', '.join(FRAMEWORKS)}."
        ),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(help="Sign it with the private Ed25519 key in this PEM file.")
    ] = None,
    previous: Annotated[
        Path | None, typer.Option(help="The pack before this one, which it then names.")
    ] = None,
    certificates: CertificateFolder = None,
    prices: PriceFile = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Pack runs with their report, hashes, model card and a script that repeats every figure.

    The word "make" may be left out. The pack holds prompts and answers; --light leaves out all but
    the page's examples. The same runs give the same bytes. Ends with code 2 if a run is not
    finished.

    Example: evenhand runs pack make runs/now runs/after --out evidence.zip
    """
    if to.suffix != ".zip":
        raise UserError(f"{to}: the name must end in .zip")
    settings = configuration.load(config, None, None, prices=prices)
    wishes = PackOptions(
        title=title,
        light=light,
        frameworks=tuple(framework) if framework else FRAMEWORKS,
        key=sign,
        previous=previous,
        prices=settings.prices.prices() if settings.prices else None,
        certificates=certificates or settings.certificates,
    )
    evidence = made([run for location in runs for run in runs_in(location)], to, wishes)
    summary = f"wrote {to}: {len(evidence.runs)} runs, {evidence.figures:,} figures"
    err.print(Text(f"{summary}, {len(evidence.files):,} files"))
    if json:
        print_json(evidence.model_dump())
    if evidence.unfinished:
        raise typer.Exit(UNFINISHED)


@pack.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A pack.")],
    key: Annotated[
        Path | None,
        typer.Option(help="The public key, as PEM, of whom the pack should be signed by."),
    ] = None,
    previous: Annotated[
        Path | None, typer.Option(help="The pack that should be the one before this one.")
    ] = None,
    json: Json = False,
) -> None:
    """Check every byte of a pack, and repeat its figures from its runs.

    Looks at each file, the signature, the chain and the run folders, and makes all that follows
    from the runs again. Nothing of the pack is run. Ends with code 1 if anything differs, and with
    code 2 if nothing does but not everything could be looked at.

    Example: evenhand runs pack verify evidence.zip --key public.pem
    """
    result = verified(file, key=key, previous=previous)
    print_finding(result, json=json)
    if result.state != "holds":
        raise typer.Exit(ERROR if result.state == "differs" else UNFINISHED)


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder: a path or a URL.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="The file to write. eee, hf and lm-eval write a folder instead."
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            help=f"The format: {', '.join(FORMS)}. Default: the one that the ending of --out names."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a run as a file that other tools open.

    jsonl, parquet, csv: the results, one row per item. inspect: a log of Inspect (.eval). eee: a
    record of Every Eval Ever. hf: results for a model page of the Hugging Face Hub. lm-eval:
    samples of lm-evaluation-harness, for bbq. A missing answer is never an incorrect one. Nothing
    is overwritten. Ends with code 2 if the run is not finished.

    Example: evenhand runs export runs/now --out now.eval
    """
    with err.status(Text(f"reading {run}")):
        written = exported(run, out, configuration.data_folder(), to)
    for path, size in written.files.items():
        err.print(Text(f"wrote {path}: {written.is_}, {written.items:,} items, {size:,} bytes"))
    if written.not_run:
        err.print(Text(f"NOT FINISHED: {written.not_run:,} items of this run are not run yet"))
    if json:
        print_json(asdict(written))
    if written.not_run:
        raise typer.Exit(UNFINISHED)
